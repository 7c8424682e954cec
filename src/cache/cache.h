/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of blocks that processes of one user share. It knows nothing of packs but their ids:
 * whether an entry is what it should be is for the caller to see.
 *
 *     DIR/penstock-cache              marker, accounting, and the file whose bytes are locked
 *     DIR/<pack id>/about             when it was opened last, and from where
 *     DIR/<pack id>/new-<random>      an entry that is being written
 *     DIR/<pack id>/<xx>/<n>.block    entry n; xx is n modulo 256
 *     DIR/<pack id>/<xx>/<n>.tail
 *     DIR/<pack id>/<xx>/<n>.piece
 *
 * Locks belong to the open file, so they are gone when their process is, however that ends. */
#ifndef PEN_CACHE_CACHE_H
#define PEN_CACHE_CACHE_H

#include <stddef.h>

#include <penstock/cache.h>

#include "base/error.h"

typedef struct PenCache PenCache;

typedef struct PenCacheKey {
    enum { PEN_CACHE_BLOCK = 0, PEN_CACHE_TAIL = 1, PEN_CACHE_PIECE = 2 } kind;
    uint64_t number;
} PenCacheKey;

/* What is counted. The first ones are counted by the caller, from PEN_COUNT_STORED on here. */
enum {
    PEN_COUNT_HITS,
    PEN_COUNT_MISSES,
    PEN_COUNT_TAIL_HITS,
    PEN_COUNT_TAIL_MISSES,
    PEN_COUNT_BYTES_CACHE,
    PEN_COUNT_BYTES_ORIGIN,
    PEN_COUNT_WAITED,
    PEN_COUNT_BAD,
    PEN_COUNT_STORED,
    PEN_COUNT_STORED_BYTES,
    PEN_COUNT_FULL,
    PEN_COUNT_DISK,
    PEN_COUNT_ERROR,
    PEN_COUNT_BUSY,
    PEN_COUNT_EVICTED,
    PEN_COUNTS
};

/* For the pack with this id, which was opened from `from`. Makes the directory when it is not
 * there. */
int pen__cache_open(const PenCacheSettings *settings, const uint8_t id[16], const char *from,
                    PenCache **ret, PenError *reterr);
void pen__cache_close(PenCache **cache); /* accepts NULL */

void pen__cache_count(PenCache *cache, int what, uint64_t n);
void pen__cache_stats(PenCache *cache, PenCacheStats *ret);
uint64_t pen__cache_wait_ns(const PenCache *cache);

/* An entry that is there, open. */
typedef struct PenCacheEntry {
    int fd;
    uint64_t bytes;
} PenCacheEntry;

/* 1: it is there, and must be read or left. 0: it is not, or cannot be had. */
int pen__cache_find(PenCache *cache, PenCacheKey key, PenCacheEntry *ret);
/* All of it, to memory of that size, and closes it. 1 or 0. */
int pen__cache_read(PenCacheEntry *entry, void *buf);
/* A part of it, which ends with it at most, and closes it. 1 or 0. */
int pen__cache_read_part(PenCacheEntry *entry, uint64_t offset, uint64_t bytes, void *buf);
void pen__cache_leave(PenCacheEntry *entry);

/* The right to fetch an entry, among all processes. 1: ours, until it is released. 0: somebody
 * else's. < 0: there are no locks to be had. Threads of one open pack keep each other out by
 * themselves. */
int pen__cache_claim(PenCache *cache, PenCacheKey key);
void pen__cache_release(PenCache *cache, PenCacheKey key);

/* Would this many bytes be stored, as things are? Counts why when not. */
int pen__cache_wants(PenCache *cache, uint64_t bytes);
/* With the claim. 1: stored. 0: not, which is counted and no error. */
int pen__cache_store(PenCache *cache, PenCacheKey key, const void *data, uint64_t bytes);
/* With the claim: removes an entry that is not what it should be. */
void pen__cache_drop(PenCache *cache, PenCacheKey key);

#endif
