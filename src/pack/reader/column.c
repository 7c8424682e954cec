/* SPDX-License-Identifier: Apache-2.0 */
/* One value of each of many samples: from the columns of the shards that have them, else from the
 * indexes of their blocks. */
#include "pack/reader/column.h"

#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/machine/cores.h"
#include "base/team.h"
#include "net/remote/remote.h"
#include "pack/format/columns.h"
#include "pack/reader/reader_impl.h"

#define WHERE "pack/column"

enum { REMOTE_THREADS = 32 }; /* as many requests at a time */

typedef struct Reading {
    PenPack *pack;
    const PenManifest *m;
    uint32_t field;
    int what;
    uint32_t width;
    uint64_t first, end; /* samples */
    uint64_t first_shard, first_block;
    uint8_t *is_without; /* for each shard from first_shard on: it has no columns */
    uint8_t *values;
} Reading;

/* ---- reading --------------------------------------------------------------------------------- */

/* The checksum follows the values. */
static int check_column(const PenShard *s, uint32_t field, int what, const uint8_t *data,
                        size_t bytes, uint64_t offset, PenError *reterr)
{
    uint32_t sum = pen__column_sum(s->entry.id, field, what, data, bytes);
    if (sum == pen__load32(data + bytes))
        return PEN_OK;
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%s: offset %" PRIu64
                     ": column of field %u: checksum 0x%08x, expected 0x%08x: the column is "
                     "damaged; the samples can be read",
                     s->source->name, offset, field, sum, pen__load32(data + bytes));
}

/* Where the section with the columns starts; 0: there is none that this version knows. */
static uint64_t find_section(const PenShard *s, const PenSchema *schema)
{
    PenBlockEntry last = pen__shard_block(s, s->entry.n_blocks - 1);
    uint64_t bytes = pen__columns_bytes(schema, s->n_samples);
    if (!bytes || pen__shard_stat(s, PEN_STAT_COLUMNS) != bytes ||
        bytes > last.bytes - last.index_bytes)
        return 0;
    return s->keys_offset - bytes;
}

int pen__shard_column(PenShard *s, const PenSchema *schema, uint32_t field, int what, PenBuf *ret,
                      PenError *reterr)
{
    uint64_t at = 0, section = find_section(s, schema);
    size_t bytes = (size_t)s->n_samples * pen__column_width(schema, field, what);
    size_t all = bytes + PEN_COLUMN_SUM_BYTES;
    if (!section || !pen__column_find(schema, s->n_samples, field, what, &at))
        return 0;
    at += section;
    ret->bytes = 0;
    if (pen__buf_reserve(ret, all) < 0)
        return pen__fail_memory(reterr, WHERE, s->source->name);
    int r = pen__source_read(s->source, ret->data, all, at, reterr);
    if (r == PEN_OK)
        r = check_column(s, field, what, ret->data, bytes, at, reterr);
    if (r == PEN_E_CORRUPT && s->source->is_remote) {
        r = pen__source_read_again(s->source, ret->data, all, at, reterr);
        if (r == PEN_OK)
            r = check_column(s, field, what, ret->data, bytes, at, reterr);
    }
    ret->bytes = bytes;
    return r < 0 ? r : 1;
}

/* The index alone: of a remote pack as well, where all else is read in entire blocks. */
static int read_index(PenPack *p, PenShardRef *ref, uint64_t block, uint8_t **ret_data,
                      PenBlockView *ret, PenError *reterr)
{
    const PenManifest *m = pen__pack_manifest(p);
    uint64_t in_shard = block - m->shards[ref->number].first_block;
    int r = pen__shard_index(&ref->shard, &m->schema, in_shard, ret_data, ret, reterr);
    uint64_t n = PEN_MIN(m->n_samples - block * m->block_samples, m->block_samples);
    if (r < 0 || ret->n_samples == n)
        return r;
    pen__free(*ret_data);
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%s: block %" PRIu64 ": %u samples, expected %" PRIu64,
                     ref->shard.source->name, in_shard, ret->n_samples, n);
}

/* ---- columns of shards ----------------------------------------------------------------------- */

/* The part of a shard's column, or of a block's, that was asked for. */
static void copy_part(const Reading *c, uint64_t first, uint64_t n, const uint8_t *values)
{
    uint64_t from = PEN_MAX(first, c->first), end = PEN_MIN(first + n, c->end);
    if (from < end)
        memcpy(c->values + (from - c->first) * c->width, values + (from - first) * c->width,
               (size_t)((end - from) * c->width));
}

static int shard_step(void *ctx, uint64_t number, PenError *reterr)
{
    Reading *c = ctx;
    PenShardRef *ref = NULL;
    PenBuf column = {0};
    const PenShardEntry *e = &c->m->shards[c->first_shard + number];
    int r = pen__pack_shard(c->pack, c->first_shard + number, &ref, reterr);
    if (r < 0)
        return r;
    r = pen__shard_column(&ref->shard, &c->m->schema, c->field, c->what, &column, reterr);
    if (r > 0)
        copy_part(c, e->first_block * c->m->block_samples, e->samples_used, column.data);
    c->is_without[number] = r == 0;
    pen__buf_free(&column);
    pen__pack_shard_put(c->pack, ref);
    return PEN_MIN(r, PEN_OK);
}

