/* SPDX-License-Identifier: Apache-2.0 */
/* Evicting entries. An epoch uses every block of a pack once, so which of them are kept makes no
 * difference as long as it is always the same ones: within a pack nothing is ever given up for
 * something else of it. Packs that nobody has open are, those opened longest ago first. */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/mem.h"
#include "cache/cache_impl.h"

/* So much more than is needed is removed at once, and not more: the next ones then find space, and
 * this one's reader does not wait for long. */
#define SLICE_BYTES (64ull << 20)
enum { PACKS = 1024, SLICES = 64 };

typedef struct Idle {
    char id[PEN_CACHE_ID];
    uint64_t opened_s;
} Idle;

typedef struct Search {
    PenCache *cache;
    Idle *found;
    uint32_t n;
} Search;

static int add_pack(void *ctx, const char *id)
{
    Search *s = ctx;
    char from[2];
    /* A lock of ours on our own pack would not be refused. */
    if (strcmp(id, s->cache->id) == 0)
        return 0;
    Idle *p = &s->found[s->n++];
    memcpy(p->id, id, PEN_CACHE_ID);
    pen__about_read(s->cache, id, &p->opened_s, from, sizeof from);
    return s->n == PACKS;
}

static int by_age(const void *a, const void *b)
{
    uint64_t x = ((const Idle *)a)->opened_s, y = ((const Idle *)b)->opened_s;
    return x < y ? -1 : x > y;
}

typedef struct Removal {
    uint64_t want, done;
} Removal;

static int remove_entry(void *ctx, const char *path, uint64_t bytes)
{
    Removal *r = ctx;
    if (pen__sys->unlink(PEN_AT_CWD, path) == 0)
        r->done += bytes;
    return r->done >= r->want;
}

static void remove_from(PenCache *c, const char *id, Removal *removal)
{
    uint64_t range = pen__range_pack(id);
    if (pen__range_lock(c, PEN_RANGE_ALONE, range, 0) < 0)
        return; /* it is in use */
    if (pen__cache_dir_entries(c, id, remove_entry, removal) == 0)
        pen__cache_dir_remove(c, id);
    pen__range_free(c, range);
}

static uint64_t evict(PenCache *c, uint64_t bytes)
{
    Search s = {.cache = c, .found = pen__alloc_array(PACKS, sizeof(Idle))};
    Removal removal = {.want = bytes + PEN_MIN(SLICE_BYTES, c->limit / SLICES)};
    if (!s.found)
        return 0;
    (void)pen__cache_dir_packs(c, add_pack, &s);
    qsort(s.found, s.n, sizeof *s.found, by_age);
    for (uint32_t i = 0; i < s.n && removal.done < removal.want; i++)
        remove_from(c, s.found[i].id, &removal);
    pen__free(s.found);
    if (removal.done)
        (void)pen__accounting_change(c, -(int64_t)PEN_MIN(removal.done, (uint64_t)INT64_MAX), 0);
    pen__cache_count(c, PEN_COUNT_EVICTED, removal.done);
    return removal.done;
}

uint64_t pen__cache_evict(PenCache *c, uint64_t bytes)
{
    uint64_t freed = 0;
    if (pthread_mutex_trylock(&c->evicting) != 0)
        return 0;
    if (pen__range_lock(c, PEN_RANGE_ALONE, PEN_RANGE_EVICTOR, 0) == 0) {
        freed = evict(c, bytes);
        pen__range_free(c, PEN_RANGE_EVICTOR);
    }
    pthread_mutex_unlock(&c->evicting);
    return freed;
}
