/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a cache for a pack, and what is counted of it. */
#include "cache/cache.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cache/cache_impl.h"

#define WHERE "cache/open"
#define WAIT_MS 10000u

static const PenCacheSettings DEFAULTS = {0};

void pen_cache_settings_init(PenCacheSettings *settings)
{
    *settings = DEFAULTS;
}

/* ---- open and close ------------------------------------------------------------------------- */

void pen__cache_close(PenCache **cache)
{
    if (!cache || !*cache)
        return;
    PenCache *c = *cache;
    *cache = NULL;
    if (c->fd >= 0)
        (void)pen__sys->close(c->fd); /* all locks go with it */
    pthread_mutex_destroy(&c->accounting);
    pthread_mutex_destroy(&c->evicting);
    pen__free(c->dir);
    pen__free(c);
}

int pen__cache_open_dir(const char *dir, bool make, uint32_t wait_ms, PenCache **ret,
                        PenError *reterr)
{
    if (!dir || !*dir || strlen(dir) > PEN_CACHE_DIR_MAX)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "cache: expected a directory name of 1 to %d bytes",
                         (int)PEN_CACHE_DIR_MAX);
    PenCache *c = pen__zalloc(sizeof *c);
    char *name = pen__strdup(dir);
    if (!c || !name) {
        pen__free(c);
        pen__free(name);
        return pen__fail_memory(reterr, WHERE, dir);
    }
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/';)
        name[--n] = 0;
    c->dir = name;
    c->fd = -1;
    c->limit = UINT64_MAX;
    c->wait_ns = (wait_ms ? wait_ms : WAIT_MS) * UINT64_C(1000000);
    pthread_mutex_init(&c->accounting, NULL);
    pthread_mutex_init(&c->evicting, NULL);
    int r = pen__marker_open(c, make, reterr);
    if (r < 0)
        pen__cache_close(&c);
    else
        *ret = c;
    return r;
}

/* A pack's folder, marked as in use. A full disk is no reason to fail here. */
static int open_folder(PenCache *c, const char *from, PenError *reterr)
{
    char path[PEN_CACHE_PATH];
    PenFileStat st;
    /* Not at once, when somebody is removing what we are about to use. */
    (void)pen__range_lock(c, PEN_RANGE_SHARED, pen__range_pack(c->id), PEN_SHORT_NS(c));
    pen__cache_dir_path(c, c->id, NULL, path);
    if (pen__sys->stat_at(PEN_AT_CWD, path, &st) == 0 && !pen__cache_dir_is_own(path))
        return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                         "%s: expected a directory that belongs to this user; remove it", path);
    (void)pen__cache_dir_make(path);
    (void)pen__about_write(c, from);
    return PEN_OK;
}

static uint64_t half_of_disk(PenCache *c)
{
    PenDiskSpace disk;
    return pen__sys->disk_space(c->fd, &disk) < 0 ? UINT64_MAX : disk.bytes / 2;
}

int pen__cache_open(const PenCacheSettings *settings, const uint8_t id[16], const char *from,
                    PenCache **ret, PenError *reterr)
{
    PenCache *c = NULL;
    PenCacheSettings own = settings ? *settings : DEFAULTS;
    int r = pen__cache_open_dir(own.directory, true, own.wait_ms, &c, reterr);
    if (r < 0)
        return r;
    c->limit = own.bytes ? own.bytes : half_of_disk(c);
    pen__accounting_recount(c, false);
    pen__accounting_present(c);
    for (int i = 0; i < 16; i++)
        snprintf(c->id + 2 * i, 3, "%02x", id[i]);
    r = open_folder(c, from, reterr);
    if (r < 0)
        pen__cache_close(&c);
    else
        *ret = c;
    return r;
}

/* ---- counts --------------------------------------------------------------------------------- */

void pen__cache_count(PenCache *c, int what, uint64_t n)
{
    atomic_fetch_add(&c->counts[what], n);
}

uint64_t pen__cache_wait_ns(const PenCache *c)
{
    return c->wait_ns;
}

void pen__cache_stats(PenCache *c, PenCacheStats *ret)
{
    uint64_t n[PEN_COUNTS];
    for (int i = 0; i < PEN_COUNTS; i++)
        n[i] = atomic_load(&c->counts[i]);
    *ret = (PenCacheStats){.hits = n[PEN_COUNT_HITS],
                           .misses = n[PEN_COUNT_MISSES],
                           .tail_hits = n[PEN_COUNT_TAIL_HITS],
                           .tail_misses = n[PEN_COUNT_TAIL_MISSES],
                           .bytes_cache = n[PEN_COUNT_BYTES_CACHE],
                           .bytes_origin = n[PEN_COUNT_BYTES_ORIGIN],
                           .waited = n[PEN_COUNT_WAITED],
                           .bad = n[PEN_COUNT_BAD],
                           .stored = n[PEN_COUNT_STORED],
                           .stored_bytes = n[PEN_COUNT_STORED_BYTES],
                           .not_stored_full = n[PEN_COUNT_FULL],
                           .not_stored_disk = n[PEN_COUNT_DISK],
                           .not_stored_error = n[PEN_COUNT_ERROR],
                           .not_stored_busy = n[PEN_COUNT_BUSY],
                           .evicted_bytes = n[PEN_COUNT_EVICTED]};
}
