/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/reader/pieces.h"

#include <string.h>

#include "base/attr.h"
#include "pack/reader/cached.h"

#define WHERE "pack/pieces"

/* The number of an entry: shard, then piece. */
enum { PIECE_BITS = 32, MOST_SHARDS = 1 << 28 };
#define MOST_BYTES (PEN_PIECE_BYTES << PIECE_BITS)

/* Missing pieces that come with one request. They are in memory, beside that of a loader. */
enum { MOST_AT_ONCE = 4 };

typedef struct PieceSource {
    PenSource base;
    PenSource *origin; /* ours */
    PenPack *pack;
    uint64_t first; /* number of its first piece */
    uint64_t end;   /* what follows, the tail, is an entry of its own */
} PieceSource;

/* A read that is under way. */
typedef struct PieceRead {
    PenCached base; /* of the piece with the byte at `from` */
    PieceSource *s;
    uint8_t *to;        /* of the byte at `from` */
    uint64_t from, end; /* in the file, what is left */
    PenBuf fetched;
    uint64_t fetched_bytes;
    uint64_t n_fetched; /* pieces */
} PieceRead;

static uint64_t start_of(const PieceSource *s, uint64_t number)
{
    return (number - s->first) * PEN_PIECE_BYTES;
}

static uint64_t end_of(const PieceSource *s, uint64_t number)
{
    return PEN_MIN(start_of(s, number) + PEN_PIECE_BYTES, s->end);
}

static uint64_t number_at(const PieceSource *s, uint64_t offset)
{
    return s->first + offset / PEN_PIECE_BYTES;
}

static PenCacheKey key_of(uint64_t number)
{
    return (PenCacheKey){PEN_CACHE_PIECE, number};
}

static bool is_cached(const PieceSource *s, uint64_t number)
{
    PenCacheEntry entry;
    if (!pen__cache_find(s->pack->cache, key_of(number), &entry))
        return false;
    pen__cache_leave(&entry);
    return true;
}

static void advance(PieceRead *r, uint64_t bytes)
{
    r->from += bytes;
    r->to += bytes;
}

/* ---- one piece at a time, among the threads of this process ---- */

static bool try_begin(const PieceSource *s, uint64_t number)
{
    PenPack *p = s->pack;
    pthread_mutex_lock(&p->mutex);
    bool begun = pen__loading_try(p, number + PEN_LOADING_PIECE);
    pthread_mutex_unlock(&p->mutex);
    return begun;
}

/* 0: somebody was fetching it, and is not now. */
static bool wait_and_begin(const PieceSource *s, uint64_t number)
{
    PenPack *p = s->pack;
    uint64_t look_ns = 0;
    pthread_mutex_lock(&p->mutex);
    bool waited = pen__loading_wait(p, number + PEN_LOADING_PIECE, &look_ns);
    if (!waited)
        pen__loading_begin(p, number + PEN_LOADING_PIECE);
    pthread_mutex_unlock(&p->mutex);
    return !waited;
}

static void end_loading(const PieceSource *s, uint64_t number)
{
    PenPack *p = s->pack;
    pthread_mutex_lock(&p->mutex);
    pen__loading_end(p, number + PEN_LOADING_PIECE);
    pthread_mutex_unlock(&p->mutex);
}

/* ---- from the cache ---- */

static int look(PenCached *w)
{
    PieceRead *r = (PieceRead *)w;
    PenCache *cache = w->pack->cache;
    uint64_t start = start_of(r->s, w->key.number), end = end_of(r->s, w->key.number);
    uint64_t bytes = PEN_MIN(end, r->end) - r->from;
    PenCacheEntry entry;
    if (!pen__cache_find(cache, w->key, &entry))
        return 0;
    if (entry.bytes != end - start) {
        pen__cache_leave(&entry);
        return -1;
    }
    if (!pen__cache_read_part(&entry, r->from - start, bytes, r->to))
        return -1;
    return 1;
}

