/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/simulate.h"

#include <inttypes.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/machine/ranks.h"
#include "base/mem.h"
#include "sim/arguments.h"
#include "sim/count.h"
#include "sim/rank.h"

#define WHERE "sim/simulate"

/* What a sample and a request cost to simulate, in seconds of a processor of about 2020. */
#define SAMPLE_S 0.5e-6
#define REQUEST_S 13e-6

#define SAMPLE_BYTES (224ull * 224 * 3) /* of a batch, when it is not said how large one is */
/* Of load/plan/memory.c and load/plan/builder.c, for a loader with one thread. */
enum { SLOT_EXTRA = 8192, SAMPLE_EXTRA = 16, MIN_SLOTS = 2, FETCHERS = 256 };
#define REST_BYTES (7ull << 20)

enum { IN_FLIGHT = 64 }; /* of a process, see net/retry/policy.c */
enum { FEW_NODES = 4 };

/* ---- the order, the memory ------------------------------------------------------------------- */

static int plan_memory(PenSimJob *job, PenError *reterr)
{
    const PenSimSettings *s = job->s;
    uint64_t tensors = s->batch_bytes ? s->batch_bytes : s->batch * SAMPLE_BYTES;
    PenRemoteNeeds needs = {.slot = PEN_MIN(tensors, UINT64_MAX / 8) + SLOT_EXTRA +
                                    (uint64_t)s->batch * SAMPLE_EXTRA,
                            .rest = REST_BYTES,
                            .largest_block = job->pack.largest_block,
                            .indexes = job->pack.n_blocks * job->pack.index_bytes};
    needs.ring = MIN_SLOTS * needs.slot;
    job->shares.total = s->memory_bytes;
    job->ring_bytes = pen__remote_ring(&needs);
    uint64_t need = pen__remote_shares(&needs, &job->shares);
    if (!need)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                     "memory: expected at least %" PRIu64 " bytes for batches of %" PRIu64
                     " bytes and blocks of %" PRIu64 " bytes, found %" PRIu64
                     "; increase the memory, or use smaller batches or blocks",
                     need, needs.slot, job->pack.largest_block, s->memory_bytes);
}

static int plan_order(PenSimJob *job, PenError *reterr)
{
    const PenSimSettings *s = job->s;
    const PenSimPack *p = &job->pack;
    uint64_t buffer =
        s->shuffle_buffer ? s->shuffle_buffer : pen__order_buffer(p->payload_bytes, p->n_samples);
    job->plan = (PenOrderPlan){.kind = s->sticky ? PEN_ORDER_STICKY : PEN_ORDER_SHUFFLE,
                               .n = p->n_samples,
                               .seed = s->seed,
                               .block_samples = p->block_samples,
                               .streams = pen__streams_for(buffer, p->block_samples)};
    return pen__order_init(&job->order, &job->plan, s->epoch, reterr);
}

