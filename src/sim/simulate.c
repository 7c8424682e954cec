/* SPDX-License-Identifier: Apache-2.0 */
#include <penstock/simulate.h>

#include <inttypes.h>

#include "base/abi.h"
#include "base/attr.h"
#include "base/error.h"
#include "base/machine/ranks.h"
#include "base/mem.h"
#include "sim/count.h"
#include "sim/rank.h"
#include "sim/result.h"

#define WHERE "sim/simulate"

/* What a sample and a block cost to simulate, in seconds of a processor of about 2020. */
#define SAMPLE_S 0.5e-6
#define BLOCK_S 13e-6

#define SAMPLE_BYTES (224ull * 224 * 3) /* of a batch, when it is not said how large one is */
enum { REMOTE_SLOTS = 8 };              /* batches that memory is kept for */

enum { FEW_NODES = 4 };
enum { MAX_NODES = 1 << 16, MAX_RANKS = 1 << 20, LOOK_EVENTS = 1 << 13 };

static const PenSimSettings DEFAULTS = {
    .struct_size = sizeof DEFAULTS,
    .block_samples = 32,
    .shard_bytes = 512ull << 20,
    .nodes = 1,
    .ranks = 8,
    .batch = 256,
    .prefetch = 2,
    .step_ms = 100,
    .memory_bytes = 2ull << 30,
    .latency_ms = 100,
    .latency_p99_ms = 300,
    .connect_ms = 30,
    .connection_bytes_per_s = 90000000,
    .node_bytes_per_s = 12500000000,
    .prefixes = PEN_SIM_PREFIXES,
    .prefix_per_s = 5500,
    .failures = 0.1,
    .seconds = 60,
    .effort = 30,
};

void pen_sim_settings_init_sized(PenSimSettings *settings, size_t bytes)
{
    pen__settings_default(settings, bytes, &DEFAULTS, sizeof DEFAULTS);
}

int pen__sim_refuse(PenError *reterr, const char *what, double found, const char *expected)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected %s, found %g", what, expected,
                     found);
}

static int check_job(const PenSimSettings *s, PenError *reterr)
{
    const double times[] = {s->step_ms, s->decode_ms, s->latency_ms, s->latency_p99_ms,
                            s->connect_ms};
    if (s->nodes < 1 || s->nodes > MAX_NODES)
        return pen__sim_refuse(reterr, "nodes", s->nodes, "1 to 65536");
    if (s->ranks < 1 || (uint64_t)s->nodes * s->ranks > MAX_RANKS)
        return pen__sim_refuse(reterr, "ranks", s->ranks,
                               "1 or more, and at most 1048576 on all nodes");
    if (s->batch < 1 || s->batch > 1u << 20)
        return pen__sim_refuse(reterr, "batch", s->batch, "1 to 1048576");
    for (size_t i = 0; i < PEN_LEN(times); i++)
        if (!(times[i] >= 0 && times[i] <= 3600e3))
            return pen__sim_refuse(reterr, "milliseconds", times[i], "0 to 3600000");
    if (!(s->step_ms + s->decode_ms > 0))
        return pen__sim_refuse(reterr, "time of a step", 0,
                               "more than 0 for computing or decoding");
    if (s->latency_p99_ms < s->latency_ms)
        return pen__sim_refuse(reterr, "latency p99", s->latency_p99_ms, "no less than the median");
    return PEN_OK;
}

int pen__sim_check(const PenSimSettings *s, PenError *reterr)
{
    int r = check_job(s, reterr);
    if (r < 0)
        return r;
    if (!s->prefetch)
        return pen__sim_refuse(reterr, "prefetch", 0, "at least 1");
    if (s->prefixes < 1 || s->prefixes > PEN_SIM_PREFIXES)
        return pen__sim_refuse(reterr, "prefixes", s->prefixes, "1 to 256");
    if (!(s->failures >= 0 && s->failures <= 1000))
        return pen__sim_refuse(reterr, "failures", s->failures, "0 to 1000 of a thousand");
    if (!(s->seconds > 0 && s->seconds <= 1e6) || !(s->effort > 0))
        return pen__sim_refuse(reterr, "seconds", s->seconds, "more than 0, at most 1000000");
    if (!(s->spread_s >= 0 && s->spread_s <= 1e6))
        return pen__sim_refuse(reterr, "seconds over which ranks start", s->spread_s,
                               "0 to 1000000");
    return PEN_OK;
}

/* ---- the order ------------------------------------------------------------------------------- */