/* ---- indexes of blocks ----------------------------------------------------------------------- */

static int take_values(const Reading *c, uint64_t block, const PenBlockView *v, PenError *reterr)
{
    uint8_t *values = pen__alloc_array(v->n_samples, c->width);
    if (!values)
        return pen__fail_memory(reterr, WHERE, pen__pack_path(c->pack));
    pen__column_values(v->schema, v->data, v->n_samples, c->field, c->what, values);
    copy_part(c, block * c->m->block_samples, v->n_samples, values);
    pen__free(values);
    return PEN_OK;
}

static int block_step(void *ctx, uint64_t number, PenError *reterr)
{
    Reading *c = ctx;
    PenShardRef *ref = NULL;
    PenBlockView view;
    uint8_t *index = NULL;
    uint64_t block = c->first_block + number, shard = pen__pack_shard_of(c->pack, block);
    if (!c->is_without[shard - c->first_shard])
        return PEN_OK;
    int r = pen__pack_shard(c->pack, shard, &ref, reterr);
    if (r < 0)
        return r;
    r = read_index(c->pack, ref, block, &index, &view, reterr);
    if (r == PEN_OK) {
        r = take_values(c, block, &view, reterr);
        pen__free(index);
    }
    pen__pack_shard_put(c->pack, ref);
    return r;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Threads that read are not interrupted by themselves. */
static int check_interrupted(void *ctx, PenError *reterr)
{
    const PenPack *p = ((const Reading *)ctx)->pack;
    const PenRemote *place = pen__pack_place(p);
    return place && pen__remote_interrupted(place)
               ? pen__fail(reterr, PEN_E_CANCELLED, WHERE, "%s: interrupted", pen__pack_path(p))
               : PEN_OK;
}

static void stop(void *ctx, int stop)
{
    pen__pack_stop(((const Reading *)ctx)->pack, stop);
}

static int run(Reading *c, uint64_t n, int (*step)(void *, uint64_t, PenError *), PenError *reterr)
{
    unsigned threads =
        pen__pack_is_remote(c->pack) ? (unsigned)REMOTE_THREADS : pen__thread_cores();
    PenEach each = {.name = "pen-column",
                    .n = n,
                    .threads = (unsigned)PEN_MIN((uint64_t)threads, PEN_MAX(n, 1u)),
                    .step = step,
                    .tick = check_interrupted,
                    .stop = stop,
                    .ctx = c};
    return pen__each(&each, reterr);
}

static int read_all(Reading *c, PenError *reterr)
{
    uint64_t k = c->m->block_samples, last_block = (c->end - 1) / k;
    c->first_block = c->first / k;
    c->first_shard = pen__pack_shard_of(c->pack, c->first_block);
    uint64_t n_shards = pen__pack_shard_of(c->pack, last_block) - c->first_shard + 1;
    c->is_without = pen__zalloc((size_t)n_shards);
    if (!c->is_without)
        return pen__fail_memory(reterr, WHERE, pen__pack_path(c->pack));
    int r = run(c, n_shards, shard_step, reterr);
    if (r == PEN_OK && memchr(c->is_without, 1, (size_t)n_shards))
        r = run(c, last_block - c->first_block + 1, block_step, reterr);
    pen__free(c->is_without);
    return r;
}

static int fail_what(const PenPack *p, const PenColumnRange *what, PenError *reterr)
{
    static const char *const expected[PEN_COLUMN_COUNT] = {[PEN_COLUMN_VALUE] =
                                                               "numbers of one shape",
                                                           [PEN_COLUMN_SIZE] = "an image or clip",
                                                           [PEN_COLUMN_FRAMES] = "a clip"};
    const PenField *f = &pen_pack_info(p)->fields[what->field];
    const char *ragged = pen__field_is_ragged(f) ? "ragged " : "";
    if (what->what < 0 || what->what >= PEN_COLUMN_COUNT)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: field '%s': column %d: expected a number below %d", pen__pack_path(p),
                         f->name, (int)what->what, (int)PEN_COLUMN_COUNT);
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: field '%s': expected %s, found %s%s",
                     pen__pack_path(p), f->name, expected[what->what], ragged,
                     pen_type_name(f->type));
}

static int check_range(const PenPack *p, const PenColumnRange *what, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(p);
    if (what->field >= info->n_fields)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE, "%s: field %u: expected a number below %u",
                         pen__pack_path(p), what->field, info->n_fields);
    if (!pen__range_ok(what->first, what->n, info->n_samples))
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: %" PRIu64 " samples from sample %" PRIu64 " on: it has %" PRIu64,
                         pen__pack_path(p), what->n, what->first, info->n_samples);
    return PEN_OK;
}

