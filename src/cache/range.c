/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: single bytes of the marker, at offsets where it has none. */
#include <errno.h>

#include "base/bytes.h"
#include "base/thread.h"
#include "cache/cache_impl.h"

#define PACKS (UINT64_C(1) << 61)
#define ENTRIES (UINT64_C(1) << 62)
#define LONGEST_SLEEP_MS 20

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t hash(const char *id, uint64_t more)
{
    uint64_t h = mix(more + 1);
    for (int i = 0; i < 32; i += 8)
        h = mix(h ^ pen__load64(id + i));
    return h;
}

/* 61 bits: two things that share a byte wait for each other now and then, and that is all. */
uint64_t pen__range_pack(const char *id)
{
    return PACKS + (hash(id, 0) & (PACKS - 1));
}

uint64_t pen__range_entry(const char *id, PenCacheKey key)
{
    return ENTRIES + (hash(id, mix(key.number * 2 + (uint64_t)key.kind + 1)) & (ENTRIES - 1));
}

int pen__range_lock(PenCache *c, int how, uint64_t range, uint64_t wait_ns)
{
    int r = pen__sys->lock_byte(c->fd, how, range);
    if (r != -EAGAIN || !wait_ns)
        return r;
    uint64_t until = pen__deadline_after(wait_ns);
    for (int ms = 1; r == -EAGAIN && pen__sys->now_ns() < until;) {
        (void)pen__sys->poll(NULL, 0, ms);
        ms = ms * 2 > LONGEST_SLEEP_MS ? LONGEST_SLEEP_MS : ms * 2;
        r = pen__sys->lock_byte(c->fd, how, range);
    }
    return r;
}

void pen__range_free(PenCache *c, uint64_t range)
{
    (void)pen__sys->lock_byte(c->fd, PEN_RANGE_FREE, range);
}
