/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/format/shard_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "io/outside.h"
#include "io/sink.h"
#include "pack/format/block_write.h"
#include "pack/format/columns.h"
#include "pack/format/keys.h"
#include "pack/format/map.h"
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
    const PenStoredSample *const *pending; /* samples of a block that is built and not written */
    uint32_t n_pending;
    PenColumns columns;
    PenBuf table;
    PenKeyHash *keys;
    uint64_t n_blocks, n_samples, keys_cap;
    uint64_t stats[PEN_STAT_COUNT];
    PenMapBuild map; /* of what stays in files */
    char *last_path; /* of them, as it was given, and its number in the map */
    uint32_t last_file;
    uint64_t last_bytes; /* its size */
    int64_t last_mtime_ns;
    uint8_t hash[32]; /* of the end: the digest in the manifest is the start of it */
};

int pen__shard_create(const PenShardSettings *s, PenShardWriter **ret, PenError *reterr)
{
    const uint8_t *id = s->id;
    PenShardWriter *w = pen__zalloc(sizeof *w);
    if (!w)
        return pen__fail_memory(reterr, WHERE, s->part_path);
    w->store = s->store;
    pen__shard_name(id, w->name);
    w->schema = s->schema;
    w->block_samples = s->block_samples;
    w->columns.is_dropped = !s->has_columns;
    memcpy(w->id, id, PEN_ID_BYTES);
    int r = pen__store_sink(s->store, s->part_path, w->name, &w->sink, reterr);
    if (r == PEN_OK) {
        uint8_t h[PEN_SHARD_HEADER_BYTES] = "PENSHARD";
        pen__store32(h + 8, PEN_FORMAT_VERSION);
        pen__store64(h + 16, pen__schema_must(s->schema));
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

/* ---- what stays in files ---- */

/* An object is known by its address, and by what the response with its bytes has told. */
static int describe_object(const PenOutsidePiece *piece, char *name, PenMappedFile *ret,
                           PenError *reterr)
{
    int r = pen__outside_address(piece->path, name, reterr);
    if (r < 0)
        return r;
    *ret = (PenMappedFile){.bytes = piece->file_bytes,
                           .path = name,
                           .path_bytes = (uint32_t)strlen(name),
                           .etag_bytes = (uint32_t)PEN_MIN(strlen(piece->etag), PEN_MAX_ETAG),
                           .etag = piece->etag};
    return PEN_OK;
}

static int fail_changed(const char *path, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CHANGED, WHERE,
                     "%s: has changed while it was indexed; run the same command again", path);
}

/* Is the last file still the one that was read? A sample of a file that was replaced would be
 * refused only when somebody loads it. */
static int check_last(const PenShardWriter *w, PenError *reterr)
{
    PenFileStat st;
    if (!w->last_path || pen_is_remote(w->last_path))
        return PEN_OK;
    int r = pen__sys->stat_path(w->last_path, &st);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%.300s: cannot stat", w->last_path);
    return st.bytes == w->last_bytes && st.mtime_ns == w->last_mtime_ns
               ? PEN_OK
               : fail_changed(w->last_path, reterr);
}

static int describe_file(const PenShardWriter *w, const PenOutsidePiece *piece, char *name,
                         PenMappedFile *ret, PenError *reterr)
{
    PenFileStat st;
    if (pen__store_remote(w->store))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%.300s: a file of this machine: a pack in an object store cannot refer "
                         "to it",
                         piece->path);
    int r = pen__outside_name(pen__store_name(w->store), piece->path, name, &st, reterr);
    if (r < 0)
        return r;
    if (piece->mtime_ns && /* a plan may have been made without */
        (st.bytes != piece->file_bytes || st.mtime_ns != piece->mtime_ns))
        return fail_changed(piece->path, reterr);
    *ret = (PenMappedFile){.bytes = st.bytes,
                           .mtime_ns = st.mtime_ns,
                           .path = name,
                           .path_bytes = (uint32_t)strlen(name)};
    return PEN_OK;
}

static int map_file(PenShardWriter *w, const PenOutsidePiece *piece, uint32_t *ret,
                    PenError *reterr)
{
    char name[PEN_OUTSIDE_PATH_BYTES];
    PenMappedFile file;
    if (w->last_path && strcmp(w->last_path, piece->path) == 0) {
        *ret = w->last_file;
        return PEN_OK;
    }
    int r = check_last(w, reterr);
    if (r == PEN_OK)
        r = pen_is_remote(piece->path) ? describe_object(piece, name, &file, reterr)
                                       : describe_file(w, piece, name, &file, reterr);
    if (r < 0)
        return r;
    char *copy = pen__strdup(piece->path);
    if (!copy)
        return pen__fail_memory(reterr, WHERE, piece->path);
    pen__free(w->last_path);
    w->last_path = copy;
    w->last_bytes = file.bytes;
    w->last_mtime_ns = file.mtime_ns;
    r = pen__map_add_file(&w->map, &file, &w->last_file, reterr);
    *ret = w->last_file;
    return r;
}