/* Half of what eight batches leave, see load/plan/memory.c. */
static int plan_memory(PenSimJob *job, PenError *reterr)
{
    uint64_t m = job->s->memory_bytes, block = job->pack.largest_block;
    uint64_t batch = job->s->batch_bytes ? job->s->batch_bytes : job->s->batch * SAMPLE_BYTES;
    uint64_t ring = PEN_MIN(batch, UINT64_MAX / REMOTE_SLOTS) * REMOTE_SLOTS;
    uint64_t half = (m - PEN_MIN(ring, m / 2)) / 2;
    if (half / 4 < block)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "memory: expected at least %" PRIu64 " bytes for blocks of %" PRIu64
                         " bytes, found %" PRIu64 "; increase the memory, or use smaller blocks",
                         block < UINT64_MAX / 16 ? 16 * block : UINT64_MAX, block, m);
    job->window_bytes = half - 2 * block;
    return PEN_OK;
}

static int plan_order(PenSimJob *job, PenOrderPlan *ret, PenError *reterr)
{
    uint32_t lanes, window;
    /* An eighth of a rank's memory is what they are chosen from, see load/plan/memory.c. */
    pen__order_choose(job->s->memory_bytes / 8, job->pack.largest_block, job->pack.n_blocks,
                      job->world, &lanes, &window);
    *ret = (PenOrderPlan){.kind = job->s->sticky ? PEN_ORDER_STICKY : PEN_ORDER_BLOCK,
                          .n = job->pack.n_samples,
                          .seed = job->s->seed,
                          .block_samples = job->pack.block_samples,
                          .lanes = job->s->lanes ? job->s->lanes : lanes,
                          .window = job->s->window ? job->s->window : window};
    return pen__order_init(&job->order, ret, job->s->epoch, reterr);
}

static int plan_cache(PenSimJob *job, const PenOrderPlan *plan, PenError *reterr)
{
    job->cache = (PenSimCache){.nodes = job->s->nodes, .ranks = job->s->ranks};
    if (plan->lanes % job->world == 0)
        job->cache.blocks = job->s->cache_bytes / PEN_MAX(job->pack.block_bytes, 1u);
    return pen__order_init(&job->cache.first, plan, 0, reterr);
}