static void plan_fetching(PenSimJob *job)
{
    bool is_even = pen__deal_for(&job->order, job->world) == PEN_DEAL_IN_TURN;
    const PenSimSettings *s = job->s;
    const PenSimPack *p = &job->pack;
    PenRemoteJob remote = {.order = job->plan.kind,
                           .world = job->world,
                           .streams = (double)job->order.streams / job->world,
                           .batch = is_even ? 0 : s->batch,
                           .block_samples = p->block_samples,
                           .n_blocks = p->n_blocks,
                           .n_samples = p->n_samples,
                           .total_bytes = p->pack_bytes,
                           .limit_bytes = job->shares.blocks,
                           .ring_bytes = job->ring_bytes,
                           .rest_bytes = REST_BYTES,
                           .has_cache = s->cache_bytes > 0,
                           .is_set = s->in_flight > 0};
    job->in_flight = s->in_flight ? pen__node_share(s->in_flight, s->ranks)
                                  : pen__node_usual(IN_FLIGHT, s->ranks);
    job->fetch.fetchers = s->in_flight ? PEN_MAX(job->in_flight, (uint32_t)IN_FLIGHT) : FETCHERS;
    pen__remote_choose(&remote, &job->fetch);
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* A node needs the same blocks in every epoch if the order is sticky; else any. */
static void plan_cache(PenSimJob *job, double of_node)
{
    double all = (double)job->pack.n_blocks, stored = PEN_MIN(of_node, all);
    stored = PEN_MIN((double)job->cache.capacity, stored);
    double needed = job->s->sticky ? PEN_MIN(of_node, all) : all;
    job->cache.share = needed > 0 ? stored / needed : 0;
    job->cache.stored = (uint64_t)stored;
}

static int count(PenSimJob *job, PenSimResult *ret, PenError *reterr)
{
    PenOrder first;
    PenSimCount n;
    int r = pen__order_init(&first, &job->plan, 0, reterr);
    if (r == PEN_OK)
        r = pen__sim_count(job, &first, &n, reterr);
    if (r < 0)
        return r;
    double requests = n.blocks + n.parts + n.indexes;
    ret->block_fetches = (uint64_t)(n.blocks + 0.5);
    ret->part_fetches = (uint64_t)(n.parts + 0.5);
    ret->index_fetches = (uint64_t)(n.indexes + 0.5);
    ret->is_exact = n.is_exact;
    ret->amplification = n.bytes / (n.samples * job->pack.sample_bytes);
    ret->requests_per_block = requests * (double)job->pack.block_samples / n.samples;
    job->request_samples = n.samples / PEN_MAX(n.blocks + n.parts, 1.0);
    ret->second_epoch = -1;
    if (!job->cache.capacity)
        return PEN_OK;
    plan_cache(job, n.of_node);
    ret->second_epoch = ret->amplification * (1 - job->cache.share);
    return PEN_OK;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* What it costs to simulate `seconds` of one node: the memory is filled, then its ranks read on. */
static double cost(const PenSimJob *job, double seconds)
{
    const PenSimSettings *s = job->s;
    double k = job->request_samples;
    double each = k * job->pack.sample_bytes;
    double a_step = PEN_MAX(s->step_ms, s->decode_ms) / 1e3;
    double per_s = s->batch / a_step * s->ranks / k; /* requests */
    if (s->node_bytes_per_s)
        per_s = PEN_MIN(per_s, (double)s->node_bytes_per_s / each);
    if (s->store_bytes_per_s)
        per_s = PEN_MIN(per_s, (double)s->store_bytes_per_s / s->nodes / each);
    if (s->latency_ms > 0)
        per_s = PEN_MIN(per_s, (double)job->in_flight * s->ranks / s->latency_ms * 1e3);
    double requests = (double)job->shares.blocks / each * s->ranks + per_s * seconds;
    requests = PEN_MIN(requests, (double)job->pack.n_samples / k / s->nodes + s->ranks);
    return requests * (REQUEST_S + k * SAMPLE_S);
}

/* When all nodes would cost too much, some are followed, which stand for the others; when a few
 * cost too much, for a shorter time. */
static double choose_effort(PenSimJob *job)
{
    const PenSimSettings *s = job->s;
    double seconds = s->seconds, least = PEN_MIN(s->nodes, (uint32_t)FEW_NODES);
    double most = PEN_MAX(s->effort / cost(job, seconds), least);
    job->followed = most < s->nodes ? (uint32_t)most : s->nodes;
    while (seconds > 1 && cost(job, seconds) * job->followed > s->effort)
        seconds *= 0.9;
    job->n_ranks = (uint64_t)job->followed * s->ranks;
    job->weight = (double)s->nodes / job->followed;
    return PEN_MIN(PEN_MAX(seconds, 1), s->seconds);
}

/* The i-th rank of those that are simulated, and its node if it is the first of it. */
static int build_rank(PenSimJob *job, uint32_t i, uint64_t spread, PenError *reterr)
{
    const PenSimSettings *s = job->s;
    uint32_t node = i / s->ranks, of_all = (uint32_t)((uint64_t)node * s->nodes / job->followed);
    int r = PEN_OK;
    if (i % s->ranks == 0) {
        job->links[node] =
            pen__sim_net_link(job->net, s->node_bytes_per_s, s->connection_bytes_per_s);
        if (!job->links[node])
            return pen__fail_memory(reterr, WHERE, "nodes");
        PenSimCachePlan plan = job->cache;
        plan.stored = s->epoch ? plan.stored : 0;
        plan.share = s->epoch ? plan.share : 0;
        r = pen__sim_cache_init(&job->caches[node], &plan, &job->pack, of_all, reterr);
    }
    if (r == PEN_OK) {
        job->n_built = i + 1;
        r = pen__sim_rank_init(&job->ranks[i], job, of_all * s->ranks + i % s->ranks,
                               job->links[node], &job->caches[node], reterr);
    }
    if (r == PEN_OK)
        pen__sim_rank_start(&job->ranks[i],
                            job->start_ns + pen__sim_net_draw(job->net, spread + 1));
    return r;
}

static int build(PenSimJob *job, PenError *reterr)
{
    const PenSimSettings *s = job->s;
    PenSimServer server = {.answer = pen__sim_store_answer, .ctx = &job->store};
    pen__sim_store_init(&job->store, s, &job->pack, job->weight);
    job->net = pen__sim_net_new(s->seed, &server);
    job->ranks = pen__alloc_array(job->n_ranks, sizeof *job->ranks);
    job->links = pen__alloc_array(job->followed, sizeof(PenSimLink *));
    job->caches = pen__alloc_array(job->followed, sizeof *job->caches);
    if (!job->net || !job->ranks || !job->links || !job->caches)
        return pen__fail_memory(reterr, WHERE, "ranks");
    job->store.net = job->net;
    job->start_ns = pen__sim_net_now(job->net);
    uint64_t spread = (uint64_t)(s->spread_s * 1e9);
    int r = PEN_OK;
    for (uint32_t i = 0; i < job->n_ranks && r == PEN_OK; i++)
        r = build_rank(job, i, spread, reterr);
    if (r < 0)
        return r;
    return pen__sim_net_limit(job->net, (uint64_t)((double)s->store_bytes_per_s / job->weight));
}

static int go(PenSimJob *job, double seconds, PenError *reterr)
{
    uint64_t end = job->start_ns + (uint64_t)(seconds * 1e9);
    while (job->r == PEN_OK && pen__sim_net_step(job->net, end))
        ;
    if (job->r < 0 && reterr)
        *reterr = job->err;
    return job->r;
}

static void tear_down(PenSimJob *job)
{
    for (uint64_t i = 0; i < job->n_built; i++)
        pen__sim_rank_fini(&job->ranks[i]);
    for (uint32_t i = 0; job->caches && i < job->followed; i++)
        pen__sim_cache_fini(&job->caches[i]);
    pen__sim_net_free(&job->net);
    pen__free(job->caches);
    pen__free(job->ranks);
    pen__free(job->links);
    pen__sim_pack_fini(&job->pack);
}

static int plan_job(PenSimJob *job, PenSimResult *result, PenError *reterr)
{
    job->world = job->s->nodes * job->s->ranks;
    int r = plan_memory(job, reterr);
    if (r == PEN_OK)
        r = plan_order(job, reterr);
    if (r < 0)
        return r;
    plan_fetching(job);
    PenSplit split = pen__sim_split(&job->order, job->s->batch, job->world, 0);
    result->steps = job->steps = pen__split_steps(&split);
    if (!job->steps)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%" PRIu32 " ranks with batches of %u: expected at least one batch of "
                         "samples for each rank, found %" PRIu64,
                         job->world, job->s->batch, job->plan.n);
    job->cache.capacity = job->s->cache_bytes / PEN_MAX(job->pack.block_bytes, 1u);
    job->cache.seed = job->s->seed;
    return count(job, result, reterr);
}

int pen__simulate(const PenSimSettings *settings, PenSimResult *ret, PenError *reterr)
{
    PenSimJob job = {.s = settings};
    PenSimResult result = {0};
    int r = pen__sim_settings_check(settings, reterr);
    if (r == PEN_OK)
        r = pen__sim_pack_init(&job.pack, settings, reterr);
    if (r == PEN_OK)
        r = plan_job(&job, &result, reterr);
    double seconds = r == PEN_OK ? choose_effort(&job) : 0;
    if (r == PEN_OK)
        r = build(&job, reterr);
    if (r == PEN_OK)
        r = go(&job, seconds, reterr);
    if (r == PEN_OK)
        r = pen__sim_result(&job, &result, reterr);
    tear_down(&job);
    if (r == PEN_OK)
        *ret = result;
    return r;
}
