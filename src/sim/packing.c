/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/packing.h"

#include "base/abi.h"
#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "sim/job.h"

#define WHERE "sim/packing"

/* What a sample costs to simulate, in seconds of a processor of about 2020. */
#define SAMPLE_S 6e-6
enum { FEW_NODES = 4, FEW_SHARDS = 4, LOOK_EVENTS = 1 << 13 };
enum { MAX_TASKS = 1 << 20, MAX_AT_ONCE = 256 };
enum { PLAN_STRIDES = 4096 }; /* a task reads half of one at its start and half of one at its end */
enum { LIST_KEYS = 1000 };    /* in a page; on average half of the tasks have a record */
enum { RECORD_HEAD_BYTES = 76, RECORD_SHARD_BYTES = 24 };

static const PenSimPackingSettings DEFAULTS = {
    .struct_size = sizeof DEFAULTS,
    .tasks = 1000,
    .tasks_per_node = 4,
    .threads = 4,
    .sample_ms = 0.9,
    .write_ms = 0.1,
    .plan_us = 6,
    .key_bytes = 40,
    .source_prefixes = PEN_SIM_PREFIXES,
    .prefix_writes_per_s = 3500,
};

void pen_sim_packing_settings_init_sized(PenSimPackingSettings *settings, size_t bytes)
{
    pen__settings_default(settings, bytes, &DEFAULTS, sizeof DEFAULTS);
}

