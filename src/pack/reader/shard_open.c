/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a shard, from where the pack is or from the cache. One that is opened by a tail from the
 * cache asks for nothing until a block is needed that is not there too. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "io/remote_source.h"
#include "pack/mapped/mapped.h"
#include "pack/preload/layout.h"
#include "pack/reader/cached.h"
#include "pack/reader/pieces.h"

#define WHERE "pack/cache"

/* The file of a mapped shard becomes the shard. */
static int map_source(PenPack *p, const PenShardEntry *e, PenSource **source, PenError *reterr)
{
    uint64_t number = (uint64_t)(e - p->m.shards);
    if (!e->stored_bytes)
        return PEN_OK;
    if ((*source)->bytes != e->stored_bytes)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: expected %" PRIu64 " bytes, found %" PRIu64
                         ": the shard is truncated or belongs to another pack",
                         (*source)->name, e->stored_bytes, (*source)->bytes);
    if (e->tail_bytes > e->stored_bytes) /* memory is taken for it before it is read */
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: expected a tail of %" PRIu64 " bytes, found a file of %" PRIu64,
                         (*source)->name, e->tail_bytes, e->stored_bytes);
    return pen__mapped_open(source, e->id, p->maps, number, reterr);
}

/* ---- a shard whose end is in memory, or all of it ------------------------------------------- */

typedef struct TailSource {
    PenSource base;
    PenPack *pack;
    const PenShardEntry *entry; /* of the manifest */
    char name[PEN_SHARD_NAME_BYTES];
    uint8_t *tail;
    size_t tail_bytes;
    PenSource *all; /* of a mapped shard that is preloaded: where all is read; NULL: it is not */
    pthread_mutex_t mutex; /* of `origin` */
    PenSource *origin;     /* NULL until it is needed */
} TailSource;

static int open_origin(TailSource *s, PenSource **ret, PenError *reterr)
{
    PenSource *origin = NULL;
    int r = s->pack->open(s->pack->open_ctx, s->name, &origin, reterr);
    if (r == PEN_OK)
        r = map_source(s->pack, s->entry, &origin, reterr);
    if (r == PEN_OK && s->tail) /* else it is for messages alone */
        r = pen__mapped_check(origin, s->tail, s->entry->n_blocks, reterr);
    if (r == PEN_OK)
        pen__mapped_settle(origin);
    if (r < 0) {
        pen__source_close(&origin);
        return r;
    }
    if (origin->bytes != s->base.bytes) {
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                      "%s: expected %llu bytes, found %llu: the shard is truncated or belongs to "
                      "another pack",
                      origin->name, (unsigned long long)s->base.bytes,
                      (unsigned long long)origin->bytes);
        pen__source_close(&origin);
        return r;
    }
    *ret = origin;
    return PEN_OK;
}

/* That takes requests, so it is done without the lock: of several at once the first is kept. */
static int get_origin(TailSource *s, PenSource **ret, PenError *reterr)
{
    PenSource *fresh = NULL;
    pthread_mutex_lock(&s->mutex);
    *ret = s->origin;
    pthread_mutex_unlock(&s->mutex);
    if (*ret)
        return PEN_OK;
    int r = open_origin(s, &fresh, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&s->mutex);
    if (!s->origin) {
        s->origin = fresh;
        fresh = NULL;
    }
    *ret = s->origin;
    pthread_mutex_unlock(&s->mutex);
    pen__source_close(&fresh);
    return PEN_OK;
}

/* An object need not be opened: its size is compared with every answer, and what comes with the
 * checksums that the tail has. */
static int read_origin(TailSource *s, void *buf, size_t bytes, uint64_t offset, int again,
                       PenError *reterr)
{
    PenRemote *remote = s->pack->store ? pen__store_remote(s->pack->store) : NULL;
    PenObject object = {.bytes = s->base.bytes};
    PenSource *origin = NULL;
    if (remote && !s->entry->stored_bytes)
        return pen__remote_read(remote, s->name, &object, buf, bytes, offset, again, reterr);
    int r = get_origin(s, &origin, reterr);
    if (r < 0)
        return r;
    return again ? pen__source_read_again(origin, buf, bytes, offset, reterr)
                 : pen__source_read(origin, buf, bytes, offset, reterr);
}

