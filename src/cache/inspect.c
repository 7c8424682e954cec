/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls about a cache as a whole: what is in it, and removing that. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "cache/cache_impl.h"

#define WHERE "cache/inspect"

typedef struct Packs {
    PenCache *cache;
    PenCachePack *packs;
    size_t n, cap;
} Packs;

static int count_entry(void *ctx, PEN_UNUSED const char *path, uint64_t bytes)
{
    PenCachePack *p = ctx;
    p->entries++;
    p->bytes += bytes;
    return 0;
}

static bool is_in_use(PenCache *c, const char *id)
{
    uint64_t range = pen__range_pack(id);
    if (pen__range_lock(c, PEN_RANGE_ALONE, range, 0) < 0)
        return true;
    pen__range_free(c, range);
    return false;
}

static int grow(Packs *all)
{
    size_t cap = all->cap ? all->cap * 2 : 16;
    PenCachePack *grown = pen__resize(all->packs, cap * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    all->packs = grown;
    all->cap = cap;
    return 0;
}

static int add_pack(void *ctx, const char *id)
{
    Packs *all = ctx;
    if (all->n == all->cap && grow(all) < 0)
        return -ENOMEM;
    PenCachePack *p = &all->packs[all->n++];
    *p = (PenCachePack){0};
    for (int i = 0; i < 16; i++)
        p->id[i] = (uint8_t)(pen__hex_value(id[2 * i]) * 16 + pen__hex_value(id[2 * i + 1]));
    pen__about_read(all->cache, id, &p->opened_s, p->from, sizeof p->from);
    p->in_use = is_in_use(all->cache, id);
    return pen__cache_dir_entries(all->cache, id, count_entry, p);
}

static int by_age(const void *a, const void *b)
{
    const PenCachePack *x = a, *y = b;
    return x->opened_s != y->opened_s ? (x->opened_s < y->opened_s ? -1 : 1)
                                      : memcmp(x->id, y->id, sizeof x->id);
}

static int list_packs(PenCache *c, Packs *ret, PenError *reterr)
{
    *ret = (Packs){.cache = c};
    int r = pen__cache_dir_packs(c, add_pack, ret);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot list", c->dir);
    if (ret->n)
        qsort(ret->packs, ret->n, sizeof *ret->packs, by_age);
    return PEN_OK;
}

static void add_up(const Packs *all, PenCacheTotal *ret)
{
    PenDiskSpace disk = {0};
    (void)pen__sys->disk_space(all->cache->fd, &disk);
    ret->packs = all->n;
    ret->disk_bytes = disk.bytes;
    ret->disk_free_bytes = disk.free_bytes;
    for (size_t i = 0; i < all->n; i++) {
        ret->entries += all->packs[i].entries;
        ret->bytes += all->packs[i].bytes;
    }
}

static int inspect(const char *directory, void (*each)(void *ctx, const PenCachePack *pack),
                   void *ctx, PenCacheTotal *ret, PenError *reterr)
{
    PenCache *c = NULL;
    Packs all = {0};
    int r = pen__cache_open_dir(directory, false, 0, &c, reterr);
    if (r < 0)
        return r;
    pen__accounting_recount(c, true);
    r = list_packs(c, &all, reterr);
    if (r == PEN_OK) {
        add_up(&all, ret);
        for (size_t i = 0; each && i < all.n; i++)
            each(ctx, &all.packs[i]);
    }
    pen__free(all.packs);
    pen__cache_close(&c);
    return r;
}

int pen_cache_inspect(const char *directory, void (*each)(void *ctx, const PenCachePack *pack),
                      void *ctx, PenCacheTotal *ret, PenError *reterr)
{
    PenCacheTotal total = {0};
    int r = inspect(directory, each, ctx, &total, reterr);
    if (r == PEN_OK && ret)
        *ret = total;
    return r;
}

typedef struct Removed {
    uint64_t entries, bytes;
} Removed;

static int remove_entry(void *ctx, const char *path, uint64_t bytes)
{
    Removed *removed = ctx;
    if (pen__sys->unlink(PEN_AT_CWD, path) == 0) {
        removed->entries++;
        removed->bytes += bytes;
    }
    return 0;
}

static int remove_idle(PenCache *c, PenCachePack *p, Removed *removed)
{
    char id[PEN_CACHE_ID];
    for (int i = 0; i < 16; i++)
        snprintf(id + 2 * i, 3, "%02x", p->id[i]);
    uint64_t range = pen__range_pack(id);
    if (pen__range_lock(c, PEN_RANGE_ALONE, range, 0) < 0)
        return 0;
    int r = pen__cache_dir_entries(c, id, remove_entry, removed);
    pen__cache_dir_remove(c, id);
    pen__range_free(c, range);
    return r;
}

int pen_cache_clear(const char *directory, PenCacheTotal *ret, PenError *reterr)
{
    PenCacheTotal total = {0};
    PenCache *c = NULL;
    Packs all = {0};
    Removed removed = {0};
    int r = pen__cache_open_dir(directory, false, 0, &c, reterr);
    if (r < 0)
        return r;
    r = list_packs(c, &all, reterr);
    for (size_t i = 0; r == PEN_OK && i < all.n; i++) {
        int e = remove_idle(c, &all.packs[i], &removed);
        if (e < 0)
            r = pen__fail_os(reterr, -e, WHERE, "%s: cannot clear the cache", directory);
    }
    pen__free(all.packs);
    if (removed.bytes)
        (void)pen__accounting_change(c, -(int64_t)PEN_MIN(removed.bytes, (uint64_t)INT64_MAX), 0);
    pen__cache_close(&c);
    if (r == PEN_OK)
        r = inspect(directory, NULL, NULL, &total, reterr);
    total.removed_entries = removed.entries;
    total.removed_bytes = removed.bytes;
    if (r == PEN_OK && ret)
        *ret = total;
    return r;
}
