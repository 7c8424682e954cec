/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/part.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "load/epoch/permute.h"

#define WHERE "sim/part"

enum { INDEXES_LEAST = 64, INDEXES_MOST = 1 << 22 }; /* see pack/reader/blocks.c */

int pen__sim_indexes_init(PenSimIndexes *x, const PenSimPack *pack, uint64_t bytes,
                          PenError *reterr)
{
    uint64_t n = PEN_MIN(bytes / PEN_MAX(pack->index_bytes, 1u), pack->n_blocks);
    x->n = PEN_MAX(PEN_MIN(n, (uint64_t)INDEXES_MOST), (uint64_t)INDEXES_LEAST);
    x->kept = pen__zalloc(x->n * sizeof *x->kept);
    return x->kept ? PEN_OK : pen__fail_memory(reterr, WHERE, "indexes");
}

void pen__sim_indexes_fini(PenSimIndexes *x)
{
    pen__free(x->kept);
    *x = (PenSimIndexes){0};
}

int pen__sim_cache_init(PenSimCache *c, const PenSimCachePlan *plan, const PenSimPack *pack,
                        uint32_t node, PenError *reterr)
{
    *c = (PenSimCache){.plan = *plan, .node = node};
    if (!plan->capacity)
        return PEN_OK;
    c->n = plan->stored;
    c->added = pen__zalloc(pack->n_blocks / 8 + 1);
    return c->added ? PEN_OK : pen__fail_memory(reterr, WHERE, "cache");
}

void pen__sim_cache_fini(PenSimCache *c)
{
    pen__free(c->added);
    *c = (PenSimCache){0};
}

/* What a node has when the epoch begins is drawn: which blocks these are is chance for any other.
 */
static bool has(const PenSimCache *c, uint64_t block)
{
    if (c->added[block / 8] >> block % 8 & 1)
        return true;
    uint64_t drawn = pen__permute_key(c->plan.seed, 0, c->node, block) >> 11;
    return (double)drawn * 0x1p-53 < c->plan.share;
}

static void add(PenSimCache *c, uint64_t block)
{
    if (c->n >= c->plan.capacity)
        return;
    c->added[block / 8] |= (uint8_t)(1u << block % 8);
    c->n++;
}

/* True: it was there. */
static bool keep_index(PenSimIndexes *x, uint64_t block)
{
    uint64_t *at = &x->kept[block % x->n];
    bool was = *at == block + 1;
    *at = block + 1;
    return was;
}

PenSimCost pen__sim_fetch(const PenSimPack *pack, PenSimIndexes *x, PenSimCache *c,
                          const PenBlockPart *part)
{
    uint64_t all = pen__sim_pack_block_bytes(pack, part->block);
    PenSimCost cost = {.part = all, .memory = all, .is_block = true};
    if (!part->is_block)
        cost.memory = (all - PEN_MIN(pack->index_bytes, all)) * part->n / pack->block_samples;
    if (c->added) {
        if (has(c, part->block))
            cost.part = 0;
        else
            add(c, part->block);
    } else if (!part->is_block) {
        cost.is_block = false;
        cost.part = cost.memory;
        cost.index = keep_index(x, part->block) ? 0 : pack->index_bytes;
    }
    return cost;
}

/* ---- the schedule ---------------------------------------------------------------------------- */

PenSplit pen__sim_split(const PenOrder *order, uint32_t batch, uint32_t world, uint32_t rank)
{
    return (PenSplit){.n = order->plan.n,
                      .batch = batch,
                      .rank = rank,
                      .world = world,
                      .last_batch = PEN_LAST_DROP,
                      .deal = pen__deal_for(order, world),
                      .streams = order->streams};
}

static PenSampleSpot spot_of(const void *of, uint64_t epoch, uint64_t index)
{
    const PenSimPack *p = of;
    uint64_t k = p->block_samples, block = index / k;
    (void)epoch;
    return (PenSampleSpot){.block = block,
                           .sample = (uint32_t)(index % k),
                           .n_samples = (uint32_t)PEN_MIN(k, p->n_samples - block * k)};
}

static uint64_t part_bytes(void *ctx, uint64_t block, uint32_t n, bool all)
{
    const PenSimPack *p = ctx;
    (void)block;
    return pen__remote_part_bytes(p->largest_block, (double)p->pack_bytes / (double)p->n_samples, n,
                                  all);
}

PenSchedulePlan pen__sim_schedule(const PenSimPack *pack, const PenFetchPlan *fetch,
                                  uint64_t limit_bytes)
{
    return (PenSchedulePlan){.horizon = fetch->horizon,
                             .begins_apart = fetch->begins_apart,
                             .limit_bytes = limit_bytes,
                             .resident_bytes = fetch->resident_bytes,
                             .spot = spot_of,
                             .of = pack,
                             .bytes = part_bytes,
                             .ctx = (void *)(uintptr_t)pack};
}
