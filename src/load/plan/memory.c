/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/memory.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/machine/memory.h"

#define WHERE "load/plan"

enum { MIN_SLOTS = 2, PREFETCH = 2, MOST_TICKETS = 16384 };
/* What a slot takes beside its tensors; and for each sample its number, its mask and more. */
enum { SLOT_EXTRA = 8192, SAMPLE_EXTRA = 16 };
static const uint64_t MiB = 1 << 20;

/* `n` times `each` bytes at a multiple of 64. False: too many. */
static bool add_region(uint64_t *at, uint64_t n, uint64_t each, uint64_t *ret_offset)
{
    uint64_t bytes;
    *ret_offset = *at;
    if (pen__mul_over(n, each, &bytes) || pen__add_over(*at, bytes, at) ||
        pen__add_over(*at, 63, at))
        return false;
    *at &= ~(uint64_t)63;
    return true;
}

/* Tensors lie one after another; the numbers of the samples and the mask are apart. */
static int lay_out_fields(PenLoadPlan *p, PenOutField *fields, uint64_t n, PenError *reterr)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        PenOutField *f = &fields[i];
        bool fits = add_region(&at, n, f->bytes, &f->offset);
        if (f->list)
            fits = fits && add_region(&at, n + 1, 8, &f->lengths) &&
                   add_region(&at, n / 8 + 1, 1, &f->validity);
        if (!fits)
            return pen__fail(
                reterr, PEN_E_LIMIT, WHERE,
                "batch of %" PRIu64 " samples: expected less than 2^64 bytes, found more", n);
    }
    p->slot_bytes = PEN_MAX(p->slot_bytes, at);
    return PEN_OK;
}

/* A slot takes batches of every shape. */
static int lay_out(PenLoadPlan *p, PenError *reterr)
{
    int r = lay_out_fields(p, p->fields, pen__load_plan_batch(p, 0), reterr);
    for (uint32_t i = 1; p->shapes && i < p->shapes->n && r == PEN_OK; i++)
        r = lay_out_fields(p, p->shapes->fields[i], pen__load_plan_batch(p, i), reterr);
    return r;
}

static int too_small(const PenLoadPlan *p, uint64_t need, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                     "memory: expected at least %" PRIu64 " MiB for batches of %" PRIu64
                     " bytes and %u threads, found %" PRIu64
                     " MiB; increase memory, or use smaller batches",
                     need / MiB + 1, p->slot_bytes, p->threads, p->set.memory_bytes / MiB);
}

static int blocks_too_large(const PenLoadPlan *p, uint64_t need, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                     "memory: expected at least %" PRIu64 " MiB for blocks of up to %" PRIu64
                     " bytes, found %" PRIu64
                     " MiB; increase memory, or pack with fewer samples per block",
                     need / MiB + 1, p->packs.largest_block_bytes, p->set.memory_bytes / MiB);
}

static int share_remote(PenLoadPlan *p, uint64_t slot, uint64_t ring_need, uint64_t rest_need,
                        PenError *reterr)
{
    PenRemoteNeeds needs = {.slot = slot,
                            .ring = ring_need,
                            .rest = rest_need,
                            .largest_block = p->packs.largest_block_bytes,
                            .indexes = p->packs.index_bytes,
                            .blocks_beside = p->set.on_bad == PEN_BAD_SUBSTITUTE ? p->threads : 0};
    uint64_t need = pen__remote_shares(&needs, &p->shares);
    p->remote_ring = pen__remote_ring(&needs);
    p->remote_rest = rest_need;
    return need ? blocks_too_large(p, need, reterr) : PEN_OK;
}

/* What tasks take for the plans of several views of one image. */
static uint64_t more_plans(const PenLoadPlan *p)
{
    return (uint64_t)p->tasks * (p->n_views - p->n_stored) * sizeof(PenSamplePlan);
}

/* Where each sample is a request, all threads that read have one to make while a batch is used. */
static uint64_t wanted_slots(const PenLoadPlan *p)
{
    uint64_t batches = PREFETCH;
    if (p->packs.is_ranged)
        batches = PEN_MAX(batches, p->io_threads / PEN_MAX(p->set.batch_size, 1u) + 1u);
    return (p->set.prefetch ? p->set.prefetch : batches) + 2;
}

/* Half is for the ring, an eighth for bytes of samples, a quarter for scratch, an eighth for
 * indexes of blocks; a ring that needs more takes it from the others down to what they cannot do
 * without. */