/* Notes where the pieces are that stay in files, and leaves the others to be written. */
static int map_pieces(PenShardWriter *w, PenError *reterr)
{
    PenBlockBuild *b = &w->build;
    const PenOutsidePiece *piece = (const PenOutsidePiece *)b->outside.data;
    const PenOutsidePiece *end = piece + b->outside.bytes / sizeof *piece;
    uint64_t at = pen__shard_bytes(w);
    size_t n = 0;
    for (size_t i = 0; i < b->n_iov; i++) {
        uint64_t bytes = b->iov[i].iov_len;
        uint32_t file;
        if (piece == end || piece->iov != i) {
            b->iov[n++] = b->iov[i];
            at += bytes;
            continue;
        }
        int r = map_file(w, piece, &file, reterr);
        if (r < 0)
            return r;
        if (!pen__range_ok(piece->offset, bytes, w->last_bytes))
            return fail_changed(piece->path, reterr);
        if (pen__map_add_extent(&w->map, file, piece->offset, at, bytes) < 0)
            return pen__fail_memory(reterr, WHERE, "map");
        at += bytes;
        piece++;
    }
    b->n_iov = n;
    return PEN_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int build_pending(PenShardWriter *w, const PenBuf *columns, PenError *reterr)
{
    return pen__block_build(&w->build, w->schema, w->id, (uint32_t)w->n_blocks, w->pending,
                            w->n_pending, columns, reterr);
}

enum { RUNS_AT_ONCE = 16 }; /* of a video that is read when it is written: 1 MiB */

/* Is it what the checksums were made from? */
static bool are_runs(const uint8_t *data, size_t bytes, const uint8_t *crcs)
{
    for (size_t at = 0; at < bytes; at += PEN_VIDEO_RUN_BYTES, crcs += 4) {
        size_t run = PEN_MIN(bytes - at, (size_t)PEN_VIDEO_RUN_BYTES);
        if (pen__crc32c(0, data + at, run) != pen__load32(crcs))
            return false;
    }
    return true;
}

static int copy_source(PenShardWriter *w, const PenSourcePiece *piece, uint64_t bytes,
                       PenError *reterr)
{
    const size_t most = (size_t)RUNS_AT_ONCE * PEN_VIDEO_RUN_BYTES;
    uint8_t *buf = pen__alloc(most);
    int r = buf ? PEN_OK : pen__fail_memory(reterr, WHERE, piece->source->name);
    for (uint64_t at = 0; at < bytes && r == PEN_OK; at += most) {
        size_t n = (size_t)PEN_MIN(bytes - at, (uint64_t)most);
        r = pen__source_read(piece->source, buf, n, piece->offset + at, reterr);
        bool is_other = r == PEN_E_CORRUPT; /* it has become shorter */
        if (r == PEN_OK)
            is_other = !are_runs(buf, n, piece->crcs + 4 * (at / PEN_VIDEO_RUN_BYTES));
        if (is_other)
            r = pen__fail(reterr, PEN_E_CHANGED, WHERE,
                          "%s: has changed while it was packed; run the same command again",
                          piece->source->name);
        if (r == PEN_OK)
            r = pen__sink_write(w->sink, buf, n, reterr);
    }
    pen__free(buf);
    return r;
}

/* Pieces in memory by as few calls as possible, others in between. */
static int write_pieces(PenShardWriter *w, PenError *reterr)
{
    PenBlockBuild *b = &w->build;
    const PenSourcePiece *piece = (const PenSourcePiece *)b->sources.data;
    size_t first = 0;
    int r = PEN_OK;
    for (size_t i = 0; i <= b->n_iov && r == PEN_OK; i++) {
        if (i < b->n_iov && b->iov[i].iov_base)
            continue;
        r = pen__sink_writev(w->sink, b->iov + first, (int)(i - first), reterr);
        if (r == PEN_OK && i < b->n_iov)
            r = copy_source(w, piece++, b->iov[i].iov_len, reterr);
        first = i + 1;
    }
    return r;
}

static int write_pending(PenShardWriter *w, PenError *reterr)
{
    uint8_t e[PEN_BLOCK_ENTRY_BYTES];
    uint32_t n = w->n_pending;
    w->n_pending = 0;
    pen__store64(e, pen__shard_bytes(w));
    pen__store64(e + 8, w->build.bytes);
    pen__store64(e + 16, w->build.index.bytes);
    pen__store32(e + 24, w->build.index_crc);
    pen__store32(e + 28, n);
    if (note_keys(w, w->pending, n) < 0 || pen__buf_add(&w->table, e, sizeof e) < 0)
        return pen__fail_memory(reterr, WHERE, "block table");
    int r = w->build.outside.bytes ? map_pieces(w, reterr) : PEN_OK;
    if (r == PEN_OK)
        r = write_pieces(w, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < PEN_STAT_COUNT; i++)
        w->stats[i] += w->build.stats[i];
    w->n_blocks++;
    w->n_samples += n;
    return PEN_OK;
}

/* The last block has the columns, its own among them: it is built once more. */
static int write_last(PenShardWriter *w, PenError *reterr)
{
    PenBuf columns = {0};
    int r = PEN_OK;
    if (pen__columns_write(&w->columns, w->schema, w->id, &columns) < 0)
        r = pen__fail_memory(reterr, WHERE, "columns");
    if (r == PEN_OK && columns.bytes)
        r = build_pending(w, &columns, reterr);
    if (r == PEN_OK)
        r = write_pending(w, reterr);
    pen__buf_free(&columns);
    return r;
}

int pen__shard_flush(PenShardWriter *w, PenError *reterr)
{
    return w->n_pending ? write_pending(w, reterr) : PEN_OK;
}

int pen__shard_add(PenShardWriter *w, const PenStoredSample *const *samples, uint32_t n,
                   uint64_t end_bytes, PenError *reterr)
{
    int r = pen__shard_flush(w, reterr);
    if (r < 0)
        return r;
    if (w->n_samples + n >= PEN_ALL || w->n_blocks >= PEN_ALL - 2)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "a shard has more than 2^32 samples; choose smaller shards");
    w->pending = samples;
    w->n_pending = n;
    const PenBlockBuild *b = &w->build;
    r = build_pending(w, NULL, reterr);
    if (r == PEN_OK && pen__columns_add(&w->columns, w->schema, b->index.data, n, b->bytes) < 0)
        r = pen__fail_memory(reterr, WHERE, "columns");
    if (r == PEN_OK && pen__shard_bytes(w) + b->bytes < end_bytes)
        return 0;
    if (r == PEN_OK)
        r = write_last(w, reterr);
    w->n_pending = 0;
    return r < 0 ? r : 1;
}