static int count(PenSimJob *job, const PenOrderPlan *plan, PenSimResult *ret, PenError *reterr)
{
    PenSplit split = {.n = plan->n, .batch = job->s->batch, .world = job->world, .drop_last = true};
    PenSimCount n;
    /* Ranks of a node share what they fetch through its cache alone. */
    int r = pen__sim_count(&job->cache.first, &split, job->s->cache_bytes ? job->s->ranks : 1, &n,
                           reterr);
    if (r < 0)
        return r;
    job->steps = pen__split_steps(&split);
    ret->steps = job->steps;
    ret->block_fetches = (uint64_t)(n.fetches + 0.5);
    ret->is_exact = n.is_exact;
    ret->amplification = n.fetches / (double)job->pack.n_blocks;
    ret->second_epoch = -1;
    PenOrder second;
    if (!job->cache.blocks)
        return PEN_OK;
    r = pen__order_init(&second, plan, 1, reterr);
    if (r == PEN_OK)
        ret->second_epoch = ret->amplification - pen__sim_count_hits(&job->cache, &second);
    return r;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* What it costs to simulate `seconds` of one node: the memory is filled, then its ranks read on. */
static double cost(const PenSimJob *job, double seconds)
{
    const PenSimSettings *s = job->s;
    double k = (double)job->pack.block_samples, block = (double)job->pack.block_bytes;
    double a_step = PEN_MAX(s->step_ms, s->decode_ms) / 1e3;
    double per_s = s->batch / a_step * s->ranks / k; /* blocks */
    if (s->node_bytes_per_s)
        per_s = PEN_MIN(per_s, (double)s->node_bytes_per_s / block);
    if (s->store_bytes_per_s)
        per_s = PEN_MIN(per_s, (double)s->store_bytes_per_s / s->nodes / block);
    if (s->latency_ms > 0)
        per_s = PEN_MIN(
            per_s, PEN_MAX(s->in_flight ? s->in_flight : pen__node_usual(64, s->ranks) * s->ranks,
                           s->ranks) /
                       s->latency_ms * 1e3);
    double blocks = (double)job->window_bytes / block * s->ranks + per_s * seconds;
    blocks = PEN_MIN(blocks, (double)job->pack.n_blocks / s->nodes + s->ranks);
    return blocks * (BLOCK_S + k * SAMPLE_S);
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

static int build(PenSimJob *job, PenError *reterr)
{
    const PenSimSettings *s = job->s;
    PenSimServer server = {.answer = pen__sim_store_answer, .ctx = &job->store};
    pen__sim_store_init(&job->store, s, &job->pack, job->weight);
    job->net = pen__sim_net_new(s->seed, &server);
    job->ranks = pen__alloc_array(job->n_ranks, sizeof *job->ranks);
    job->links = pen__alloc_array(job->followed, sizeof(PenSimLink *));
    if (!job->net || !job->ranks || !job->links)
        return pen__fail_memory(reterr, WHERE, "ranks");
    job->store.net = job->net;
    job->start_ns = pen__sim_net_now(job->net);
    uint64_t spread = (uint64_t)(s->spread_s * 1e9);
    for (uint32_t i = 0; i < job->n_ranks; i++) {
        uint32_t node = i / s->ranks,
                 of_all = (uint32_t)((uint64_t)node * s->nodes / job->followed);
        if (i % s->ranks == 0)
            job->links[node] =
                pen__sim_net_link(job->net, s->node_bytes_per_s, s->connection_bytes_per_s);
        if (!job->links[node])
            return pen__fail_memory(reterr, WHERE, "nodes");
        int r = pen__sim_rank_init(&job->ranks[i], job, of_all * s->ranks + i % s->ranks,
                                   job->links[node], reterr);
        job->n_built = i + 1;
        if (r < 0)
            return r;
        pen__sim_rank_start(&job->ranks[i],
                            job->start_ns + pen__sim_net_draw(job->net, spread + 1));
    }
    return pen__sim_net_limit(job->net, (uint64_t)((double)s->store_bytes_per_s / job->weight));
}

/* Until the time is over, or about when the last batch of the epoch is delivered. */
static double expected_seconds(const PenSimJob *job, double seconds)
{
    const PenSimSettings *s = job->s;
    double epoch = (double)job->steps * PEN_MAX(s->step_ms, s->decode_ms) / 1e3 + s->spread_s;
    return PEN_MIN(seconds, epoch);
}

static int is_stopped(const PenSimJob *job, double total)
{
    const PenSimSettings *s = job->s;
    double seconds = (double)(pen__sim_net_now(job->net) - job->start_ns) / 1e9;
    if (s->progress_of)
        return s->progress_of(s->ctx, seconds, total);
    return s->progress && s->progress(s->ctx, seconds);
}

static int go(PenSimJob *job, double seconds, PenError *reterr)
{
    double total = expected_seconds(job, seconds);
    uint64_t end = job->start_ns + (uint64_t)(seconds * 1e9);
    for (uint64_t n = 1; pen__sim_net_step(job->net, end); n++) {
        if (job->r < 0) {
            if (reterr)
                *reterr = job->err;
            return job->r;
        }
        if (n % LOOK_EVENTS == 0 && is_stopped(job, total))
            return pen__fail(reterr, PEN_E_CANCELLED, WHERE, "the simulation was interrupted");
    }
    return PEN_OK;
}

static void tear_down(PenSimJob *job)
{
    for (uint64_t i = 0; i < job->n_built; i++)
        pen__sim_rank_fini(&job->ranks[i]);
    pen__sim_net_free(&job->net);
    pen__free(job->ranks);
    pen__free(job->links);
}

static int plan_job(PenSimJob *job, PenSimResult *result, PenError *reterr)
{
    PenOrderPlan plan;
    job->world = job->s->nodes * job->s->ranks;
    int r = plan_memory(job, reterr);
    if (r == PEN_OK)
        r = plan_order(job, &plan, reterr);
    if (r == PEN_OK)
        r = plan_cache(job, &plan, reterr);
    if (r == PEN_OK)
        r = count(job, &plan, result, reterr);
    if (r == PEN_OK && !job->steps)
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "%" PRIu32 " ranks with batches of %u: expected at least one batch of "
                      "samples for each rank, found %" PRIu64,
                      job->world, job->s->batch, plan.n);
    return r;
}

int pen_simulate_sized(const PenSimSettings *settings, PenSimResult *ret, size_t ret_bytes,
                       PenError *reterr)
{
    PenSimSettings own = DEFAULTS;
    PenSimJob job = {.s = &own};
    PenSimResult result = {0};
    int r = pen__settings_copy(&own, sizeof own, settings, "pen_sim_settings_init", reterr);
    if (r == PEN_OK)
        r = pen__sim_check(&own, reterr);
    if (r == PEN_OK)
        r = pen__sim_pack_init(&job.pack, &own, reterr);
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
        pen__result_copy(ret, ret_bytes, &result, sizeof result);
    return r;
}
