/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/mapped/mapped.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/iov.h"
#include "io/remote_source.h"
#include "pack/mapped/gather.h"

#define WHERE "pack/mapped"

/* Between two payloads a tar has headers and small members: to read over that much is faster than
 * to read twice. */
enum { GAP_BYTES = 16 * 1024 };

/* Read again for every sample of a shuffled pack, a map would cost more than the sample. So those
 * of a pack are kept, as many as fit: that is best for samples in random order, and those in the
 * pack's order need a map once. */
#define KEPT_BYTES (UINT64_C(256) << 20)

/* Blocks of objects are read entirely: a small map must not claim all of the memory. */
#define MOST_BLOCK_BYTES (UINT64_C(1) << 30)

typedef struct SharedMap {
    PenMap map;
    PenOutside *outside; /* may be NULL */
    uint64_t owner;
    atomic_bool is_checked; /* extents lie in payloads: files may be read */
    atomic_uint refs;
} SharedMap;

struct PenMaps {
    PenOutside *outside;
    pthread_mutex_t mutex; /* of all below */
    SharedMap **kept;      /* by shard */
    uint64_t n_shards, bytes;
};

typedef struct MappedSource {
    PenSource base;
    PenSource *file; /* the stored bytes and the map */
    SharedMap *shared;
    const PenMap *map; /* of it */
    PenMaps *maps;     /* may be NULL */
    uint64_t number;   /* of the shard, among them */
} MappedSource;

/* A range of the shard on its way to memory. */
typedef struct Want {
    uint8_t *to;
    uint64_t offset, bytes;
    uint64_t extent; /* the first one that ends behind the offset */
} Want;

static void advance(Want *w, uint64_t n)
{
    w->to += n;
    w->offset += n;
    w->bytes -= n;
}

static int read_stored(MappedSource *s, uint8_t *to, uint64_t bytes, uint64_t offset,
                       uint64_t skipped, PenError *reterr)
{
    return pen__source_read(s->file, to, (size_t)bytes, offset - skipped, reterr);
}

/* ---- neighbors in a file --------------------------------------------------------------------- */

/* One read of a file into several places. */
typedef struct Scatter {
    struct iovec v[PEN_SOURCE_PLACES];
    int n;
    uint32_t file;
    uint64_t source, end; /* of the file */
    uint8_t gap[GAP_BYTES];
} Scatter;

/* Can the range behind the ones that are there be read with them? */
static bool joins(const Scatter *c, uint32_t file, uint64_t source)
{
    return c->n + 2 <= PEN_SOURCE_PLACES && file == c->file && source >= c->end &&
           source - c->end <= GAP_BYTES;
}

static void scatter_add(Scatter *c, uint8_t *to, uint64_t bytes, uint64_t source)
{
    if (source > c->end)
        c->v[c->n++] = (struct iovec){c->gap, (size_t)(source - c->end)};
    c->v[c->n++] = (struct iovec){to, (size_t)bytes};
    c->end = source + bytes;
}

static PenOutsideFile outside_file(const MappedSource *s, uint32_t number)
{
    PenMappedFile f = pen__map_file(s->map, number);
    return (PenOutsideFile){s->shared->owner, number, f.path_bytes, f.path, f.bytes};
}

/* What is parsed is never taken from files. */
static int fail_unchecked(const MappedSource *s, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                     "%s: extents outside of payloads: the map of the shard is damaged",
                     s->base.name);
}

static int read_file(MappedSource *s, uint32_t number, const struct iovec *v, int n,
                     uint64_t offset, const PenArrival *arrival, PenError *reterr)
{
    PenOutsideFile file = outside_file(s, number);
    if (!atomic_load(&s->shared->is_checked))
        return fail_unchecked(s, reterr);
    if (!s->shared->outside)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE, "%s: cannot read files outside of it",
                         s->base.name);
    return pen__outside_read(s->shared->outside, &file, v, n, offset, arrival, reterr);
}

/* Each place by itself; zeros where nothing can be had. */
static int read_each(MappedSource *s, const Scatter *c, PenError *reterr)
{
    uint64_t at = c->source;
    int r = PEN_OK;
    for (int i = 0; i < c->n && r == PEN_OK; i++) {
        const struct iovec *v = &c->v[i];
        if (v->iov_base != c->gap)
            r = read_file(s, c->file, v, 1, at, NULL, reterr);
        if (r == PEN_E_CORRUPT) {
            memset(v->iov_base, 0, v->iov_len);
            r = PEN_OK;
        }
        at += v->iov_len;
    }
    return r;
}

