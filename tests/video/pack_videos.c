/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a pack of kept videos through the lowest interface, for tests.
 *
 *     pack_videos PACK FILE...
 *
 * Blocks have 2 samples. Keys are the paths, labels are 0, 1, 2, ... The packets of "damaged=FILE"
 * are overwritten from the 15th on: its checksums match bytes that cannot be decoded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ingest/video/packets.h"
#include "pack/write/publish.h"
#include "pack/write/roll.h"

enum { FIELDS = 2, BLOCK_SAMPLES = 2 };

typedef struct Made {
    PenVideoList list;
    PenBuf data, table;
    PenStoredVideo stored;
    PenStoredValue values[FIELDS];
    PenStoredSample sample;
    int64_t label;
} Made;

static const PenField fields[FIELDS] = {{.name = "video", .type = PEN_TYPE_CLIP},
                                        {.name = "label", .type = PEN_TYPE_I64}};

static void check(int r, const PenError *err)
{
    if (r >= 0)
        return;
    fprintf(stderr, "pack_videos: %s\n", err->message);
    exit(2);
}

static void read_file(const char *path, PenBuf *ret)
{
    uint8_t part[65536];
    FILE *f = fopen(path, "rb");
    size_t n;
    if (!f)
        exit(3);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        if (pen__buf_add(ret, part, n) < 0)
            exit(3);
    fclose(f);
}

static void damage(const PenVideoList *list, uint8_t *data)
{
    for (uint32_t i = 14; i < list->n; i++)
        memset(data + list->packets[i].offset, 0xA5, list->packets[i].bytes);
}

static void make_sample(const char *path, uint32_t i, Made *m)
{
    PenVideoSettings s = {.seconds = 20};
    PenError err = {0};
    uint32_t n_frames;
    bool is_damaged = strncmp(path, "damaged=", 8) == 0;
    path += is_damaged ? 8 : 0;
    *m = (Made){.label = i};
    read_file(path, &m->data);
    check(pen__video_list(&s, path, &m->list, &err), &err);
    check(pen__video_table_write(&m->list.stream, m->list.packets, m->list.n, m->data.bytes,
                                 &m->table, &n_frames, &err),
          &err);
    if (is_damaged)
        damage(&m->list, m->data.data);
    m->stored = (PenStoredVideo){.data = m->data.data,
                                 .bytes = m->data.bytes,
                                 .table = m->table.data,
                                 .table_bytes = m->table.bytes,
                                 .n_frames = n_frames,
                                 .source_bytes = m->data.bytes};
    m->values[0] = (PenStoredValue){.video = &m->stored};
    m->values[1] = (PenStoredValue){.data = &m->label, .bytes = sizeof m->label};
    m->sample = (PenStoredSample){.key = (const uint8_t *)path,
                                  .key_bytes = (uint32_t)strlen(path),
                                  .position = i,
                                  .values = m->values};
}

static void release(void *ctx, const PenStoredSample *sample)
{
    (void)ctx;
    (void)sample;
}

static void write_pack(const char *path, const Made *made, uint32_t n)
{
    PenSchema schema;
    PenStore *store = NULL;
    PenRoll *roll = NULL;
    PenError err = {0};
    char part[4096];
    snprintf(part, sizeof part, "%s/part", path);
    mkdir(path, 0777);
    check(pen__schema_init(&schema, fields, FIELDS, &err), &err);
    schema.has_videos = 1;
    check(pen__store_open(path, NULL, &store, &err), &err);
    PenRollSettings s = {.store = store,
                         .part_path = part,
                         .schema = &schema,
                         .block_samples = BLOCK_SAMPLES,
                         .shard_bytes = 1 << 30,
                         .has_columns = true,
                         .release = release};
    check(pen__roll_open(&s, &roll, &err), &err);
    for (uint32_t i = 0; i < n; i++)
        check(pen__roll_add(roll, &made[i].sample, &err), &err);
    check(pen__roll_finish(roll, NULL, &err), &err);
    PenManifest m = {.block_samples = BLOCK_SAMPLES, .schema = schema};
    m.shards = (PenShardEntry *)(uintptr_t)pen__roll_shards(roll, &m.n_shards);
    m.stats = *pen__roll_stats(roll);
    check(pen__pack_publish(store, NULL, part, &m, 0, &err), &err);
    pen__roll_close(&roll);
    pen__store_close(&store);
    pen__schema_fini(&schema);
}

int main(int argc, char **argv)
{
    uint32_t n = (uint32_t)argc - 2;
    Made *made = argc > 2 ? calloc(n, sizeof *made) : NULL;
    if (!made)
        return 3;
    for (uint32_t i = 0; i < n; i++)
        make_sample(argv[i + 2], i, &made[i]);
    write_pack(argv[1], made, n);
    for (uint32_t i = 0; i < n; i++) {
        pen__video_list_free(&made[i].list);
        pen__buf_free(&made[i].data);
        pen__buf_free(&made[i].table);
    }
    free(made);
    return 0;
}
