/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/count.h"

#include <stdlib.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"

#define WHERE "sim/count"

/* More samples than this are not gone through one by one. */
#define WALK_MOST (UINT64_C(1) << 25)
#define HITS_MOST (UINT64_C(1) << 20)

typedef struct Count {
    const PenOrder *o;
    const PenSplit *s;
    uint32_t each;
    uint64_t end; /* positions behind it are in no batch */
    uint64_t *list;
} Count;

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts, and leaves one of each. */
static uint64_t unique(uint64_t *list, uint64_t n)
{
    uint64_t kept = 0;
    qsort(list, (size_t)n, sizeof *list, by_size);
    for (uint64_t i = 0; i < n; i++)
        if (!i || list[i] != list[i - 1])
            list[kept++] = list[i];
    return kept;
}

/* How many need a block? */
static uint64_t users(const Count *c, uint64_t block, uint64_t *list)
{
    uint64_t k = c->o->plan.block_samples, n = 0;
    uint64_t end = PEN_MIN((block + 1) * k, c->o->plan.n);
    for (uint64_t sample = block * k; sample < end; sample++) {
        uint64_t position = pen__order_find(c->o, sample);
        if (position < c->end)
            list[n++] = position % c->s->world / c->each;
    }
    return unique(list, n);
}

static int walk(const Count *c, PenSimCount *ret, PenError *reterr)
{
    uint64_t k = c->o->plan.block_samples, n_blocks = (c->o->plan.n - 1) / k + 1;
    uint64_t stride = c->o->plan.n / WALK_MOST + 1, n = 0, seen = 0;
    uint64_t *list = pen__alloc_array(k, sizeof *list);
    if (!list)
        return pen__fail_memory(reterr, WHERE, "block");
    for (uint64_t block = 0; block < n_blocks; block += stride, seen++)
        n += users(c, block, list);
    pen__free(list);
    ret->is_exact = stride == 1;
    ret->fetches = (double)n * (double)n_blocks / (double)seen;
    return PEN_OK;
}

/* Numbers of the blocks at the positions from `first` to `end`. */
static uint64_t *blocks_at(const Count *c, uint64_t first, uint64_t end, PenError *reterr)
{
    uint64_t *list = pen__alloc_array(end - first + 1, sizeof *list);
    if (!list)
        pen__fail_memory(reterr, WHERE, "blocks");
    for (uint64_t p = first; list && p < end; p++)
        list[p - first] = pen__order_at(c->o, p) / c->o->plan.block_samples;
    return list;
}

/* Behind the body samples of all blocks are mixed, and many may need one. */
static int count_rest(const Count *c, uint64_t *ret, PenError *reterr)
{
    uint64_t body = c->o->body, n = c->o->plan.n - body, all = 0;
    uint64_t *list = pen__alloc_array(c->o->plan.block_samples, sizeof *list);
    uint64_t *blocks = list ? blocks_at(c, body, c->o->plan.n, reterr) : NULL;
    if (!blocks) {
        pen__free(list);
        return list ? PEN_E_NO_MEMORY : pen__fail_memory(reterr, WHERE, "block");
    }
    n = unique(blocks, n);
    for (uint64_t i = 0; i < n; i++)
        all += users(c, blocks[i], list);
    pen__free(blocks);
    pen__free(list);
    *ret = all;
    return PEN_OK;
}

/* Blocks of lanes that lie, with all their samples, behind the last full batch. */
static int count_left_out(const Count *c, uint64_t *ret, PenError *reterr)
{
    uint64_t k = c->o->plan.block_samples, n = 0, run = 0;
    *ret = 0;
    if (c->end >= c->o->body)
        return PEN_OK;
    uint64_t *blocks = blocks_at(c, c->end, c->o->body, reterr);
    if (!blocks)
        return PEN_E_NO_MEMORY;
    n = c->o->body - c->end;
    qsort(blocks, (size_t)n, sizeof *blocks, by_size);
    for (uint64_t i = 0; i < n; i++) {
        run = i && blocks[i] == blocks[i - 1] ? run + 1 : 1;
        *ret += run == k;
    }
    pen__free(blocks);
    return PEN_OK;
}

int pen__sim_count(const PenOrder *order, const PenSplit *split, uint32_t each, PenSimCount *ret,
                   PenError *reterr)
{
    Count c = {.o = order, .s = split, .each = each};
    uint64_t rest, left_out, n = order->plan.n;
    c.end = pen__split_steps(split) * split->batch * split->world;
    bool own_lanes = pen__order_by_block(order->plan.kind) && order->plan.lanes % split->world == 0;
    if (!own_lanes || n - PEN_MIN(order->body, c.end) > WALK_MOST)
        return walk(&c, ret, reterr);
    int r = count_rest(&c, &rest, reterr);
    if (r == PEN_OK)
        r = count_left_out(&c, &left_out, reterr);
    if (r < 0)
        return r;
    uint64_t body = order->lane_blocks * order->plan.lanes;
    *ret = (PenSimCount){.fetches = (double)(body - left_out + rest), .is_exact = true};
    return PEN_OK;
}

bool pen__sim_cache_has(const PenSimCache *c, uint64_t block, uint32_t node)
{
    const PenOrderPlan *p = &c->first.plan;
    if (!c->blocks)
        return false;
    uint64_t position = pen__order_find(&c->first, block * p->block_samples);
    uint64_t world = (uint64_t)c->nodes * c->ranks, lane = position % p->lanes;
    if (position % world / c->ranks != node)
        return false;
    /* The lanes of a node advance side by side. */
    uint64_t row = position / p->lanes / p->block_samples, each = p->lanes / c->nodes;
    uint64_t beside = lane / world * c->ranks + lane % c->ranks;
    return row * each + beside < c->blocks;
}

double pen__sim_count_hits(const PenSimCache *cache, const PenOrder *order)
{
    uint64_t k = order->plan.block_samples, n = (order->plan.n - 1) / k + 1;
    uint64_t stride = n / HITS_MOST + 1, seen = 0, hits = 0;
    uint64_t world = (uint64_t)cache->nodes * cache->ranks;
    for (uint64_t block = 0; block < n; block += stride, seen++) {
        uint64_t rank = pen__order_find(order, block * k) % world;
        hits += pen__sim_cache_has(cache, block, (uint32_t)(rank / cache->ranks));
    }
    return (double)hits / (double)seen;
}
