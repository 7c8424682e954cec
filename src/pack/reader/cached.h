/* SPDX-License-Identifier: Apache-2.0 */
/* Something that is in the cache, or is fetched by one process and put there for all. */
#ifndef PEN_PACK_READER_CACHED_H
#define PEN_PACK_READER_CACHED_H

#include "pack/reader/reader_impl.h"

typedef struct PenCached {
    PenPack *pack;
    PenCacheKey key;
    uint64_t bytes; /* about how many it has */
    /* From the cache: 1: there and right. 0: not there. -1: there and wrong. */
    int (*look)(struct PenCached *w);
    /* From where the pack is. */
    int (*fetch)(struct PenCached *w, PenError *reterr);
    /* What was fetched, if it is right; NULL: not to be kept. Lives until the next call. */
    const void *(*give)(struct PenCached *w, uint64_t *ret_bytes);
} PenCached;

/* 1: from the cache. 0: fetched. < 0: it failed. */
int pen__cached_get(PenCached *w, PenError *reterr);

#endif
