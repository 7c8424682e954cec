/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/shard_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "io/sink.h"
#include "pack/format/block_write.h"
#include "pack/format/keys.h"
#include "pack/format/place.h"

#define WHERE "pack/shard"

struct PenShardWriter {
    PenSink *sink;
    const PenSchema *schema;
    uint8_t id[PEN_ID_BYTES];
    uint64_t block_samples;
    PenStore *store;
    char name[PEN_SHARD_NAME_BYTES];
    PenBlockBuild build;
    PenBuf table;
    PenKeyHash *keys;
    uint64_t n_blocks, n_samples, keys_cap;
    uint64_t stats[PEN_STAT_COUNT];
};

int pen__shard_create(PenStore *store, const char *part_path, const PenSchema *schema,
                      const uint8_t *id, uint64_t block_samples, PenShardWriter **ret,
                      PenError *reterr)
{
    PenShardWriter *w = pen__zalloc(sizeof *w);
    if (!w)
        return pen__fail_memory(reterr, WHERE, part_path);
    w->store = store;
    pen__shard_name(id, w->name);
    w->schema = schema;
    w->block_samples = block_samples;
    memcpy(w->id, id, PEN_ID_BYTES);
    int r = pen__store_sink(store, part_path, w->name, &w->sink, reterr);
    if (r == PEN_OK) {
        uint8_t h[PEN_SHARD_HEADER_BYTES] = "PENSHARD";
        pen__store32(h + 8, PEN_FORMAT_VERSION);
        pen__store64(h + 16, pen__schema_must(schema));
        memcpy(h + 24, id, PEN_ID_BYTES);
        PenPlace place = {
            .id = id, .block = PEN_ALL, .sample = PEN_ALL, .field = PEN_PART_SHARD_HEADER};
        pen__store32(h + 12, pen__place_sum(&place, h + 16, sizeof h - 16));
        r = pen__sink_write(w->sink, h, sizeof h, reterr);
    }
    if (r < 0) {
        pen__shard_abort(&w);
        return r;
    }
    *ret = w;
    return PEN_OK;
}

static int note_keys(PenShardWriter *w, const PenStoredSample *const *samples, uint32_t n)
{
    if (w->n_samples + n > w->keys_cap) {
        uint64_t cap = PEN_MAX(w->keys_cap * 2, w->n_samples + n);
        PenKeyHash *keys = pen__resize(w->keys, (size_t)cap * sizeof *keys);
        if (!keys)
            return PEN_E_NO_MEMORY;
        w->keys = keys;
        w->keys_cap = cap;
    }
    for (uint32_t i = 0; i < n; i++)
        w->keys[w->n_samples + i] = (PenKeyHash){
            pen__key_hash(samples[i]->key, samples[i]->key_bytes), (uint32_t)(w->n_samples + i)};
    return PEN_OK;
}

int pen__shard_add(PenShardWriter *w, const PenStoredSample *const *samples, uint32_t n,
                   PenError *reterr)
{
    if (w->n_samples + n >= PEN_ALL || w->n_blocks >= PEN_ALL - 2)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "a shard has more than 2^32 samples; choose smaller shards");
    int r =
        pen__block_build(&w->build, w->schema, w->id, (uint32_t)w->n_blocks, samples, n, reterr);
    if (r < 0)
        return r;
    uint8_t e[PEN_BLOCK_ENTRY_BYTES];
    pen__store64(e, pen__sink_bytes(w->sink));
    pen__store64(e + 8, w->build.bytes);
    pen__store64(e + 16, w->build.index.bytes);
    pen__store32(e + 24, w->build.index_crc);
    pen__store32(e + 28, n);
    if (note_keys(w, samples, n) < 0 || pen__buf_add(&w->table, e, sizeof e) < 0)
        return pen__fail_memory(reterr, WHERE, "block table");
    r = pen__sink_writev(w->sink, w->build.iov, (int)w->build.n_iov, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < PEN_STAT_COUNT; i++)
        w->stats[i] += w->build.stats[i];
    w->n_blocks++;
    w->n_samples += n;
    return PEN_OK;
}

uint64_t pen__shard_bytes(const PenShardWriter *w)
{
    return pen__sink_bytes(w->sink);
}

/* Keys, table, statistics and footer, all made before the first of them is written. */
static int make_end(PenShardWriter *w, const PenShardPlan *plan, PenBuf *out)
{
    PenPlace place = {.id = w->id, .block = PEN_ALL, .sample = PEN_ALL};
    uint64_t keys_offset = pen__sink_bytes(w->sink);
    uint8_t f[PEN_SHARD_FOOTER_BYTES] = "PENSHEND";
    w->stats[PEN_STAT_BAD] = plan->n_bad;
    int r = pen__keys_write(w->keys, w->n_samples, out);
    size_t keys_bytes = out->bytes;
    if (r == PEN_OK)
        r = pen__buf_add(out, w->table.data, w->table.bytes);
    size_t stats_at = out->bytes;
    size_t n_stats = pen__stats_count(w->stats);
    if (r == PEN_OK)
        r = pen__buf_add(out, w->stats, 8 * n_stats);
    if (r < 0)
        return r;
    pen__store32(f + 8, PEN_FORMAT_VERSION);
    memcpy(f + 16, w->id, PEN_ID_BYTES);
    pen__store64(f + 32, keys_offset + out->bytes + sizeof f);
    pen__store64(f + 40, w->n_blocks);
    pen__store64(f + 48, w->n_samples);
    pen__store64(f + 56, w->block_samples);
    pen__store64(f + 64, keys_offset);
    pen__store64(f + 72, keys_offset + keys_bytes);
    pen__store32(f + 80, (uint32_t)n_stats);
    place.field = PEN_PART_KEYS;
    pen__store32(f + 84, pen__place_sum(&place, out->data, keys_bytes));
    place.field = PEN_PART_TABLE;
    pen__store32(f + 88, pen__place_sum(&place, w->table.data, w->table.bytes));
    place.field = PEN_PART_STATS;
    pen__store32(f + 92, pen__place_sum(&place, out->data + stats_at, 8 * n_stats));
    pen__store64(f + 96, plan->first);
    pen__store64(f + 104, plan->end);
    pen__store64(f + 112, plan->n_bad);
    place.field = PEN_PART_FOOTER;
    pen__store32(f + 12, pen__place_sum(&place, f + 16, sizeof f - 16));
    return pen__buf_add(out, f, sizeof f);
}

int pen__shard_commit(PenShardWriter **writer, const PenShardPlan *plan, PenError *reterr)
{
    PenShardWriter *w = *writer;
    PenBuf end = {0};
    int r = make_end(w, plan, &end);
    if (r < 0)
        pen__fail_memory(reterr, WHERE, "end of a shard");
    else
        r = pen__sink_write(w->sink, end.data, end.bytes, reterr);
    if (r == PEN_OK)
        r = pen__store_commit(w->store, &w->sink, w->name, reterr);
    pen__buf_free(&end);
    pen__shard_abort(writer);
    return r;
}

void pen__shard_abort(PenShardWriter **writer)
{
    if (!writer || !*writer)
        return;
    PenShardWriter *w = *writer;
    pen__sink_abort(&w->sink);
    pen__block_build_fini(&w->build);
    pen__buf_free(&w->table);
    pen__free(w->keys);
    pen__free(w);
    *writer = NULL;
}