static int read_scatter(MappedSource *s, const Scatter *c, PenError *reterr)
{
    int r = read_file(s, c->file, c->v, c->n, c->source, NULL, reterr);
    bool may_fill = atomic_load(&s->shared->is_checked);
    return r == PEN_E_CORRUPT && may_fill ? read_each(s, c, reterr) : r;
}

/* The extent that the offset is in, and those behind it that one read can bring too. Stored bytes
 * between them are read on the way. */
static int read_extents(MappedSource *s, Want *w, PenError *reterr)
{
    PenExtent e = pen__map_extent(s->map, w->extent);
    uint64_t skip = w->offset - e.offset;
    uint64_t source = e.source + skip, n = PEN_MIN(e.bytes - skip, w->bytes);
    Scatter c;
    c.n = 0;
    c.file = e.file;
    c.source = c.end = source;
    int r = PEN_OK;
    for (;;) {
        scatter_add(&c, w->to, n, source);
        advance(w, n);
        w->extent += w->offset == e.offset + e.bytes;
        if (!w->bytes || w->extent == s->map->n_extents)
            break;
        e = pen__map_extent(s->map, w->extent);
        if (e.offset - w->offset >= w->bytes || !joins(&c, e.file, e.source))
            break;
        uint64_t between = e.offset - w->offset;
        r = between ? read_stored(s, w->to, between, w->offset, e.skipped, reterr) : PEN_OK;
        if (r < 0)
            return r;
        advance(w, between);
        source = e.source;
        n = PEN_MIN(e.bytes, w->bytes);
    }
    return read_scatter(s, &c, reterr);
}

/* ---- objects --------------------------------------------------------------------------------- */

static int read_range(void *ctx, uint32_t number, const struct iovec *v, int n, uint64_t offset,
                      const PenArrival *arrival, PenError *reterr)
{
    return read_file(ctx, number, v, n, offset, arrival, reterr);
}

static bool has_payload(const MappedSource *s, uint64_t offset, uint64_t bytes)
{
    uint64_t i = pen__map_find(s->map, offset);
    return i < s->map->n_extents && pen__map_extent(s->map, i).offset < offset + bytes;
}

static int gathered_read_v(MappedSource *s, const struct iovec *v, int n, uint64_t offset,
                           bool is_again, PenError *reterr)
{
    bool is_checked = atomic_load(&s->shared->is_checked);
    if (!is_checked && has_payload(s, offset, pen__iov_bytes(v, n)))
        return fail_unchecked(s, reterr);
    PenGatherFrom from = {.map = s->map,
                          .file = s->file,
                          .outside = s->shared->outside,
                          .read = read_range,
                          .ctx = s,
                          .name = s->base.name,
                          .is_again = is_again};
    return pen__gather(&from, v, n, offset, reterr);
}

/* ---- the source ------------------------------------------------------------------------------ */

/* Does the range lie in one extent? */
static bool lies_in(const PenMap *m, const Want *w)
{
    if (w->extent == m->n_extents)
        return false;
    PenExtent e = pen__map_extent(m, w->extent);
    return w->offset >= e.offset && w->bytes <= e.bytes - (w->offset - e.offset);
}

/* A part of one payload, as loaders read them. */
static int read_part(MappedSource *s, const Want *w, PenError *reterr)
{
    PenExtent e = pen__map_extent(s->map, w->extent);
    struct iovec v = {w->to, (size_t)w->bytes};
    return read_file(s, e.file, &v, 1, e.source + (w->offset - e.offset), NULL, reterr);
}

/* A file that is missing or too short fails the read of a sample. In one of many samples, such as a
 * block, its bytes are zeros instead, so that their checksums refuse just the samples that need it,
 * and the others can be used. */