uint64_t pen__shard_bytes(const PenShardWriter *w)
{
    return pen__sink_bytes(w->sink) + w->map.skipped;
}

/* Keys, table, statistics and footer, all made before the first of them is written. */
static int make_end(PenShardWriter *w, const PenShardPlan *plan, PenBuf *out)
{
    PenPlace place = {.id = w->id, .block = PEN_ALL, .sample = PEN_ALL};
    uint64_t keys_offset = pen__shard_bytes(w);
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
    r = pen__buf_add(out, f, sizeof f);
    if (r == PEN_OK)
        pen__sha256((uint8_t *)out->data + keys_bytes, out->bytes - keys_bytes, w->hash);
    if (r == PEN_OK && w->map.skipped)
        r = pen__map_write(&w->map, w->id, pen__load64(f + 32), out);
    return r;
}

int pen__shard_commit(PenShardWriter **writer, const PenShardPlan *plan, uint8_t ret_digest[16],
                      PenError *reterr)
{
    PenShardWriter *w = *writer;
    PenBuf end = {0};
    int r = w->n_pending ? write_last(w, reterr) : PEN_OK;
    if (r == PEN_OK)
        r = check_last(w, reterr);
    if (r == PEN_OK && make_end(w, plan, &end) < 0)
        r = pen__fail_memory(reterr, WHERE, "end of a shard");
    if (r == PEN_OK)
        r = pen__sink_write(w->sink, end.data, end.bytes, reterr);
    if (r == PEN_OK)
        r = pen__store_commit(w->store, &w->sink, w->name, reterr);
    pen__buf_free(&end);
    memcpy(ret_digest, w->hash, 16);
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
    pen__columns_free(&w->columns, w->schema);
    pen__buf_free(&w->table);
    pen__free(w->keys);
    pen__map_build_free(&w->map);
    pen__free(w->last_path);
    pen__free(w);
    *writer = NULL;
}
