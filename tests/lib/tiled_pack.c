/* SPDX-License-Identifier: Apache-2.0 */
#include "tiled_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "codec/jpeg/metadata.h"
#include "pack/write/copy.h"
#include "pack/write/publish.h"
#include "pack/write/roll.h"
#include "tiled_jpeg.h"

typedef struct Tiles {
    PenPack *from;
    PenStore *to;
    PenRoll *roll;
    PenCopied *blocks; /* the roll may need their samples until it ends */
    struct Made {
        TiledJpeg jpeg;
        PenBuf meta;
    } * made;
    size_t n_made;
    uint64_t n_samples;
    PenSchema schema;
    PenError err;
} Tiles;

static void must(const Tiles *t, int r)
{
    if (r >= 0)
        return;
    printf("tile_pack: %s\n", t->err.message);
    abort();
}

/* The files belong to their block, and stay. */
static void release(void *ctx, const PenStoredSample *sample)
{
    (void)ctx;
    (void)sample;
}

static void tile_image(Tiles *t, PenStoredImage *image)
{
    TiledJpeg j = {0};
    PenBuf meta = {0};
    if (image->codec != PEN_STORED_JPEG)
        return;
    image->how = PEN_HOW_KEPT_UNTILED;
    image->entries = (PenStoredEntries){0};
    if (tile_jpeg(image->data, (size_t)image->bytes, &j) != PEN_OK) {
        tiled_free(&j);
        return;
    }
    must(t, pen__jpeg_metadata(image->data, (size_t)image->bytes, &meta, &t->err));
    t->made = realloc(t->made, (t->n_made + 1) * sizeof *t->made);
    if (!t->made)
        abort();
    t->made[t->n_made++] = (struct Made){j, meta};
    bool grey = j.info.components == 1;
    image->data = j.jpeg.data;
    image->bytes = j.jpeg.bytes;
    image->meta = meta.data;
    image->meta_bytes = meta.bytes;
    image->how = PEN_HOW_TILED;
    image->segments = (PenSegments){.head_bytes = j.head_bytes,
                                    .n_segments = j.n_segments,
                                    .lengths = j.segment_bytes,
                                    .unit = PEN_TILE_MCUS,
                                    .components = j.info.components,
                                    .h_samp = grey ? 1 : j.info.h_samp[0],
                                    .v_samp = grey ? 1 : j.info.v_samp[0]};
}

static void add_block(Tiles *t, uint64_t block)
{
    const PenSchema *schema = &t->schema;
    PenCopied *c = &t->blocks[block];
    must(t, pen__copy_block(t->from, block, c, &t->err));
    for (uint32_t s = 0; s < c->n; s++) {
        for (uint32_t f = 0; f < schema->n_fields; f++) {
            const PenStoredValue *v = &c->samples[s].values[f];
            bool mask = schema->fields[f].flags & PEN_FIELD_MASK;
            for (uint32_t i = 0; i < v->n_images && !mask; i++)
                tile_image(t, (PenStoredImage *)(uintptr_t)&v->images[i]);
        }
        c->samples[s].position = t->n_samples++;
        must(t, pen__roll_add(t->roll, &c->samples[s], &t->err));
    }
}

static void publish(Tiles *t, const char *part)
{
    PenManifest m = {.block_samples = pen__pack_manifest(t->from)->block_samples,
                     .schema = t->schema};
    must(t, pen__roll_finish(t->roll, NULL, &t->err));
    m.shards = (PenShardEntry *)(uintptr_t)pen__roll_shards(t->roll, &m.n_shards);
    m.stats = *pen__roll_stats(t->roll);
    must(t, pen__pack_publish(t->to, NULL, part, &m, 0, &t->err));
}

void tile_pack(const char *from, const char *to, uint64_t shard_bytes)
{
    Tiles t = {0};
    char part[5000];
    snprintf(part, sizeof part, "%s/part", to);
    must(&t, mkdir(to, 0777));
    must(&t, pen_pack_open(from, NULL, &t.from, &t.err));
    must(&t, pen__store_open(to, NULL, &t.to, &t.err));
    const PenManifest *source = pen__pack_manifest(t.from);
    t.schema = source->schema;
    t.schema.has_entries = 0;
    PenRollSettings s = {.store = t.to,
                         .part_path = part,
                         .schema = &t.schema,
                         .block_samples = source->block_samples,
                         .shard_bytes = shard_bytes,
                         .release = release};
    must(&t, pen__roll_open(&s, &t.roll, &t.err));
    t.blocks = calloc(source->n_blocks, sizeof *t.blocks);
    if (!t.blocks)
        abort();
    for (uint64_t i = 0; i < source->n_blocks; i++)
        add_block(&t, i);
    publish(&t, part);
    pen__roll_close(&t.roll);
    for (uint64_t i = 0; i < source->n_blocks; i++)
        pen__copied_free(&t.blocks[i]);
    for (size_t i = 0; i < t.n_made; i++) {
        tiled_free(&t.made[i].jpeg);
        pen__buf_free(&t.made[i].meta);
    }
    free(t.blocks);
    free(t.made);
    pen__store_close(&t.to);
    pen_pack_close(&t.from);
}
