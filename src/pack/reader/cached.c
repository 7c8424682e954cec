/* SPDX-License-Identifier: Apache-2.0 */
/* Look, claim, look again, fetch, check, store, release. Whatever goes wrong with the cache, the
 * bytes come from where the pack is. */
#include "pack/reader/cached.h"

#include "base/attr.h"
#include "base/sys.h"
#include "base/thread.h"

#define LOOK_NS 250000000u /* between two looks whether somebody interrupts */
enum { LONGEST_SLEEP_MS = 10 };

static bool is_interrupted(const PenPack *p)
{
    const PenRemote *remote = pen__pack_place(p);
    return remote && pen__remote_interrupted(remote) != 0;
}

/* Waits for whoever fetches it: another process. 1: it is in the cache. 0: *ret_claimed says
 * whether it is ours to fetch and store, or just to fetch, because it took too long. */
static int wait_for_claim(PenCached *w, bool *ret_claimed)
{
    PenCache *c = w->pack->cache;
    uint64_t until = pen__deadline_after(pen__cache_wait_ns(c));
    uint64_t look = pen__deadline_after(LOOK_NS);
    for (int ms = 1;;) {
        int r = pen__cache_claim(c, w->key);
        *ret_claimed = r > 0;
        if (r != PEN_OK)
            return 0;
        uint64_t now = pen__sys->now_ns();
        if (now >= until || (now >= look && is_interrupted(w->pack)))
            return 0;
        if (now >= look)
            look = pen__deadline_after(LOOK_NS);
        (void)pen__sys->poll(NULL, 0, ms);
        ms = PEN_MIN(ms * 2, LONGEST_SLEEP_MS);
        if (w->look(w) > 0) {
            pen__cache_count(c, PEN_COUNT_WAITED, 1);
            return 1;
        }
    }
}

/* With the claim: it may have come before we had that. */
static int look_again(PenCached *w)
{
    int seen = w->look(w);
    if (seen < 0) {
        pen__cache_count(w->pack->cache, PEN_COUNT_BAD, 1);
        pen__cache_drop(w->pack->cache, w->key);
    }
    return seen > 0;
}

static int fetch(PenCached *w, bool keep, PenError *reterr)
{
    int r = w->fetch(w, reterr);
    uint64_t bytes = 0;
    const void *data = r == PEN_OK && keep ? w->give(w, &bytes) : NULL;
    if (data)
        (void)pen__cache_store(w->pack->cache, w->key, data, bytes);
    return r;
}

int pen__cached_get(PenCached *w, PenError *reterr)
{
    PenCache *c = w->pack->cache;
    bool claimed = false;
    if (w->look(w) > 0)
        return 1;
    /* Nobody waits for what will not be kept. */
    if (!pen__cache_wants(c, w->bytes))
        return fetch(w, false, reterr);
    int found = wait_for_claim(w, &claimed);
    if (!found && claimed)
        found = look_again(w);
    int r = found ? 1 : fetch(w, claimed, reterr);
    if (claimed)
        pen__cache_release(c, w->key);
    return r;
}

void pen__block_forget(PenPack *p, uint64_t block)
{
    PenCacheKey key = {PEN_CACHE_BLOCK, block};
    if (pen__cache_claim(p->cache, key) <= 0)
        return;
    pen__cache_count(p->cache, PEN_COUNT_BAD, 1);
    pen__cache_drop(p->cache, key);
    pen__cache_release(p->cache, key);
}