static int mapped_read(PenSource *source, void *buf, size_t bytes, uint64_t offset, int again,
                       PenError *reterr)
{
    MappedSource *s = (MappedSource *)source;
    struct iovec one = {buf, bytes};
    if (source->is_remote)
        return gathered_read_v(s, &one, 1, offset, again != 0, reterr);
    Want w = {buf, offset, bytes, pen__map_find(s->map, offset)};
    int r = PEN_OK;
    if (lies_in(s->map, &w))
        return read_part(s, &w, reterr);
    while (w.bytes && r == PEN_OK) {
        bool last = w.extent == s->map->n_extents;
        PenExtent e = pen__map_extent(s->map, last ? w.extent - 1 : w.extent);
        uint64_t skipped = last ? e.skipped + e.bytes : e.skipped;
        if (!last && e.offset <= w.offset) {
            r = read_extents(s, &w, reterr);
            continue;
        }
        uint64_t n = last ? w.bytes : PEN_MIN(w.bytes, e.offset - w.offset);
        r = read_stored(s, w.to, n, w.offset, skipped, reterr);
        advance(&w, n);
    }
    return r;
}

static int mapped_read_v(PenSource *source, const struct iovec *v, int n, uint64_t offset,
                         const PenArrival *arrival, PenError *reterr)
{
    int r = PEN_OK;
    if (source->is_remote)
        return gathered_read_v((MappedSource *)source, v, n, offset, pen__arrival_is_again(arrival),
                               reterr);
    for (int i = 0; i < n && r == PEN_OK; i++) {
        r = mapped_read(source, v[i].iov_base, v[i].iov_len, offset, 0, reterr);
        offset += v[i].iov_len;
    }
    return r;
}

static int mapped_origin(PenSource *source, uint64_t offset, PenOrigin *ret, PenError *reterr)
{
    MappedSource *s = (MappedSource *)source;
    PenFileStat st;
    uint64_t i = pen__map_find(s->map, offset);
    if (i == s->map->n_extents)
        return 0;
    PenExtent e = pen__map_extent(s->map, i);
    if (offset < e.offset)
        return 0;
    PenMappedFile f = pen__map_file(s->map, e.file);
    PenOutsideFile file = outside_file(s, e.file);
    snprintf(ret->name, sizeof ret->name, "%.*s, offset %" PRIu64, (int)PEN_MIN(f.path_bytes, 400u),
             f.path, e.source + (offset - e.offset));
    int r = s->shared->outside ? pen__outside_stat(s->shared->outside, &file, &st, reterr) : -1;
    ret->is_modified = r == PEN_OK && st.mtime_ns && st.mtime_ns != f.mtime_ns;
    return r == PEN_E_CORRUPT ? r : 1;
}

/* ---- maps of a pack -------------------------------------------------------------------------- */

static void release_map(SharedMap *m)
{
    if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
        return;
    if (m->outside)
        pen__outside_forget(m->outside, m->owner);
    pen__map_free(&m->map);
    pen__free(m);
}

int pen__maps_new(uint64_t n_shards, PenOutside *outside, PenMaps **ret)
{
    PenMaps *maps = pen__zalloc(sizeof *maps);
    SharedMap **kept = pen__alloc_array(PEN_MAX(n_shards, 1u), sizeof *kept);
    if (!maps || !kept) {
        pen__free(maps);
        pen__free(kept);
        return PEN_E_NO_MEMORY;
    }
    memset(kept, 0, (size_t)n_shards * sizeof *kept);
    pthread_mutex_init(&maps->mutex, NULL);
    maps->outside = outside;
    maps->kept = kept;
    maps->n_shards = n_shards;
    *ret = maps;
    return PEN_OK;
}

void pen__maps_close(PenMaps **maps)
{
    PenMaps *m = *maps;
    *maps = NULL;
    if (!m)
        return;
    for (uint64_t i = 0; i < m->n_shards; i++)
        release_map(m->kept[i]);
    pthread_mutex_destroy(&m->mutex);
    pen__free(m->kept);
    pen__free(m);
}

static SharedMap *find_map(PenMaps *maps, uint64_t number)
{
    pthread_mutex_lock(&maps->mutex);
    SharedMap *m = maps->kept[number];
    if (m)
        atomic_fetch_add(&m->refs, 1);
    pthread_mutex_unlock(&maps->mutex);
    return m;
}

static void keep_map(PenMaps *maps, uint64_t number, SharedMap *m)
{
    uint64_t bytes = m->map.bytes + sizeof *m;
    pthread_mutex_lock(&maps->mutex);
    if (!maps->kept[number] && bytes <= KEPT_BYTES - maps->bytes) {
        maps->kept[number] = m;
        maps->bytes += bytes;
        atomic_fetch_add(&m->refs, 1);
    }
    pthread_mutex_unlock(&maps->mutex);
}

