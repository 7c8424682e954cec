/* SPDX-License-Identifier: Apache-2.0 */
/* From the tasks that were simulated to the entire job. */
#include <math.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "sim/packing.h"

#define WHERE "sim/packing"

/* S3 Standard, us-east-1: $0.0004 for 1,000 GET or HEAD, $0.005 for 1,000 PUT, POST or LIST. */
#define READ_DOLLARS_PER_MILLION 0.4
#define WRITE_DOLLARS_PER_MILLION 5.0
#define MANY_THROTTLED 0.01 /* of the requests: the store is the bottleneck */

enum { SHARD_ENTRY_BYTES = 96 }; /* of a manifest */
enum { DEATHS_STREAM = 1 };      /* of random numbers */

/* ---- when tasks end -------------------------------------------------------------------------- */

static double rate_of(const PenSimTask *t)
{
    double seconds = (double)(t->last_ns - t->warm_ns) / 1e9;
    return seconds > 0 ? (double)(t->n - t->plan->warm) / seconds : 0;
}

/* A task that was simulated in part goes on at the same rate. */
static double seconds_of(const PenSimPacking *p, const PenSimTask *t)
{
    double seconds = (double)(t->end_ns - t->start_ns) / 1e9;
    if (p->task_samples > t->n)
        seconds += (double)(p->task_samples - t->n) / rate_of(t);
    return seconds;
}

typedef struct Schedule {
    const PenSimPacking *p;
    double *free_s; /* of each slot */
    uint64_t n_slots;
    PenRng rng;
    double runs; /* with parts of those that died */
    uint64_t deaths;
    double end_s;
} Schedule;

static void run_on_a_slot(Schedule *s, double seconds)
{
    double *slot = s->free_s;
    for (uint64_t i = 1; i < s->n_slots; i++)
        if (s->free_s[i] < *slot)
            slot = &s->free_s[i];
    *slot += seconds;
    s->end_s = PEN_MAX(s->end_s, *slot);
}

/* Tasks that die are spread evenly over all of them; they run again from the beginning. */
static void schedule_task(Schedule *s, uint32_t task)
{
    const PenSimPacking *p = s->p;
    double seconds = seconds_of(p, &p->tasks[task % p->n_tasks]), lost = p->s.lost / 100;
    if (floor((task + 1) * lost) > floor(task * lost)) {
        double share = (double)(pen__rng_next(&s->rng) >> 11) * 0x1p-53;
        run_on_a_slot(s, share * seconds);
        s->runs += share;
        s->deaths++;
    }
    run_on_a_slot(s, seconds);
    s->runs += 1;
}

static int schedule(PenSimPacking *p, Schedule *s, PenError *reterr)
{
    *s = (Schedule){.p = p,
                    .n_slots = (uint64_t)p->job.nodes * p->s.tasks_per_node,
                    .rng = pen__rng_init(p->job.seed, DEATHS_STREAM)};
    s->free_s = pen__zalloc(s->n_slots * sizeof *s->free_s);
    if (!s->free_s)
        return pen__fail_memory(reterr, WHERE, "slots");
    for (uint32_t i = 0; i < p->s.tasks; i++)
        schedule_task(s, i);
    pen__free(s->free_s);
    return PEN_OK;
}

/* ---- requests -------------------------------------------------------------------------------- */

typedef struct Repeats { /* for each operation */
    double retries, hedges, throttles;
} Repeats;

static Repeats repeats_of(const PenSimPacking *p, unsigned caller)
{
    Repeats sum = {0};
    double ops = 0;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        PenPolicyCounts c;
        pen__policy_counts(p->tasks[i].process.callers[caller].policy, &c);
        sum.retries += (double)c.retries;
        sum.hedges += (double)c.hedges;
        sum.throttles += (double)c.throttles;
        ops += (double)c.ops;
    }
    ops = PEN_MAX(ops, 1);
    return (Repeats){sum.retries / ops, sum.hedges / ops, sum.throttles / ops};
}

static void add_requests(const double n[PEN_SIM_KINDS], PenSimPackingResult *ret)
{
    ret->source_gets += n[PEN_SIM_SOURCE];
    ret->gets += n[PEN_SIM_GET];
    ret->heads += n[PEN_SIM_HEAD];
    ret->lists += n[PEN_SIM_LIST];
    ret->puts += n[PEN_SIM_PUT];
    ret->posts += n[PEN_SIM_POST];
    ret->deletes += n[PEN_SIM_DELETE];
}