int pen_pack_column(PenPack *pack, const PenColumnRange *what, void *buf, size_t cap,
                    size_t *ret_bytes, PenError *reterr)
{
    const PenManifest *m = pen__pack_manifest(pack);
    int r = pen__pack_alive(pack, reterr);
    if (r == PEN_OK)
        r = check_range(pack, what, reterr);
    if (r < 0)
        return r;
    uint32_t width = pen__column_width(&m->schema, what->field, what->what);
    uint64_t bytes;
    if (!width)
        return fail_what(pack, what, reterr);
    if (pen__mul_over(what->n, width, &bytes) || bytes > SIZE_MAX / 4 || (buf && bytes > cap))
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s: %" PRIu64 " values of %u bytes, but the buffer holds %zu bytes",
                         pen__pack_path(pack), what->n, width, cap);
    *ret_bytes = (size_t)bytes;
    if (!buf || !what->n)
        return PEN_OK;
    Reading c = {.pack = pack,
                 .m = m,
                 .field = what->field,
                 .what = what->what,
                 .width = width,
                 .first = what->first,
                 .end = what->first + what->n,
                 .values = buf};
    return read_all(&c, reterr);
}

/* ---- checking -------------------------------------------------------------------------------- */

static int compare(PenShardRef *ref, const PenBlockView *v, uint64_t block, const PenBuf *column,
                   uint32_t field, int what, PenError *reterr)
{
    uint32_t width = pen__column_width(v->schema, field, what);
    size_t bytes = (size_t)v->n_samples * width;
    uint8_t *values = pen__alloc_array(v->n_samples, width);
    if (!values)
        return pen__fail_memory(reterr, WHERE, ref->shard.source->name);
    pen__column_values(v->schema, v->data, v->n_samples, field, what, values);
    bool same = memcmp(values, column->data + block * ref->shard.block_samples * width, bytes) == 0;
    pen__free(values);
    return same
               ? PEN_OK
               : pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                           "%s: block %" PRIu64 ", field '%s': the column differs from the samples",
                           ref->shard.source->name, block, v->schema->fields[field].name);
}

/* Of all columns of a shard. */
static int load_columns(PenShardRef *ref, const PenSchema *schema, PenBuf *columns,
                        PenError *reterr)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < schema->n_fields * PEN_COLUMN_COUNT && r >= 0; i++)
        if (pen__column_width(schema, i / PEN_COLUMN_COUNT, (int)(i % PEN_COLUMN_COUNT)))
            r = pen__shard_column(&ref->shard, schema, i / PEN_COLUMN_COUNT,
                                  (int)(i % PEN_COLUMN_COUNT), &columns[i], reterr);
    return PEN_MIN(r, PEN_OK);
}

static int compare_block(PenPack *p, PenShardRef *ref, uint64_t block, const PenBuf *columns,
                         PenError *reterr)
{
    const PenManifest *m = pen__pack_manifest(p);
    PenBlockView view;
    uint8_t *index = NULL;
    int r = read_index(p, ref, m->shards[ref->number].first_block + block, &index, &view, reterr);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < m->schema.n_fields * PEN_COLUMN_COUNT && r == PEN_OK; i++)
        if (columns[i].bytes)
            r = compare(ref, &view, block, &columns[i], i / PEN_COLUMN_COUNT,
                        (int)(i % PEN_COLUMN_COUNT), reterr);
    pen__free(index);
    return r;
}

static int check_shard(PenPack *p, PenShardRef *ref, PenError *reterr)
{
    const PenManifest *m = pen__pack_manifest(p);
    uint32_t n = m->schema.n_fields * PEN_COLUMN_COUNT;
    if (!find_section(&ref->shard, &m->schema))
        return PEN_OK;
    PenBuf *columns = pen__zalloc(n * sizeof *columns);
    if (!columns)
        return pen__fail_memory(reterr, WHERE, ref->shard.source->name);
    int r = load_columns(ref, &m->schema, columns, reterr);
    for (uint64_t b = 0; b < m->shards[ref->number].blocks_used && r == PEN_OK; b++)
        r = compare_block(p, ref, b, columns, reterr);
    for (uint32_t i = 0; i < n; i++)
        pen__buf_free(&columns[i]);
    pen__free(columns);
    return r;
}

static int check_step(void *ctx, uint64_t shard, PenError *reterr)
{
    PenPack *p = ((Reading *)ctx)->pack;
    PenShardRef *ref = NULL;
    int r = pen__pack_shard(p, shard, &ref, reterr);
    if (r < 0)
        return r;
    r = check_shard(p, ref, reterr);
    pen__pack_shard_put(p, ref);
    return r;
}

int pen__pack_check_columns(PenPack *p, PenError *reterr)
{
    Reading c = {.pack = p};
    return run(&c, pen__pack_manifest(p)->n_shards, check_step, reterr);
}
