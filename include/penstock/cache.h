/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A cache directory on a fast local disk for blocks of packs that are stored elsewhere: in an
 * object store, on a slow disk, on NFS. All processes and jobs of a user on a node can share it.
 *
 * Of packs with kept videos, the cache holds pieces of 1 MiB instead of blocks, and what is said of
 * blocks holds for them.
 *
 * Blocks from the cache are checked like blocks from the network: a damaged entry is fetched again
 * and replaced. A full or failing disk is not an error for readers; the statistics count it. The
 * library deletes only files that it created. */
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
    uint32_t wait_ms;      /**< longest wait for a block that another process fetches; 0 = 10,000 */
    const char *directory; /**< a cache or an empty directory; created if it does not exist */
    uint64_t bytes;        /**< limit for all packs in the cache together; 0 = half of the disk */
} PenCacheSettings;

PEN_API void pen_cache_settings_init(PenCacheSettings *settings);

/** Adds a cache to an open pack. Reads then take blocks from the cache, and store the blocks that
 * were missing there. Call it directly after pen_pack_open, before any other use of the pack. With
 * a cache, a pack on a local disk is read in complete blocks too, unless it has kept videos. */
PEN_NODISCARD PEN_API int pen_pack_cache(PenPack *pack, const PenCacheSettings *settings,
                                         PenError *reterr);

/** Counters of one open pack, since it was opened. */
typedef struct PenCacheStats {
    uint64_t hits, misses;           /**< blocks */
    uint64_t tail_hits, tail_misses; /**< shard indexes */
    uint64_t bytes_cache;            /**< bytes read from the cache */
    uint64_t bytes_origin;           /**< bytes read from the place of the pack */
    uint64_t waited;                 /**< hits that waited for another process to fetch the block */
    uint64_t bad;                    /**< damaged entries that were replaced */
    uint64_t stored, stored_bytes;   /**< entries written */
    uint64_t not_stored_full;  /**< not written: the limit is reached and every pack is in use */
    uint64_t not_stored_disk;  /**< not written: the disk is full */
    uint64_t not_stored_error; /**< not written: the disk failed or is read-only */
    uint64_t not_stored_busy;  /**< not written: another process held a lock for too long */
    uint64_t evicted_bytes;    /**< bytes removed of packs that were not in use */
} PenCacheStats;

/** Returns the counters of the pack's cache; all are 0 if it has none. Any thread may call it. */
PEN_API void pen_pack_cache_stats(const PenPack *pack, PenCacheStats *ret);

/* ---- the directory -------------------------------------------------------------------------- */

/** A pack that has entries in the cache. The library owns the struct. */
typedef struct PenCachePack {
    int32_t in_use; /**< 1 = a process has the pack open with this cache */
    uint8_t id[16]; /**< of the pack */
    uint64_t entries, bytes;
    uint64_t opened_s; /**< when it was last opened, seconds since 1970; 0 = not known */
    char from[256];    /**< where it was opened from; "" = not known */
} PenCachePack;

typedef struct PenCacheTotal {
    uint64_t packs, entries, bytes;
    uint64_t removed_entries, removed_bytes; /**< by pen_cache_clear */
    uint64_t disk_bytes, disk_free_bytes;    /**< of the file system */
} PenCacheTotal;

/** Reports the content of a cache directory. `each`, which may be NULL, is called for every pack
 * from the calling thread, least recently opened first; its argument is valid during that call. */
PEN_NODISCARD PEN_API int pen_cache_inspect(const char *directory,
                                            void (*each)(void *ctx, const PenCachePack *pack),
                                            void *ctx, PenCacheTotal *ret, PenError *reterr);

/** Removes all packs that are not in use from a cache directory. `ret` describes what is left and
 * what was removed. */
PEN_NODISCARD PEN_API int pen_cache_clear(const char *directory, PenCacheTotal *ret,
                                          PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