/* The last tasks may have a sample less. */
static void count_requests(const PenSimPacking *p, double runs, PenSimPackingResult *ret)
{
    const Repeats of[PEN_SIM_CALLERS] = {repeats_of(p, 0), repeats_of(p, 1), repeats_of(p, 2)};
    uint64_t n = p->job.n_samples, tasks = p->s.tasks, larger = n % tasks;
    double one[PEN_SIM_KINDS] = {0}, less[PEN_SIM_KINDS] = {0}, all[PEN_SIM_KINDS];
    pen__sim_task_count(&p->plan, n / tasks + 1, one);
    pen__sim_task_count(&p->plan, n / tasks, less);
    for (size_t k = 0; k < PEN_SIM_KINDS; k++) {
        const Repeats *r = &of[pen__sim_caller_of((PenSimKind)k)];
        double need =
            (one[k] * (double)larger + less[k] * (double)(tasks - larger)) * runs / (double)tasks;
        ret->retries += need * r->retries;
        ret->hedges += need * r->hedges;
        ret->throttles += need * r->throttles;
        all[k] = need * (1 + r->retries + r->hedges);
    }
    add_requests(all, ret);
}

static void add_cost(PenSimPackingResult *ret)
{
    ret->dollars_per_million_reads = READ_DOLLARS_PER_MILLION;
    ret->dollars_per_million_writes = WRITE_DOLLARS_PER_MILLION;
    ret->dollars = (ret->source_gets + ret->gets + ret->heads) / 1e6 * READ_DOLLARS_PER_MILLION +
                   (ret->puts + ret->posts + ret->lists) / 1e6 * WRITE_DOLLARS_PER_MILLION;
}

/* ---- the bottleneck -------------------------------------------------------------------------- */

static void measure_busy(const PenSimPacking *p, PenSimPackingResult *ret)
{
    double all = 0;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const PenSimTask *t = &p->tasks[i];
        double seconds = (double)(t->last_ns - t->open_ns) / 1e9, rate = rate_of(t);
        all += rate;
        ret->cores_busy += rate * p->s.sample_ms / 1e3 / p->s.threads;
        ret->writer_busy += rate * p->s.write_ms / 1e3;
        ret->uploads_busy += (double)t->waited_ns / 1e9 / seconds;
        ret->requests_busy += (double)t->process.callers[PEN_SIM_OF_SOURCES].busy_ns / 1e9 /
                              seconds / PEN_SIM_READERS;
    }
    ret->cores_busy /= p->n_tasks;
    ret->writer_busy /= p->n_tasks;
    ret->uploads_busy /= p->n_tasks;
    ret->requests_busy /= p->n_tasks;
    ret->samples_per_s = all * p->weight;
    if (p->job.node_bytes_per_s)
        ret->network_busy =
            all / p->followed * (double)p->job.sample_bytes / (double)p->job.node_bytes_per_s;
}

