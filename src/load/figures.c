/* SPDX-License-Identifier: Apache-2.0 */
#include "load/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/sys.h"

PenLoaderStats pen__figures_now(const PenLoadEngine *e)
{
    const PenLoadPlan *plan = &e->plan;
    uint64_t own = plan->threads * plan->shares.scratch_each + plan->shares.index;
    return (PenLoaderStats){
        .threads = plan->threads,
        .io_threads = plan->fetch.fetchers ? plan->fetch.fetchers : plan->io_threads,
        .io_threads_wanted = plan->fetch.fetchers ? plan->fetch.fetchers_wanted : plan->io_threads,
        .node_ranks = plan->set.node_ranks,
        .slots = e->ring.n_slots,
        .slots_ready = e->ring.n_full,
        .slots_leased = e->ring.n_leased,
        .samples_ready = e->tasks.n_ready,
        .memory_bytes = e->ring.bytes + e->tasks.budget.used + e->scratch.used + own,
        .memory_peak_bytes = e->ring.bytes + e->tasks.budget.peak + e->scratch.peak + own,
        .slots_limit = plan->shares.ring / plan->slot_cost,
        .order_hash = pen__state_hash(&plan->state),
        .fetch_unit = (uint32_t)plan->fetch.unit,
        .memory_wanted_bytes = plan->fetch.memory_wanted};
}

static uint64_t elapsed_ns(const PenLoadEngine *e, bool epoch)
{
    if (!epoch)
        return pen__sys->now_ns() - e->opened_ns;
    if (!e->pass_began_ns)
        return 0;
    return (e->pass_ended_ns ? e->pass_ended_ns : pen__sys->now_ns()) - e->pass_began_ns;
}

/* The division into stages is estimated anew each time. What was reported stays: programs that
 * collect counters take one that goes back for a restart. */
static void keep_estimates(PenLoadEngine *e, PenLoaderStats *s)
{
    for (int i = 0; i < PEN_LOAD_STAGE_COUNT; i++)
        e->stage_ns[i] = s->stage_ns[i] = PEN_MAX(s->stage_ns[i], e->stage_ns[i]);
    e->decode_cpu_ns = s->ns_decode_cpu = PEN_MAX(s->ns_decode_cpu, e->decode_cpu_ns);
}

/* What threads do after the end of an epoch, which is to wait, does not belong to it. */
static void count_epoch(const PenLoadEngine *e, PenLoadCounters *ret)
{
    if (e->pass_ended_ns)
        *ret = e->at_end;
    else
        pen__load_engine_count(e, ret);
    pen__counters_subtract(ret, &e->at_begin);
}

void pen__figures_read(PenLoadEngine *e, bool epoch, PenLoaderStats *ret)
{
    PenLoadCounters c;
    pthread_mutex_lock(&e->lock.mutex);
    if (epoch)
        count_epoch(e, &c);
    else
        pen__load_engine_count(e, &c);
    *ret = pen__figures_now(e);
    ret->ns_elapsed = elapsed_ns(e, epoch);
    pen__counters_report(&c, epoch ? e->pass_wait_max_ns : e->wait_max_ns, ret);
    if (!epoch)
        keep_estimates(e, ret);
    pthread_mutex_unlock(&e->lock.mutex);
}

void pen__figures_path(const PenLoadPlan *plan, char *ret, size_t bytes)
{
    const char *path = pen__pack_path(plan->pack);
    snprintf(ret, bytes, "%s", path);
    if (pen_is_remote(path))
        ret[strcspn(ret, "?#")] = '\0';
    size_t used = strlen(ret);
    if (plan->n_sources > 1)
        snprintf(ret + used, bytes - used, " and %" PRIu32 " more", plan->n_sources - 1);
}