static void count_hit(PieceRead *r)
{
    PenCache *cache = r->s->pack->cache;
    uint64_t bytes = PEN_MIN(end_of(r->s, r->base.key.number), r->end) - r->from;
    pen__cache_count(cache, PEN_COUNT_HITS, 1);
    pen__cache_count(cache, PEN_COUNT_BYTES_CACHE, bytes);
    advance(r, bytes);
}

/* ---- from where the pack is ---- */

static void count_missed(const PieceSource *s, uint64_t pieces, uint64_t bytes)
{
    pen__cache_count(s->pack->cache, PEN_COUNT_MISSES, pieces);
    pen__cache_count(s->pack->cache, PEN_COUNT_BYTES_ORIGIN, bytes);
}

/* Ours to fetch too, or not. */
static bool claim_more(const PieceSource *s, uint64_t number)
{
    PenCache *cache = s->pack->cache;
    if (is_cached(s, number) || !try_begin(s, number))
        return false;
    if (pen__cache_claim(cache, key_of(number)) > 0) {
        if (!is_cached(s, number))
            return true;
        pen__cache_release(cache, key_of(number));
    }
    end_loading(s, number);
    return false;
}

static void keep_more(PieceRead *r, uint64_t number, bool is_good)
{
    const PieceSource *s = r->s;
    PenCache *cache = s->pack->cache;
    const uint8_t *data = r->fetched.data + (number - r->base.key.number) * PEN_PIECE_BYTES;
    if (is_good)
        (void)pen__cache_store(cache, key_of(number), data,
                               end_of(s, number) - start_of(s, number));
    pen__cache_release(cache, key_of(number));
    end_loading(s, number);
}

/* The piece, and those behind it that are needed and missing: one request. */
static int fetch(PenCached *w, PenError *reterr)
{
    PieceRead *r = (PieceRead *)w;
    PieceSource *s = r->s;
    uint64_t first = w->key.number, next = first + 1, start = start_of(s, first);
    int status = PEN_E_NO_MEMORY;
    while (next - first < MOST_AT_ONCE && start_of(s, next) < r->end && claim_more(s, next))
        next++;
    r->n_fetched = next - first;
    r->fetched_bytes = end_of(s, next - 1) - start;
    r->fetched.bytes = 0;
    if (pen__buf_reserve(&r->fetched, (size_t)r->fetched_bytes) < 0)
        pen__fail_memory(reterr, WHERE, s->base.name);
    else
        status =
            pen__source_read(s->origin, r->fetched.data, (size_t)r->fetched_bytes, start, reterr);
    if (status == PEN_OK)
        memcpy(r->to, r->fetched.data + (r->from - start),
               (size_t)(PEN_MIN(start + r->fetched_bytes, r->end) - r->from));
    for (uint64_t i = first + 1; i < next; i++)
        keep_more(r, i, status == PEN_OK);
    return status;
}

static const void *give(PenCached *w, uint64_t *ret_bytes)
{
    const PieceRead *r = (const PieceRead *)w;
    *ret_bytes = end_of(r->s, w->key.number) - start_of(r->s, w->key.number);
    return r->fetched.data;
}

/* Without storing it: what is needed is read, up to the next piece that is there. */
static int read_uncached(PieceRead *r, PenError *reterr)
{
    PieceSource *s = r->s;
    uint64_t first = r->base.key.number, next = first + 1;
    while (start_of(s, next) < r->end && !is_cached(s, next))
        next++;
    uint64_t bytes = PEN_MIN(end_of(s, next - 1), r->end) - r->from;
    int status = pen__source_read(s->origin, r->to, (size_t)bytes, r->from, reterr);
    if (status < 0)
        return status;
    count_missed(s, next - first, bytes);
    advance(r, bytes);
    return PEN_OK;
}

