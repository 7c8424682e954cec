/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/reader/mapped.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

#define WHERE "pack/mapped"

/* Between two payloads a tar has headers and small members: to read over that much is faster than
 * to read twice. */
enum { GAP_BYTES = 16 * 1024 };

typedef struct MappedSource {
    PenSource base;
    PenSource *file; /* the stored bytes and the map */
    PenMap map;
    PenOutside *outside; /* may be NULL */
    uint64_t owner;
    bool is_checked; /* extents lie in payloads: files may be read */
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

static int read_scatter(MappedSource *s, const Scatter *c, PenError *reterr)
{
    PenMappedFile f = pen__map_file(&s->map, c->file);
    PenOutsideFile file = {s->owner, c->file, f.path_bytes, f.path, f.bytes};
    PenOutsideUse use;
    if (!s->is_checked) /* what is parsed is never taken from files */
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: extents outside of payloads: the map of the shard is damaged",
                         s->base.name);
    if (!s->outside)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE, "%s: cannot read files outside of it",
                         s->base.name);
    int r = pen__outside_take(s->outside, &file, &use, reterr);
    if (r < 0)
        return r;
    r = pen__source_read_v(use.source, c->v, c->n, c->source, NULL, reterr);
    pen__outside_put(s->outside, &use);
    return r;
}

/* The extent that the offset is in, and those behind it that one read can bring too. Stored bytes
 * between them are read on the way. */
static int read_extents(MappedSource *s, Want *w, PenError *reterr)
{
    PenExtent e = pen__map_extent(&s->map, w->extent);
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
        if (!w->bytes || w->extent == s->map.n_extents)
            break;
        e = pen__map_extent(&s->map, w->extent);
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

/* ---- the source ------------------------------------------------------------------------------ */

static int mapped_read(PenSource *source, void *buf, size_t bytes, uint64_t offset,
                       PEN_UNUSED int again, PenError *reterr)
{
    MappedSource *s = (MappedSource *)source;
    Want w = {buf, offset, bytes, pen__map_find(&s->map, offset)};
    int r = PEN_OK;
    while (w.bytes && r == PEN_OK) {
        bool last = w.extent == s->map.n_extents;
        PenExtent e = pen__map_extent(&s->map, last ? w.extent - 1 : w.extent);
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

static bool mapped_origin(const PenSource *source, uint64_t offset, char *ret, size_t cap)
{
    const MappedSource *s = (const MappedSource *)source;
    uint64_t i = pen__map_find(&s->map, offset);
    if (i == s->map.n_extents)
        return false;
    PenExtent e = pen__map_extent(&s->map, i);
    if (offset < e.offset)
        return false;
    PenMappedFile f = pen__map_file(&s->map, e.file);
    snprintf(ret, cap, "%.*s, offset %" PRIu64, (int)PEN_MIN(f.path_bytes, 400u), f.path,
             e.source + (offset - e.offset));
    return true;
}

static void mapped_close(PenSource *source)
{
    MappedSource *s = (MappedSource *)source;
    if (s->outside)
        pen__outside_forget(s->outside, s->owner);
    pen__source_close(&s->file);
    pen__map_free(&s->map);
    pen__free(s);
}

static const PenSourceClass mapped_class = {
    .read = mapped_read, .close = mapped_close, .origin = mapped_origin};

int pen__mapped_open(PenSource **source, const uint8_t *id, PenOutside *outside, PenError *reterr)
{
    MappedSource *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, (*source)->name);
    int r = pen__map_read(*source, id, &s->map, reterr);
    if (r < 0) {
        pen__free(s);
        return r;
    }
    s->base =
        (PenSource){.class_ = &mapped_class, .name = (*source)->name, .bytes = s->map.file_bytes};
    s->file = *source;
    s->outside = outside;
    s->owner = outside ? pen__outside_owner(outside) : 0;
    *source = &s->base;
    return PEN_OK;
}

const PenMap *pen__mapped_map(const PenSource *source)
{
    return source->class_ == &mapped_class ? &((const MappedSource *)source)->map : NULL;
}

int pen__mapped_check(PenSource *source, const uint8_t *table, uint64_t n_blocks, PenError *reterr)
{
    const PenMap *map = pen__mapped_map(source);
    int r = map ? pen__map_check_blocks(map, table, n_blocks, source->name, reterr) : PEN_OK;
    if (map && r == PEN_OK)
        ((MappedSource *)source)->is_checked = true;
    return r;
}

uint64_t pen__mapped_stored(const PenSource *source)
{
    return pen__mapped_map(source) ? ((const MappedSource *)source)->file->bytes : 0;
}