static int share_out(PenLoadPlan *p, PenError *reterr)
{
    uint64_t m = p->set.memory_bytes, ring_need, slot = p->slot_bytes + SLOT_EXTRA;
    uint64_t plans = more_plans(p);
    uint64_t rest_need = (uint64_t)p->threads * 3 * MiB + 4 * MiB + 4 * plans;
    PenShares *s = &p->shares;
    if (pen__add_over(slot, (uint64_t)p->set.batch_size * SAMPLE_EXTRA, &slot) ||
        pen__mul_over(slot, MIN_SLOTS, &ring_need) || ring_need > UINT64_MAX - rest_need)
        return too_small(p, UINT64_MAX, reterr);
    if (m < ring_need + rest_need)
        return too_small(p, ring_need + rest_need, reterr);
    s->total = m;
    p->slot_cost = slot;
    s->ring = PEN_MAX(ring_need, PEN_MIN(m / 2, m - rest_need));
    uint64_t rest = m - s->ring;
    s->scratch = rest / 2;
    s->read = rest / 4;
    s->index = s->keep = rest - s->scratch - s->read;
    if (p->packs.is_whole) {
        int r = share_remote(p, slot, ring_need, rest_need, reterr);
        if (r < 0)
            return r;
    }
    s->scratch -= PEN_MIN(plans, s->scratch / 2);
    s->scratch_each = PEN_MIN(s->scratch / 2 / p->threads, 8 * MiB);
    p->slots = (uint32_t)PEN_MAX(PEN_MIN(wanted_slots(p), s->ring / slot), (uint64_t)MIN_SLOTS);
    return PEN_OK;
}

/* Not what is free at the moment: processes that start later would find less of it than the first
 * ones, and refuse alone. */
static int check_node(const PenLoadPlan *p, PenError *reterr)
{
    uint64_t all, each = p->set.memory_bytes, ranks = p->set.node_ranks;
    PenAvailable limit = {.bytes = UINT64_MAX};
    if (ranks > 1)
        limit = pen__memory_limit();
    if (pen__mul_over(each, ranks, &all))
        all = UINT64_MAX;
    if (all <= limit.bytes)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                     "memory: %" PRIu64 " MiB for each of %" PRIu64 " processes (node_ranks, "
                     "LOCAL_WORLD_SIZE) are %" PRIu64 " MiB, but %s has %" PRIu64
                     " MiB; pass memory=\"%" PRIu64 "MiB\" or less, or start fewer processes",
                     each / MiB, ranks, all / MiB,
                     limit.is_by_group ? "this cgroup" : "this machine", limit.bytes / MiB,
                     limit.bytes / ranks / MiB);
}

int pen__plan_memory_share(PenLoadPlan *p, PenError *reterr)
{
    p->tasks = 2 * (p->threads + p->io_threads) + 8;
    int r = check_node(p, reterr);
    if (r == PEN_OK)
        r = lay_out(p, reterr);
    if (r == PEN_OK)
        r = share_out(p, reterr);
    p->tickets = (uint32_t)PEN_MIN((uint64_t)p->slots * p->set.batch_size, (uint64_t)MOST_TICKETS);
    return r;
}

/* ---- how a remote pack is read ---- */

/* Streams of one rank, of all sources together. */
static double count_streams(const PenLoadPlan *p)
{
    double n = p->sources ? 0 : pen__order_streams(&p->state.order);
    for (uint32_t i = 0; p->sources && i < p->n_sources; i++) {
        PenOrderPlan order = p->state.order;
        order.n = p->sources[i].n;
        order.streams = p->sources[i].streams;
        order.block_samples = p->sources[i].block_samples;
        n += pen__order_streams(&order);
    }
    return n / p->set.world;
}

/* Of a batch that is not every n-th sample of a global batch. */
static uint32_t uneven_batch(const PenLoadPlan *p)
{
    PenOrder order = {.plan = pen__load_plan_order(p)};
    order.streams = pen__order_streams(&order.plan);
    bool is_even = !p->buckets && pen__deal_for(&order, p->set.world) == PEN_DEAL_IN_TURN;
    return is_even ? 0 : p->set.batch_size;
}

void pen__plan_fetching_choose(PenLoadPlan *p)
{
    if (!p->packs.is_whole)
        return;
    PenRemoteJob job = {.order = p->state.order.kind,
                        .world = p->set.world,
                        .streams = count_streams(p),
                        .batch = uneven_batch(p),
                        .block_samples = pen_pack_info(p->pack)->block_samples,
                        .n_blocks = p->packs.n_blocks,
                        .n_samples = p->packs.prefetched_samples,
                        .total_bytes = p->packs.prefetched_bytes,
                        .limit_bytes = p->shares.blocks,
                        .ring_bytes = p->remote_ring,
                        .rest_bytes = p->remote_rest,
                        .has_cache = p->packs.has_cache,
                        .is_set = p->set.io_threads != 0};
    pen__remote_choose(&job, &p->fetch);
}