static PenSimLimit find_limit(const PenSimPackingResult *r)
{
    double writing = r->writer_busy + r->uploads_busy;
    double most =
        PEN_MAX(PEN_MAX(r->cores_busy, writing), PEN_MAX(r->network_busy, r->requests_busy));
    if (r->throttles > MANY_THROTTLED * r->source_gets)
        return PEN_SIM_LIMIT_STORE;
    if (most <= r->network_busy)
        return PEN_SIM_LIMIT_NETWORK;
    if (most <= r->cores_busy)
        return PEN_SIM_LIMIT_CORES;
    if (most <= writing)
        return r->writer_busy > r->uploads_busy ? PEN_SIM_LIMIT_WRITER : PEN_SIM_LIMIT_UPLOADS;
    return PEN_SIM_LIMIT_REQUESTS;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int find_median(const PenSimPacking *p, double *ret, PenError *reterr)
{
    double *list = pen__alloc_array(p->n_tasks, sizeof *list);
    if (!list)
        return pen__fail_memory(reterr, WHERE, "tasks");
    for (uint32_t i = 0; i < p->n_tasks; i++)
        list[i] = seconds_of(p, &p->tasks[i]);
    qsort(list, p->n_tasks, sizeof *list, by_size);
    *ret = list[p->n_tasks / 2];
    pen__free(list);
    return PEN_OK;
}

/* Samples that fill no block, of all tasks. */
static uint64_t count_rests(const PenSimPacking *p, uint64_t *ret_tasks)
{
    uint64_t n = p->job.n_samples, tasks = p->s.tasks, larger = n % tasks, k = p->job.block_samples;
    uint64_t more = (n / tasks + 1) % k, less = n / tasks % k;
    *ret_tasks = (more ? larger : 0) + (less ? tasks - larger : 0);
    return more * larger + less * (tasks - larger);
}

static void describe(const PenSimPacking *p, PenSimPackingResult *ret)
{
    uint64_t n = p->job.n_samples, tasks = p->s.tasks, larger = n % tasks, with_rest;
    ret->followed = p->followed;
    ret->n_samples = n;
    ret->pack_bytes = p->pack.pack_bytes;
    ret->plan_bytes = n * (PEN_SIM_PLAN_ENTRY_BYTES + p->s.key_bytes);
    ret->n_shards = pen__sim_task_shards(&p->plan, n / tasks + 1) * larger +
                    pen__sim_task_shards(&p->plan, n / tasks) * (tasks - larger) +
                    (count_rests(p, &with_rest) > 0);
    ret->task_samples = p->task_samples;
    ret->simulated_samples = p->simulated;
    ret->source_peak_per_s = p->sources.most_in_a_s;
    ret->pack_peak_per_s = PEN_MAX(p->store.most_in_a_s, p->store.most_of_manifest);
}

static PenSimJobSize size_of_job(const PenSimPacking *p, const PenSimPackingResult *r)
{
    uint64_t with_rest, rests = count_rests(p, &with_rest);
    return (PenSimJobSize){.samples = (double)r->n_samples,
                           .tasks = p->s.tasks,
                           .shards = (double)(r->n_shards - (rests > 0)),
                           .rests = (double)with_rest,
                           .rest_bytes = (double)rests * (double)p->job.sample_bytes,
                           .plan_bytes = r->plan_bytes,
                           .manifest_bytes = r->n_shards * SHARD_ENTRY_BYTES,
                           .key_bytes = p->s.key_bytes,
                           .folders = p->s.source_prefixes,
                           .lost = (double)(r->runs - p->s.tasks)};
}

int pen__sim_packing_tasks(PenSimPacking *p, PenSimPackingResult *ret, PenError *reterr)
{
    Schedule s;
    int r = schedule(p, &s, reterr);
    if (r == PEN_OK)
        r = find_median(p, &ret->task_s, reterr);
    if (r < 0)
        return r;
    describe(p, ret);
    ret->tasks_s = s.end_s;
    ret->runs = p->s.tasks + s.deaths;
    measure_busy(p, ret);
    count_requests(p, s.runs, ret);
    ret->limit = (int32_t)find_limit(ret);
    return PEN_OK;
}

static int run_phase(PenSimPacking *p, PenSimPhase *phase,
                     int (*run)(PenSimPhase *phase, const PenSimJobSize *size, PenError *reterr),
                     const PenSimJobSize *size, PenError *reterr)
{
    PenSimNode node;
    int r = pen__sim_packing_open_net(p, 1, reterr);
    if (r == PEN_OK)
        r = pen__sim_packing_open_node(p, &node, reterr);
    *phase = (PenSimPhase){.net = p->net};
    if (r == PEN_OK)
        r = pen__sim_process_init(&phase->process, p->net, &node, 0, &phase->fault, reterr);
    if (r == PEN_OK)
        r = run(phase, size, reterr);
    pen__sim_process_fini(&phase->process);
    pen__sim_packing_close_net(p);
    return r;
}

int pen__sim_packing_phases(PenSimPacking *p, PenSimPackingResult *ret, PenError *reterr)
{
    PenSimPhase phase;
    PenSimJobSize size = size_of_job(p, ret);
    int r = run_phase(p, &phase, pen__sim_phase_plan, &size, reterr);
    if (r < 0)
        return r;
    ret->plan_s = phase.seconds + (double)ret->n_samples * p->s.plan_us / 1e6;
    add_requests(phase.requests, ret);
    r = run_phase(p, &phase, pen__sim_phase_finalise, &size, reterr);
    if (r < 0)
        return r;
    ret->finalise_s = phase.seconds;
    add_requests(phase.requests, ret);
    add_cost(ret);
    return PEN_OK;
}