static int tail_read(PenSource *source, void *buf, size_t bytes, uint64_t offset, int again,
                     PenError *reterr)
{
    TailSource *s = (TailSource *)source;
    uint64_t tail_at = s->base.bytes - s->tail_bytes;
    if (s->all)
        return pen__source_read(s->all, buf, bytes, offset, reterr);
    if (offset >= tail_at && !again) {
        memcpy(buf, s->tail + (offset - tail_at), bytes);
        return PEN_OK;
    }
    int r = read_origin(s, buf, bytes, offset, again, reterr);
    if (r == PEN_E_NOT_FOUND) /* which would mean: no such sample */
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                      "%s: shard %s is missing; its samples cannot be read", s->pack->path,
                      s->name);
    return r;
}

static int tail_origin(PenSource *source, uint64_t offset, PenOrigin *ret, PenError *reterr)
{
    TailSource *s = (TailSource *)source;
    PenSource *origin = NULL;
    if (!s->entry->stored_bytes)
        return 0;
    int r = get_origin(s, &origin, NULL);
    return r < 0 ? 0 : pen__source_origin(origin, offset, ret, reterr);
}

static void tail_close(PenSource *source)
{
    TailSource *s = (TailSource *)source;
    pen__source_close(&s->all);
    pen__source_close(&s->origin);
    pthread_mutex_destroy(&s->mutex);
    pen__free((char *)s->base.name);
    pen__free(s->tail);
    pen__free(s);
}

static const PenSourceClass tail_class = {
    .read = tail_read, .close = tail_close, .origin = tail_origin};

static char *full_name(const char *path, const char *name)
{
    size_t n = strlen(path), m = strlen(name);
    char *full = pen__alloc(n + m + 2);
    if (!full)
        return NULL;
    memcpy(full, path, n);
    full[n] = '/';
    memcpy(full + n + 1, name, m + 1);
    return full;
}

/* Takes `tail` over in any case. */
static PenSource *new_source(PenPack *p, const PenShardEntry *e, uint8_t *tail, size_t bytes)
{
    TailSource *s = pen__zalloc(sizeof *s);
    if (!s) {
        pen__free(tail);
        return NULL;
    }
    pthread_mutex_init(&s->mutex, NULL);
    pen__shard_name(e->id, s->name);
    s->pack = p;
    s->entry = e;
    s->tail = tail;
    s->tail_bytes = bytes;
    s->base = (PenSource){.class_ = &tail_class,
                          .name = full_name(p->path, s->name),
                          .bytes = e->file_bytes,
                          .is_remote = p->is_remote};
    if (s->base.name)
        return &s->base;
    tail_close(&s->base);
    return NULL;
}

/* ---- from where the pack is ---- */

/* The tail, and behind it the map of a mapped shard, which has an extent for most samples. */
static uint64_t end_bytes(const PenPack *p, uint64_t number)
{
    const PenShardEntry *e = &p->m.shards[number];
    uint64_t samples = e->stored_bytes ? PEN_MIN(e->samples_used, e->stored_bytes) : 0;
    return e->tail_bytes + PEN_MIN(samples, PEN_ALL) * (PEN_EXTENT_BYTES + PEN_MAPPED_FILE_BYTES);
}

/* What is read next is the tail: from afar it comes with the first request. */
static int open_source(PenPack *p, uint64_t number, const char *name, PenSource **ret,
                       PenError *reterr)
{
    if (p->preload)
        return pen__preload_source(p->preload, &p->m, p->path, number, ret, reterr);
    if (p->store)
        return pen__store_source_end(p->store, name, end_bytes(p, number), ret, reterr);
    return p->open(p->open_ctx, name, ret, reterr);
}

/* A mapped shard in memory, which can still tell where its bytes come from. */
static int wrap_preloaded(PenPack *p, const PenShardEntry *e, PenSource **source, PenError *reterr)
{
    if (!e->stored_bytes)
        return PEN_OK;
    PenSource *wrapped = new_source(p, e, NULL, 0);
    if (!wrapped)
        return pen__fail_memory(reterr, WHERE, p->path);
    ((TailSource *)wrapped)->all = *source;
    *source = wrapped;
    return PEN_OK;
}

/* The source of a shard with all of its bytes. */
static int open_whole(PenPack *p, uint64_t number, const char *name, PenSource **ret,
                      PenError *reterr)
{
    const PenShardEntry *e = &p->m.shards[number];
    int r = open_source(p, number, name, ret, reterr);
    if (r < 0)
        return r;
    return p->preload ? wrap_preloaded(p, e, ret, reterr) : map_source(p, e, ret, reterr);
}

static int open_shard(PenPack *p, uint64_t number, PenSource *source, PenShard *ret,
                      PenError *reterr)
{
    const PenShardEntry *e = &p->m.shards[number];
    int r = pen__shard_open(ret, source, e->id, e, reterr);
    if (r < 0)
        return r;
    ret->entry.stored_bytes = e->stored_bytes;
    r = pen__mapped_check(source, ret->tail, ret->entry.n_blocks, reterr);
    if (r < 0)
        pen__free(ret->tail);
    return r;
}

