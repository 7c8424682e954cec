/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a cache. System calls' failures are -errno here: nobody is told of them but counters.
 */
#ifndef PEN_CACHE_CACHE_IMPL_H
#define PEN_CACHE_CACHE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/sys.h"
#include "cache/cache.h"

enum {
    PEN_CACHE_DIR_MAX = 3900,
    PEN_CACHE_PATH = 4096,
    PEN_CACHE_ID = 33 /* 32 digits and the end */
};

struct PenCache {
    char *dir;
    char id[PEN_CACHE_ID]; /* of our pack; "" when there is none */
    int fd;                /* of the marker */
    uint64_t limit, wait_ns;
    pthread_mutex_t
        accounting; /* with the lock of the accounting: that one does not hold our threads */
    pthread_mutex_t evicting;            /* the same for the lock of whoever evicts */
    atomic_uint_fast64_t quiet_until_ns; /* nothing is stored until then */
    atomic_int quiet_why;                /* a count: PEN_COUNT_FULL and those behind */
    atomic_uint_fast64_t counts[PEN_COUNTS];
};

/* A cache without a pack. With `make` it is made when it is not there. */
int pen__cache_open_dir(const char *dir, bool make, uint32_t wait_ms, PenCache **ret,
                        PenError *reterr);

/* ---- range.c: locks ------------------------------------------------------------------------- */

enum { PEN_RANGE_ACCOUNTING = 0, PEN_RANGE_PRESENT = 1, PEN_RANGE_EVICTOR = 2 };
uint64_t pen__range_pack(const char *id);
uint64_t pen__range_entry(const char *id, PenCacheKey key);
/* How long locks are waited for that nobody holds for long, unless he counts or hangs. */
#define PEN_SHORT_NS(c) ((c)->wait_ns < 2000000000u ? (c)->wait_ns : 2000000000u)
/* 0, or -EAGAIN when somebody else has held it for `wait_ns`. */
int pen__range_lock(PenCache *c, int how, uint64_t range, uint64_t wait_ns);
void pen__range_free(PenCache *c, uint64_t range);

/* ---- marker.c ------------------------------------------------------------------------------- */

#define PEN_CACHE_MARKER "penstock-cache"
/* Opens the marker; with `make` the directory and the marker are made when they are not there. */
int pen__marker_open(PenCache *c, bool make, PenError *reterr);

/* ---- accounting.c: how many bytes there are
 * --------------------------------------------------------
 */

typedef struct PenAccounting {
    uint64_t used;      /* bytes of entries, and of those that are being written */
    uint64_t pending;   /* how many are being written; of killed processes as well */
    uint64_t counted_s; /* when they were last counted, seconds since 1970 */
} PenAccounting;

/* Locks and reads them. 0 or -errno, and then nothing is locked. -EBADMSG and -ENODATA: they are
 * locked, and wrong or absent. */
int pen__accounting_begin(PenCache *c, uint64_t wait_ns, PenAccounting *ret);
/* Writes them, unless NULL, and unlocks. */
int pen__accounting_end(PenCache *c, const PenAccounting *accounting);
/* Adds to what is used and pending. */
int pen__accounting_change(PenCache *c, int64_t used, int64_t pending);
/* Counts what is there, when nobody else has the cache open and the accounting may be wrong, and
 * removes what killed processes have left. `force`: even when they seem right. */
void pen__accounting_recount(PenCache *c, bool force);
/* Marks us as one who has the cache open. */
void pen__accounting_present(PenCache *c);

/* ---- directory.c: names and what they hold
 * --------------------------------------------------------
 */

bool pen__cache_dir_is_own(const char *path); /* a directory of ours, not a link to one */
void pen__cache_dir_path(const PenCache *c, const char *id, const char *name,
                         char ret[PEN_CACHE_PATH]);
/* Makes a directory unless it is there. 0, or -errno: -ENOTDIR when it is something else, or
 * somebody else's. */
int pen__cache_dir_make(const char *path);
void pen__cache_dir_folder(const PenCache *c, PenCacheKey key, char ret[PEN_CACHE_PATH]);
void pen__cache_dir_entry(const PenCache *c, PenCacheKey key, char ret[PEN_CACHE_PATH]);
/* A name that nobody has, for what is being written. */
int pen__cache_dir_temp(const PenCache *c, char ret[PEN_CACHE_PATH]);

/* Calls `each` for all packs; non-zero stops and is returned. */
int pen__cache_dir_packs(PenCache *c, int (*each)(void *ctx, const char *id), void *ctx);
/* For all entries of a pack: files whose names we make, and no others. */
int pen__cache_dir_entries(PenCache *c, const char *id,
                           int (*each)(void *ctx, const char *path, uint64_t bytes), void *ctx);
/* Removes what is left of entries that nobody finished. */
void pen__cache_dir_sweep(PenCache *c, const char *id);
/* Removes the folders of a pack and what is said of it, as far as nothing else is in them. */
void pen__cache_dir_remove(PenCache *c, const char *id);

/* What is said of a pack. */
int pen__about_write(PenCache *c, const char *from);
void pen__about_read(PenCache *c, const char *id, uint64_t *ret_opened_s, char *ret_from,
                     size_t cap);

/* ---- evict.c ----------------------------------------------------------------------------------
 */

/* Frees `bytes` by removing entries of packs not in use, those opened longest ago first.
 * Gives the bytes that were freed. */
uint64_t pen__cache_evict(PenCache *c, uint64_t bytes);

#endif
