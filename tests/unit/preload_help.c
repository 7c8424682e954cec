/* SPDX-License-Identifier: Apache-2.0 */
#include "preload_help.h"

/* ---- packs ----------------------------------------------------------------------------------- */

static void make_blob(uint32_t number, uint8_t *ret, size_t bytes)
{
    uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (size_t i = 0; i < bytes; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        ret[i] = (uint8_t)(state >> 56);
    }
}

void make_pack(const char *name, uint32_t n, size_t bytes, uint64_t shard_bytes)
{
    static const PenField fields[] = {{.name = "blob", .type = PEN_TYPE_BYTES}};
    static uint8_t blob[MOST];
    PenError err = {0};
    PenWriter *w = NULL;
    uint64_t made = 0;
    PenWriterSettings s;
    pen_writer_settings_init(&s);
    s.fields = fields;
    s.n_fields = 1;
    s.block_samples = 4;
    s.shard_bytes = shard_bytes;
    CHECK_INT(pen_writer_open(at(name), &s, &w, &err), PEN_OK);
    for (uint32_t i = 0; i < n; i++) {
        make_blob(i, blob, bytes);
        PenValue value = {.data = blob, .bytes = bytes};
        /* Packs that are the same share their memory, also with another run of this test. */
        uint32_t key[2] = {i, (uint32_t)getpid()};
        CHECK_INT(pen_writer_add(w, key, sizeof key, &value, 1, &err), PEN_OK);
    }
    CHECK_INT(pen_writer_finish(w, &made, &err), PEN_OK);
    pen_writer_close(&w);
}

PenPack *open_pack(const char *name)
{
    PenError err = {0};
    PenPack *pack = NULL;
    if (pen_pack_open(at(name), NULL, &pack, &err) < 0)
        printf("%s\n", err.message);
    return pack;
}

uint64_t shard_bytes(const PenPack *pack)
{
    const PenManifest *m = pen__pack_manifest(pack);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < m->n_shards; i++)
        sum += m->shards[i].file_bytes;
    return sum;
}

int64_t first_wrong(PenPack *pack, size_t bytes)
{
    static uint8_t expected[MOST], found[MOST];
    for (uint64_t i = 0; i < pen_pack_info(pack)->n_samples; i++) {
        size_t n = 0;
        make_blob((uint32_t)i, expected, bytes);
        if (pen_pack_read(pack, i, 0, found, sizeof found, &n, NULL) < 0 || n != bytes ||
            memcmp(found, expected, bytes) != 0)
            return (int64_t)i;
    }
    return -1;
}

void damage(const char *name)
{
    PenError err = {0};
    PenPack *pack = open_pack(name);
    PenBlock *b = NULL;
    uint32_t in_block = 0;
    char shard[PEN_SHARD_NAME_BYTES], path[4600];
    CHECK_INT(pen__pack_locate(pack, 0, &b, &in_block, &err), PEN_OK);
    off_t where = (off_t)(b->offset + pen__block_blob(&b->view, in_block, 0).offset);
    pen__shard_name(b->shard->shard.entry.id, shard);
    pen__pack_block_put(pack, b);
    pen_pack_close(&pack);
    snprintf(path, sizeof path, "%s/%s", at(name), shard);
    uint8_t byte = 0;
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && pread(fd, &byte, 1, where) == 1);
    byte ^= 16;
    CHECK(pwrite(fd, &byte, 1, where) == 1 && close(fd) == 0);
}

int names_of(const PenPack *pack)
{
    char id[40], line[512];
    int n = 0;
    for (int i = 0; i < 16; i++)
        snprintf(id + 2 * i, 3, "%02x", pen_pack_info(pack)->id[i]);
    FILE *f = fopen("/proc/net/unix", "r");
    while (f && fgets(line, sizeof line, f))
        n += strstr(line, id) != NULL;
    if (f)
        fclose(f);
    return n;
}

/* ---- a clock that can be turned ---------------------------------------------------------------
 */

atomic_uint_fast64_t turned_ns;

uint64_t turned_now(void)
{
    return pen__sys_real.now_ns() + atomic_load(&turned_ns);
}
