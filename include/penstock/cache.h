/* SPDX-License-Identifier: Apache-2.0 */
/* A directory on a fast disk that keeps blocks of packs which lie elsewhere: in an object store, on
 * a slow disk, on NFS. All processes and jobs of a user on a node may share it.
 *
 * Caveats. What is taken from it is checked like what comes over a network: a damaged entry is
 * fetched again and replaced. A disk that is full or fails is no error for readers; it is counted.
 * Nothing is deleted but what the cache has made itself. */
#ifndef PENSTOCK_CACHE_H
#define PENSTOCK_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>
#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenCacheSettings {
    uint32_t struct_size;  /* set by the init call */
    uint32_t wait_ms;      /* for a block that another process fetches; 0: 10,000 */
    const char *directory; /* made when it is not there; else a cache, or empty */
    uint64_t bytes;        /* the most that all packs in it may take; 0: half of the disk */
} PenCacheSettings;

PEN_API void pen_cache_settings_init(PenCacheSettings *settings);
/* From now on blocks of the pack come from the cache, and those that do not are put there. Right
 * after opening, before anything is read of it. A pack on a local disk is then read by whole
 * blocks. */
PEN_NODISCARD PEN_API int pen_pack_cache(PenPack *pack, const PenCacheSettings *settings,
                                         PenError *reterr);

typedef struct PenCacheStats { /* of one open pack */
    uint32_t struct_size;
    uint64_t hits, misses;           /* blocks */
    uint64_t tail_hits, tail_misses; /* indexes of shards */
    uint64_t bytes_cache;            /* that came from the cache */
    uint64_t bytes_origin;           /* from where the pack is */
    uint64_t waited;                 /* hits that another process was fetching */
    uint64_t bad; /* entries that did not fit their checksums, and were replaced */
    uint64_t stored, stored_bytes;
    uint64_t not_stored_full;  /* `bytes` are reached, and no other pack can be removed */
    uint64_t not_stored_disk;  /* the disk is full */
    uint64_t not_stored_error; /* it failed, or is read-only */
    uint64_t not_stored_busy;  /* another process held a lock for too long */
    uint64_t evicted_bytes;    /* of packs not in use, to make room */
} PenCacheStats;

/* All 0 when the pack has no cache. struct_size is set. */
PEN_API void pen_pack_cache_stats(const PenPack *pack, PenCacheStats *ret);

/* ---- the directory -------------------------------------------------------------------------- */

typedef struct PenCachePack {
    uint8_t id[16]; /* of the pack */
    uint64_t entries, bytes;
    uint64_t opened_s; /* when it was opened last, seconds since 1970; 0: not known */
    int32_t in_use;
    char from[256]; /* where it was opened from; "" when not known */
} PenCachePack;

typedef struct PenCacheTotal {
    uint64_t packs, entries, bytes;
    uint64_t removed_entries, removed_bytes; /* by pen_cache_clear */
    uint64_t disk_bytes, disk_free_bytes;
} PenCacheTotal;

/* What is in it: `each` (may be NULL) is called for every pack, the one opened longest ago first.
 */
PEN_NODISCARD PEN_API int pen_cache_look(const char *directory,
                                         void (*each)(void *ctx, const PenCachePack *pack),
                                         void *ctx, PenCacheTotal *ret, PenError *reterr);
/* Removes all packs that are not in use; `ret` says what there is then. */
PEN_NODISCARD PEN_API int pen_cache_clear(const char *directory, PenCacheTotal *ret,
                                          PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