static int fetch_shard(PenPack *p, uint64_t number, PenShard *ret, PenError *reterr)
{
    const PenShardEntry *e = &p->m.shards[number];
    char name[PEN_SHARD_NAME_BYTES];
    PenSource *source = NULL;
    PenError now = {0}, before = {0};
    int r = PEN_E_CORRUPT;
    pen__shard_name(e->id, name);
    for (int i = 0; i < PEN_REMOTE_READS && r == PEN_E_CORRUPT; i++) {
        pen__source_close(&source);
        r = open_whole(p, number, name, &source, &now);
        if (r == PEN_E_NOT_FOUND) /* which would mean: no such sample */
            return pen__fail(reterr, PEN_E_CORRUPT, "pack/reader",
                             "%s: shard %s is missing; its samples cannot be read", p->path, name);
        if (r == PEN_OK)
            r = open_shard(p, number, source, ret, &now);
        if (r == PEN_E_CORRUPT &&
            (!source || !source->is_remote || !pen__error_differs(&now, &before)))
            break;
    }
    if (r < 0 && reterr)
        *reterr = now;
    if (r == PEN_OK && !p->cache) /* which is going to keep it */
        pen__source_settle(source);
    if (r == PEN_OK)
        pen__mapped_settle(source);
    if (r == PEN_OK && ret->block_samples != p->m.block_samples) {
        r = pen__fail(reterr, PEN_E_CORRUPT, "pack/reader",
                      "%s: blocks of %" PRIu64 " samples, expected %" PRIu64
                      " as the manifest says",
                      source->name, ret->block_samples, p->m.block_samples);
        pen__free(ret->tail);
    }
    if (r < 0)
        pen__source_close(&source);
    return r;
}

/* ---- getting it ------------------------------------------------------------------------------ */

typedef struct Tail {
    PenCached base;
    const PenShardEntry *entry; /* of the manifest */
    PenShard shard;             /* that was opened */
} Tail;

static int look(PenCached *w)
{
    Tail *t = (Tail *)w;
    PenCacheEntry found;
    if (!pen__cache_find(w->pack->cache, w->key, &found))
        return 0;
    size_t bytes = (size_t)found.bytes;
    bool fits = found.bytes == t->entry->tail_bytes; /* which its digest covers */
    uint8_t *data = fits ? pen__alloc(bytes) : NULL;
    if (!data) {
        pen__cache_leave(&found);
        return fits ? 0 : -1;
    }
    if (!pen__cache_read(&found, data)) {
        pen__free(data);
        return -1;
    }
    PenSource *source = new_source(w->pack, t->entry, data, bytes);
    if (!source)
        return 0;
    int r = pen__shard_open(&t->shard, source, t->entry->id, t->entry, NULL);
    t->shard.entry.stored_bytes = t->entry->stored_bytes;
    if (r == PEN_OK && t->shard.block_samples == w->pack->m.block_samples)
        return 1;
    if (r == PEN_OK)
        pen__shard_close(&t->shard);
    else
        pen__source_close(&source);
    return r == PEN_E_NO_MEMORY ? 0 : -1;
}

static int fetch(PenCached *w, PenError *reterr)
{
    return fetch_shard(w->pack, w->key.number, &((Tail *)w)->shard, reterr);
}

static const void *give(PenCached *w, uint64_t *ret_bytes)
{
    Tail *t = (Tail *)w;
    *ret_bytes = t->shard.entry.tail_bytes;
    return t->shard.tail;
}

int pen__shard_get(PenPack *p, uint64_t number, PenShard *ret, PenError *reterr)
{
    if (!p->cache)
        return fetch_shard(p, number, ret, reterr);
    Tail t = {.base = {.pack = p,
                       .key = {PEN_CACHE_TAIL, number},
                       .bytes = p->m.shards[number].tail_bytes,
                       .look = look,
                       .fetch = fetch,
                       .give = give},
              .entry = &p->m.shards[number]};
    int r = pen__cached_get(&t.base, reterr);
    if (r < 0)
        return r;
    pen__cache_count(p->cache, r ? PEN_COUNT_TAIL_HITS : PEN_COUNT_TAIL_MISSES, 1);
    r = p->is_whole ? PEN_OK : pen__pieces_open(p, number, &t.shard.source, reterr);
    if (r < 0)
        pen__shard_close(&t.shard);
    else
        *ret = t.shard;
    return r;
}