static int read_map(PenSource *file, const uint8_t *id, PenOutside *outside, SharedMap **ret,
                    PenError *reterr)
{
    SharedMap *m = pen__zalloc(sizeof *m);
    if (!m)
        return pen__fail_memory(reterr, WHERE, file->name);
    int r = pen__map_read(file, id, &m->map, reterr);
    if (r < 0) {
        pen__free(m);
        return r;
    }
    m->outside = outside;
    m->owner = outside ? pen__outside_owner(outside) : 0;
    atomic_init(&m->is_checked, false);
    atomic_init(&m->refs, 1);
    *ret = m;
    return PEN_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void mapped_close(PenSource *source)
{
    MappedSource *s = (MappedSource *)source;
    release_map(s->shared);
    pen__source_close(&s->file);
    pen__free(s);
}

static const PenSourceClass mapped_class = {
    .read = mapped_read, .close = mapped_close, .read_v = mapped_read_v, .origin = mapped_origin};

int pen__mapped_open(PenSource **source, const uint8_t *id, PenMaps *maps, uint64_t number,
                     PenError *reterr)
{
    MappedSource *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, (*source)->name);
    s->shared = maps ? find_map(maps, number) : NULL;
    int r =
        s->shared ? PEN_OK : read_map(*source, id, maps ? maps->outside : NULL, &s->shared, reterr);
    if (r < 0) {
        pen__free(s);
        return r;
    }
    PenOutside *outside = s->shared->outside;
    s->map = &s->shared->map;
    s->base =
        (PenSource){.class_ = &mapped_class,
                    .name = (*source)->name,
                    .bytes = s->map->file_bytes,
                    .is_remote = (*source)->is_remote || (outside && pen__outside_place(outside))};
    s->file = *source;
    s->maps = maps;
    s->number = number;
    *source = &s->base;
    return PEN_OK;
}

void pen__mapped_settle(PenSource *source)
{
    if (source->class_ == &mapped_class)
        pen__source_settle(((MappedSource *)source)->file);
}

const PenMap *pen__mapped_map(const PenSource *source)
{
    return source->class_ == &mapped_class ? ((const MappedSource *)source)->map : NULL;
}

static int check_sizes(const uint8_t *table, uint64_t n_blocks, const char *name, PenError *reterr)
{
    for (uint64_t i = 0; i < n_blocks; i++) {
        uint64_t bytes = pen__load64(table + i * PEN_BLOCK_ENTRY_BYTES + 8);
        if (bytes > MOST_BLOCK_BYTES)
            return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                             "%.300s: block %" PRIu64 " has %" PRIu64
                             " bytes, and those of objects may have %" PRIu64
                             "; index the objects with fewer samples in a block (--block-samples)",
                             name, i, bytes, (uint64_t)MOST_BLOCK_BYTES);
    }
    return PEN_OK;
}

int pen__mapped_check(PenSource *source, const uint8_t *table, uint64_t n_blocks, PenError *reterr)
{
    MappedSource *s = (MappedSource *)source;
    if (!pen__mapped_map(source) || atomic_load(&s->shared->is_checked))
        return PEN_OK;
    int r = pen__map_check_blocks(s->map, table, n_blocks, source->name, reterr);
    if (r == PEN_OK && source->is_remote)
        r = check_sizes(table, n_blocks, source->name, reterr);
    if (r < 0)
        return r;
    atomic_store(&s->shared->is_checked, true);
    if (s->maps)
        keep_map(s->maps, s->number, s->shared);
    return PEN_OK;
}

uint64_t pen__mapped_stored(const PenSource *source)
{
    return pen__mapped_map(source) ? ((const MappedSource *)source)->file->bytes : 0;
}

uint64_t pen__mapped_modified(PenSource *source)
{
    MappedSource *s = (MappedSource *)source;
    uint64_t n = 0;
    if (!pen__mapped_map(source) || !s->shared->outside || source->is_remote)
        return 0;
    for (uint32_t i = 0; i < s->map->n_files; i++) {
        PenOutsideFile file = outside_file(s, i);
        PenFileStat st;
        if (pen__outside_stat(s->shared->outside, &file, &st, NULL) == PEN_OK)
            n += st.mtime_ns != pen__map_file(s->map, i).mtime_ns;
    }
    return n;
}
