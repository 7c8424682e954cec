/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/count.h"

#include "base/attr.h"

/* So many samples are walked through, at most: they take about a quarter of the effort. But those
 * of several ranks, which differ, and of each several times as many as its schedule looks ahead, or
 * the beginning and the end would count too much. */
#define WALK_MOST (UINT64_C(1) << 25)
enum { WALK_PER_S = 1 << 18, WALK_UNITS = 16, WALK_HORIZONS = 8 };

typedef struct Walk {
    const PenSimJob *job;
    const PenOrder *order;
    uint64_t steps;
    PenSimIndexes indexes;
    PenSimCache cache;
    PenSimCount *count;
} Walk;

static void pay(Walk *w, PenSchedule *s, PenBlockPart *part)
{
    PenSimCost cost = pen__sim_fetch(&w->job->pack, &w->indexes, &w->cache, part);
    w->count->blocks += cost.part && cost.is_block;
    w->count->parts += cost.part && !cost.is_block;
    w->count->indexes += cost.index > 0;
    w->count->bytes += (double)(cost.part + cost.index);
    pen__schedule_arrived(s, part, NULL, cost.memory);
}

/* Memory is filled; then one sample after another is used. */
static int walk_schedule(Walk *w, PenSchedule *s, PenError *reterr)
{
    int r = PEN_OK;
    while (s->done < s->n && r == PEN_OK) {
        uint64_t before = pen__schedule_progress(s);
        PenBlockPart *part = NULL;
        r = pen__schedule_next(s, &part, reterr);
        if (part)
            pay(w, s, part);
        else if (pen__schedule_progress(s) == before && r == PEN_OK)
            pen__schedule_sample_done(s, pen__schedule_take(s));
    }
    return r;
}

static int walk_rank(Walk *w, uint32_t rank, PenError *reterr)
{
    PenSchedulePlan plan = pen__sim_schedule(&w->job->pack, &w->job->fetch, w->job->shares.blocks);
    PenSplit split = pen__sim_split(w->order, w->job->s->batch, w->job->world, rank);
    PenSchedule schedule = {0};
    int r = pen__sim_indexes_init(&w->indexes, &w->job->pack, w->job->shares.keep, reterr);
    if (r == PEN_OK)
        r = pen__schedule_init(&schedule, &plan, reterr);
    if (r == PEN_OK) {
        pen__schedule_begin(&schedule, w->order, &split, w->steps);
        w->count->samples += (double)schedule.n;
        r = walk_schedule(w, &schedule, reterr);
    }
    pen__schedule_fini(&schedule);
    pen__sim_indexes_fini(&w->indexes);
    return r;
}

/* Ranks of a node share what they fetch through its cache alone. */
static int walk_node(Walk *w, uint32_t node, PenError *reterr)
{
    const PenSimJob *job = w->job;
    int r = pen__sim_cache_init(&w->cache, &job->cache, &job->pack, node, reterr);
    for (uint32_t i = 0; i < job->s->ranks && r == PEN_OK; i++)
        r = walk_rank(w, node * job->s->ranks + i, reterr);
    pen__sim_cache_fini(&w->cache);
    return r;
}

static void multiply(PenSimCount *c, double by)
{
    c->blocks *= by;
    c->parts *= by;
    c->indexes *= by;
    c->bytes *= by;
    c->samples *= by;
}

/* How many of n units (ranks, or nodes with caches), with `each` samples, are walked through. */
static uint32_t choose_units(Walk *w, uint32_t n, uint64_t each)
{
    const PenSimJob *job = w->job;
    uint64_t most = (uint64_t)PEN_MIN(job->s->effort * WALK_PER_S, (double)WALK_MOST);
    uint64_t some = PEN_MIN(PEN_MAX(most / each, (uint64_t)WALK_UNITS), (uint64_t)n);
    uint64_t least = WALK_HORIZONS * job->fetch.horizon * (job->world / n);
    uint64_t room = PEN_MIN(PEN_MAX(most / some, least), WALK_MOST / some);
    if (each > room)
        w->steps = PEN_MAX(job->steps / (each / room + 1), 1u);
    return (uint32_t)some;
}

int pen__sim_count(const PenSimJob *job, const PenOrder *order, PenSimCount *ret, PenError *reterr)
{
    Walk w = {.job = job, .order = order, .steps = job->steps, .count = ret};
    uint32_t n = job->cache.capacity ? job->s->nodes : job->world;
    uint32_t some = choose_units(&w, n, job->steps * job->s->batch * (job->world / n));
    *ret = (PenSimCount){.is_exact = some == n && w.steps == job->steps};
    int r = PEN_OK;
    for (uint32_t i = 0; i < some && r == PEN_OK; i++) {
        uint64_t first = (uint64_t)i * n / some, end = (i + 1ull) * n / some;
        uint32_t unit = (uint32_t)(first + pen__permute_key(0, 0, 0, i) % (end - first));
        r = job->cache.capacity ? walk_node(&w, unit, reterr) : walk_rank(&w, unit, reterr);
    }
    multiply(ret, (double)n / some * (double)job->steps / (double)w.steps);
    ret->of_node = ret->blocks / job->s->nodes;
    return r;
}
