/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a pack that has a cache, and the public calls for that. */
#include <string.h>

#include "pack/reader/cached.h"

#define WHERE "pack/cache"

typedef struct Block {
    PenCached base;
    PenShardRef *shard;
    uint8_t *data;
    uint64_t bytes;
} Block;

static int look(PenCached *w)
{
    Block *b = (Block *)w;
    PenCacheEntry entry;
    if (!pen__cache_find(w->pack->cache, w->key, &entry))
        return 0;
    if (entry.bytes != b->bytes) {
        pen__cache_leave(&entry);
        return -1;
    }
    if (!pen__cache_read(&entry, b->data))
        return -1;
    int r = pen__block_accept(w->pack, w->key.number, b->shard, b->data);
    return r == PEN_OK ? 1 : r == PEN_E_CORRUPT ? -1 : 0;
}

static int fetch(PenCached *w, PenError *reterr)
{
    Block *b = (Block *)w;
    return pen__block_fetch(w->pack, w->key.number, b->shard, b->data, reterr);
}

static const void *give(PenCached *w, uint64_t *ret_bytes)
{
    Block *b = (Block *)w;
    *ret_bytes = b->bytes;
    return pen__block_accept(w->pack, w->key.number, b->shard, b->data) == PEN_OK ? b->data : NULL;
}

int pen__block_get(PenPack *p, uint64_t block, PenShardRef *shard, uint8_t *data, PenError *reterr)
{
    PenBlockEntry e = pen__shard_block(&shard->shard, block - p->first_blocks[shard->number]);
    Block b = {.base = {.pack = p,
                        .key = {PEN_CACHE_BLOCK, block},
                        .bytes = e.bytes,
                        .look = look,
                        .fetch = fetch,
                        .give = give},
               .shard = shard,
               .data = data,
               .bytes = e.bytes};
    int r = pen__cached_get(&b.base, reterr);
    if (r < 0)
        return r;
    pen__cache_count(p->cache, r ? PEN_COUNT_HITS : PEN_COUNT_MISSES, 1);
    pen__cache_count(p->cache, r ? PEN_COUNT_BYTES_CACHE : PEN_COUNT_BYTES_ORIGIN, e.bytes);
    return PEN_OK;
}

/* 1: from the cache. */
static int look_part(PenPack *p, const PenBlock *b, uint64_t offset, uint64_t bytes, void *buf)
{
    PenCacheEntry entry;
    if (!pen__cache_find(p->cache, (PenCacheKey){PEN_CACHE_BLOCK, b->number}, &entry))
        return 0;
    if (entry.bytes != b->whole_bytes) {
        pen__cache_leave(&entry);
        return 0;
    }
    if (!pen__cache_read_part(&entry, offset, bytes, buf))
        return 0;
    pen__cache_count(p->cache, PEN_COUNT_HITS, 1);
    pen__cache_count(p->cache, PEN_COUNT_BYTES_CACHE, bytes);
    return 1;
}

int pen__block_get_part(PenPack *p, const PenBlock *b, uint64_t offset, uint64_t bytes, void *buf,
                        PenError *reterr)
{
    if (look_part(p, b, offset, bytes, buf))
        return PEN_OK;
    if (!pen__cache_wants(p->cache, b->whole_bytes)) { /* it would be fetched for nothing */
        pen__cache_count(p->cache, PEN_COUNT_MISSES, 1);
        pen__cache_count(p->cache, PEN_COUNT_BYTES_ORIGIN, bytes);
        return pen__source_read(b->shard->shard.source, buf, (size_t)bytes, b->offset + offset,
                                reterr);
    }
    uint8_t *all = pen__alloc_array(b->whole_bytes + PEN_SLACK, 1);
    if (!all)
        return pen__fail_memory(reterr, WHERE, p->path);
    int r = pen__block_get(p, b->number, b->shard, all, reterr);
    if (r == PEN_OK)
        memcpy(buf, all + offset, (size_t)bytes);
    pen__free_large(all, b->whole_bytes + PEN_SLACK);
    return r;
}

int pen_pack_cache(PenPack *pack, const PenCacheSettings *settings, PenError *reterr)
{
    int r = pen__pack_alive(pack, reterr);
    if (r < 0)
        return r;
    /* Indexes that are kept and whole blocks do not go together. */
    if (pack->cache || !pen__pack_is_fresh(pack))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: already in use; set the cache right after opening the pack",
                         pack->path);
    r = pen__cache_open(settings, pack->m.id, pack->path, &pack->cache, reterr);
    if (r < 0)
        return r;
    if (!pack->m.schema.has_videos) {
        pack->is_whole = true;
        pack->keep_bytes = WHOLE_KEEP_BYTES;
    }
    return PEN_OK;
}

void pen_pack_cache_stats(const PenPack *pack, PenCacheStats *ret)
{
    *ret = (PenCacheStats){0};
    if (pack->cache)
        pen__cache_stats(pack->cache, ret);
}