static int get(PieceRead *r, PenError *reterr)
{
    const PieceSource *s = r->s;
    int status = pen__cached_get(&r->base, reterr);
    if (status == 1)
        count_hit(r);
    /* Beside what is needed may be what is missing: another file of a mapped shard. */
    if (status == PEN_E_CORRUPT)
        return read_uncached(r, reterr);
    if (status != PEN_OK)
        return PEN_MIN(status, PEN_OK);
    count_missed(s, r->n_fetched, r->fetched_bytes);
    advance(r, PEN_MIN(start_of(s, r->base.key.number) + r->fetched_bytes, r->end) - r->from);
    return PEN_OK;
}

static int read_next(PieceRead *r, PenError *reterr)
{
    const PieceSource *s = r->s;
    uint64_t number = number_at(s, r->from);
    r->base.key = key_of(number);
    r->base.bytes = end_of(s, number) - start_of(s, number);
    do {
        if (look(&r->base) > 0) {
            count_hit(r);
            return PEN_OK;
        }
        if (!pen__cache_wants(s->pack->cache, r->base.bytes))
            return read_uncached(r, reterr);
    } while (!wait_and_begin(s, number));
    int status = get(r, reterr);
    end_loading(s, number);
    return status;
}

/* ---- the source ---- */

/* A piece that somebody fetches now is not the one that was wrong. */
static void drop_piece(const PieceSource *s, uint64_t number)
{
    PenCache *cache = s->pack->cache;
    if (!try_begin(s, number))
        return;
    if (pen__cache_claim(cache, key_of(number)) > 0) {
        if (is_cached(s, number)) {
            pen__cache_count(cache, PEN_COUNT_BAD, 1);
            pen__cache_drop(cache, key_of(number));
        }
        pen__cache_release(cache, key_of(number));
    }
    end_loading(s, number);
}

static void pieces_forget(PenSource *source, uint64_t bytes, uint64_t offset)
{
    const PieceSource *s = (const PieceSource *)source;
    uint64_t end = PEN_MIN(offset + bytes, s->end);
    for (uint64_t at = offset; at < end; at += PEN_PIECE_BYTES - at % PEN_PIECE_BYTES)
        drop_piece(s, number_at(s, at));
}

static int pieces_read(PenSource *source, void *buf, size_t bytes, uint64_t offset, int again,
                       PenError *reterr)
{
    PieceSource *s = (PieceSource *)source;
    PieceRead r = {.base = {.pack = s->pack, .look = look, .fetch = fetch, .give = give},
                   .s = s,
                   .to = buf,
                   .from = offset,
                   .end = offset + bytes};
    int status = PEN_OK;
    if (again) {
        pieces_forget(source, bytes, offset);
        return pen__source_read_again(s->origin, buf, bytes, offset, reterr);
    }
    if (r.end > s->end)
        return pen__source_read(s->origin, buf, bytes, offset, reterr);
    while (status == PEN_OK && r.from < r.end)
        status = read_next(&r, reterr);
    pen__buf_free(&r.fetched);
    return status;
}

static int pieces_origin(PenSource *source, uint64_t offset, PenOrigin *ret, PenError *reterr)
{
    return pen__source_origin(((PieceSource *)source)->origin, offset, ret, reterr);
}

static void pieces_close(PenSource *source)
{
    PieceSource *s = (PieceSource *)source;
    pen__source_close(&s->origin);
    pen__free(s);
}

static const PenSourceClass pieces_class = {
    .read = pieces_read, .close = pieces_close, .origin = pieces_origin, .forget = pieces_forget};

int pen__pieces_open(PenPack *p, uint64_t shard, PenSource **source, PenError *reterr)
{
    uint64_t tail = p->m.shards[shard].tail_bytes;
    if (shard >= MOST_SHARDS || (*source)->bytes >= MOST_BYTES || tail > (*source)->bytes)
        return PEN_OK;
    PieceSource *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, (*source)->name);
    *s = (PieceSource){.base = {.class_ = &pieces_class,
                                .name = (*source)->name,
                                .bytes = (*source)->bytes,
                                .is_remote = 1}, /* what does not fit is read again */
                       .origin = *source,
                       .pack = p,
                       .first = shard << PIECE_BITS,
                       .end = (*source)->bytes - tail};
    *source = &s->base;
    return PEN_OK;
}