static int check(const PenSimPacking *p, PenError *reterr)
{
    const PenSimPackingSettings *s = &p->s;
    const double times[] = {s->sample_ms, s->write_ms, s->plan_us};
    if (s->tasks < 1 || s->tasks > MAX_TASKS || s->tasks > p->job.n_samples)
        return pen__sim_refuse(reterr, "tasks", s->tasks, "1 to 1048576, at most one per sample");
    if (s->tasks_per_node < 1 || s->tasks_per_node > MAX_AT_ONCE)
        return pen__sim_refuse(reterr, "tasks of a node", s->tasks_per_node, "1 to 256");
    if (s->threads < 1 || s->threads > MAX_AT_ONCE)
        return pen__sim_refuse(reterr, "threads", s->threads, "1 to 256");
    for (size_t i = 0; i < PEN_LEN(times); i++)
        if (!(times[i] >= 0 && times[i] <= 3600e3))
            return pen__sim_refuse(reterr, "time of a sample", times[i], "0 to 3600000");
    if (s->source_prefixes < 1 || s->source_prefixes > PEN_SIM_PREFIXES)
        return pen__sim_refuse(reterr, "prefixes of the sources", s->source_prefixes, "1 to 256");
    if (!(s->lost >= 0 && s->lost <= 100))
        return pen__sim_refuse(reterr, "lost tasks", s->lost, "0 to 100 of a hundred");
    return PEN_OK;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A shard ends with the block that makes it large enough. */
static uint64_t blocks_of_a_shard(const PenSimPacking *p)
{
    uint64_t block = p->pack.block_bytes;
    return PEN_MAX((p->job.shard_bytes - 1) / block + 1, 1u);
}

static void plan_tasks(PenSimPacking *p)
{
    const PenSimSettings *job = &p->job;
    uint64_t entry = PEN_SIM_PLAN_ENTRY_BYTES + p->s.key_bytes;
    p->task_samples = (job->n_samples - 1) / p->s.tasks + 1;
    p->plan = (PenSimTaskPlan){
        .fault = &p->fault,
        .sample_bytes = job->sample_bytes,
        .block_samples = job->block_samples,
        .shard_blocks = blocks_of_a_shard(p),
        .page_samples = PEN_SIM_PAGE_BYTES / entry,
        .split_pages = job->n_samples * entry / PLAN_STRIDES / PEN_SIM_PAGE_BYTES,
        .sample_ns = (uint64_t)(p->s.sample_ms * 1e6),
        .write_ns = (uint64_t)(p->s.write_ms * 1e6),
        .threads = p->s.threads,
        .prefixes = job->prefixes,
        .source_prefixes = p->s.source_prefixes,
        .in_flight = job->in_flight,
        .list_pages = 1 + (p->s.tasks - 1) / 2 / LIST_KEYS,
    };
    p->plan.record_bytes =
        RECORD_HEAD_BYTES +
        RECORD_SHARD_BYTES * (pen__sim_task_shards(&p->plan, p->task_samples) + 1);
}

/* Entire shards, so that the rate does not depend on where in a shard it is measured. */
static void choose_samples(PenSimPacking *p, double most)
{
    uint64_t shard = p->plan.shard_blocks * p->plan.block_samples;
    p->simulated = p->task_samples;
    if (most < (double)p->task_samples)
        p->simulated = PEN_MAX((uint64_t)most / shard, 1u) * shard;
    p->simulated = PEN_MIN(p->simulated, p->task_samples);
    p->plan.warm = p->simulated / 4 / shard * shard;
    if (!p->plan.warm)
        p->plan.warm = p->simulated > shard ? shard : p->simulated / 4;
}

/* When all nodes would cost too much, some are followed, which stand for the others, and the first
 * shards of their tasks. */
static void choose_effort(PenSimPacking *p)
{
    const PenSimSettings *job = &p->job;
    uint64_t at_once = p->s.tasks_per_node;
    double samples = job->effort / SAMPLE_S / (double)at_once; /* of one task of each node */
    uint64_t few = FEW_SHARDS * p->plan.shard_blocks * p->plan.block_samples;
    uint64_t least = PEN_MIN(p->task_samples, few);
    uint32_t busy = (uint32_t)PEN_MIN((p->s.tasks - 1) / at_once + 1, (uint64_t)job->nodes);
    double nodes = PEN_MAX(samples / (double)least, FEW_NODES);
    p->followed = nodes < busy ? (uint32_t)nodes : busy;
    p->weight = (double)busy / p->followed;
    p->n_tasks = (uint32_t)PEN_MIN(p->followed * at_once, (uint64_t)p->s.tasks);
    choose_samples(p, PEN_MAX(samples / p->followed, (double)least));
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static int build(PenSimPacking *p, PenError *reterr)
{
    int r = pen__sim_packing_open_net(p, p->weight, reterr);
    p->nodes = pen__alloc_array(p->followed, sizeof *p->nodes);
    p->tasks = pen__alloc_array(p->n_tasks, sizeof *p->tasks);
    if (r == PEN_OK && (!p->nodes || !p->tasks))
        r = pen__fail_memory(reterr, WHERE, "tasks");
    for (uint32_t i = 0; i < p->followed && r == PEN_OK; i++)
        r = pen__sim_packing_open_node(p, &p->nodes[i], reterr);
    for (uint32_t i = 0, node = 0; i < p->n_tasks && r == PEN_OK; i++, node++) {
        node = node < p->followed ? node : 0;
        r = pen__sim_task_init(&p->tasks[i], &p->plan, p->simulated, &p->nodes[node], reterr);
        p->n_built = i + 1;
        if (r == PEN_OK)
            pen__sim_task_start(&p->tasks[i], pen__sim_net_now(p->net));
    }
    return r;
}

static int is_stopped(const PenSimPacking *p)
{
    const PenSimSettings *s = &p->job;
    uint64_t done = 0;
    for (uint32_t i = 0; i < p->n_tasks; i++)
        done += p->tasks[i].collected;
    double share = (double)done / ((double)p->simulated * p->n_tasks);
    double seconds = (double)pen__sim_net_now(p->net) / 1e9 - 1;
    if (s->progress_of)
        return s->progress_of(s->ctx, seconds, share > 0 ? seconds / share : 0);
    return s->progress && s->progress(s->ctx, seconds);
}

static bool have_ended(const PenSimPacking *p)
{
    for (uint32_t i = 0; i < p->n_tasks; i++)
        if (!p->tasks[i].end_ns)
            return false;
    return true;
}

static int run_tasks(PenSimPacking *p, PenError *reterr)
{
    int r = build(p, reterr);
    for (uint64_t n = 1; r == PEN_OK && p->fault.r == PEN_OK; n++) {
        if (!pen__sim_net_step(p->net, UINT64_MAX / 2))
            break;
        if (n % LOOK_EVENTS)
            continue;
        if (have_ended(p))
            break;
        if (is_stopped(p))
            r = pen__fail(reterr, PEN_E_CANCELLED, WHERE, "the simulation was interrupted");
    }
    if (r == PEN_OK && p->fault.r < 0 && reterr)
        *reterr = p->fault.err;
    return r < 0 ? r : p->fault.r;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int take_settings(PenSimPacking *p, const PenSimPackingSettings *settings, PenError *reterr)
{
    p->s = DEFAULTS;
    pen_sim_settings_init(&p->job);
    int r =
        pen__settings_copy(&p->s, sizeof p->s, settings, "pen_sim_packing_settings_init", reterr);
    if (r == PEN_OK)
        r = pen__settings_copy(&p->job, sizeof p->job, p->s.job, "pen_sim_settings_init", reterr);
    p->job.pack = NULL;
    if (r == PEN_OK)
        r = pen__sim_check(&p->job, reterr);
    if (r == PEN_OK)
        r = pen__sim_pack_init(&p->pack, &p->job, reterr);
    return r == PEN_OK ? check(p, reterr) : r;
}

static int simulate(PenSimPacking *p, PenSimPackingResult *result, PenError *reterr)
{
    plan_tasks(p);
    choose_effort(p);
    int r = run_tasks(p, reterr);
    if (r == PEN_OK)
        r = pen__sim_packing_tasks(p, result, reterr);
    pen__sim_packing_close_net(p);
    return r == PEN_OK ? pen__sim_packing_phases(p, result, reterr) : r;
}

int pen_simulate_packing_sized(const PenSimPackingSettings *settings, PenSimPackingResult *ret,
                               size_t ret_bytes, PenError *reterr)
{
    PenSimPackingResult result = {0};
    PenSimPacking *p = pen__zalloc(sizeof *p);
    if (!p)
        return pen__fail_memory(reterr, WHERE, "job");
    int r = take_settings(p, settings, reterr);
    if (r == PEN_OK)
        r = simulate(p, &result, reterr);
    pen__free(p);
    if (r == PEN_OK)
        pen__result_copy(ret, ret_bytes, &result, sizeof result);
    return r;
}
