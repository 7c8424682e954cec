/* SPDX-License-Identifier: Apache-2.0 */
#include "load/engine.h"

#include <unistd.h>

#include "base/sys.h"
#include "base/thread.h"
#include "load/plan/buckets.h"
#include "load/plan/builder.h"
#include "load/plan/sources.h"
#include "load/prefetch/fetcher.h"
#include "load/stall.h"

#define WHERE "load/engine"

enum { CLOSE_MS = 750 }; /* that threads are waited for */

/* ---- life ---- */

static int init_parts(PenLoadEngine *e, PenError *reterr)
{
    const PenShares *shares = &e->plan.shares;
    uint64_t shared = shares->scratch - e->plan.threads * shares->scratch_each;
    int r = pen__load_lock_init(&e->lock, reterr);
    if (r < 0)
        return r;
    r = pen__tasks_init(&e->tasks, &e->plan, &e->lock, reterr);
    if (r < 0)
        goto out;
    r = pen__budget_init(&e->scratch, &e->lock, shared, shares->total, reterr);
    if (r < 0) {
        pen__tasks_fini(&e->tasks);
        goto out;
    }
    pen__ring_init(&e->ring, &e->plan, &e->lock, e);
    e->singles = (PenSingles){.tasks = &e->tasks, .scratch = &e->scratch};
    e->threads.lock = &e->lock;
    return PEN_OK;
out:
    pen__load_lock_fini(&e->lock);
    return r;
}

int pen__load_engine_new(PenPack *pack, const PenMixSettings *mix,
                         const PenLoaderSettings *settings, PenLoadEngine **ret, PenError *reterr)
{
    PenLoadEngine *e = pen__zalloc(sizeof *e);
    if (!e)
        return pen__fail_memory(reterr, WHERE, "loader");
    int r = mix ? pen__load_plan_build_mix(&e->plan, mix, settings, reterr)
                : pen__load_plan_build(&e->plan, pack, settings, reterr);
    if (r == PEN_OK)
        r = init_parts(e, reterr);
    if (r < 0) {
        pen__load_plan_fini(&e->plan);
        pen__free(e);
        return r;
    }
    e->pid = getpid();
    e->open = true;
    e->opened_ns = pen__sys->now_ns();
    e->pass.ended = true;
    *ret = e;
    return PEN_OK;
}

static void free_engine(PenLoadEngine *e)
{
    pen__ring_fini(&e->ring);
    pen__singles_fini(&e->singles);
    pen__tasks_fini(&e->tasks);
    pen__budget_fini(&e->scratch);
    pen__threads_fini(&e->threads);
    pen__span_ring_leave(e->threads.spans);
    pen__bad_samples_fini(&e->bad);
    pen__blocks_free(&e->blocks);
    pen__bucket_table_free(&e->table);
    pen__sources_trim(&e->plan);
    pen__load_plan_fini(&e->plan);
    pen__load_lock_fini(&e->lock);
    pen__free(e);
}

void pen__load_engine_unlock(PenLoadEngine *e)
{
    bool used = e->open || e->threads.live || e->ring.n_leased;
    pthread_mutex_unlock(&e->lock.mutex);
    if (!used)
        free_engine(e);
}

/* ---- threads ---- */

static void *run_thread(void *thread)
{
    PenThread *me = thread;
    PenLoadEngine *e = me->owner;
    pthread_mutex_lock(&e->lock.mutex);
    pen__thread_enter(me);
    pthread_mutex_unlock(&e->lock.mutex);
    if (me->role == PEN_ROLE_FETCH)
        pen__fetcher_run(e->blocks, me);
    else if (me->role == PEN_ROLE_READ)
        pen__reader_run(&e->reader, me);
    else
        pen__worker_run(&e->worker, me);
    pthread_mutex_lock(&e->lock.mutex);
    pen__thread_set(me, PEN_ACTIVITY_IDLE, 0); /* its last wait has ended */
    pen__threads_leave(&e->threads);
    pen__load_engine_unlock(e);
    return NULL;
}

static void stop_threads(PenLoadEngine *e)
{
    uint64_t deadline = pen__deadline_after(CLOSE_MS * 1000000ull);
    pthread_mutex_lock(&e->lock.mutex);
    e->lock.stop = true;
    pthread_cond_broadcast(&e->lock.readers);
    pthread_cond_broadcast(&e->lock.decoders);
    pen__budget_wake(&e->tasks.budget);
    pen__budget_wake(&e->scratch);
    if (e->blocks)
        pen__blocks_wake(e->blocks);
    pthread_mutex_unlock(&e->lock.mutex);
    pen__threads_end(&e->threads, deadline);
}

/* What the threads use; a call after a failure makes what is missing. */
static int prepare(PenLoadEngine *e, PenError *reterr)
{
    const PenLoadPlan *plan = &e->plan;
    int r = pen__sources_keep(plan, plan->shares.keep, reterr);
    if (r == PEN_OK && plan->fetch.fetchers && !e->blocks)
        r = pen__blocks_new(plan, &e->lock, &e->pass, &e->blocks, reterr);
    if (r == PEN_OK)
        r = pen__tasks_make(&e->tasks, reterr);
    e->reader = (PenReader){.lock = &e->lock,
                            .plan = plan,
                            .pass = &e->pass,
                            .ring = &e->ring,
                            .tasks = &e->tasks,
                            .blocks = e->blocks};
    e->worker = (PenWorker){.lock = &e->lock,
                            .plan = plan,
                            .ring = &e->ring,
                            .tasks = &e->tasks,
                            .scratch = &e->scratch,
                            .counters = &e->counters};
    return r;
}

/* Do threads of a failed start still run? They would join those of a new one. */
static bool has_old_threads(PenLoadEngine *e)
{
    pthread_mutex_lock(&e->lock.mutex);
    e->lock.stop = e->threads.live > 0;
    bool stop = e->lock.stop;
    pthread_mutex_unlock(&e->lock.mutex);
    return stop;
}

int pen__load_engine_start(PenLoadEngine *e, PenError *reterr)
{
    const uint32_t n_of[PEN_ROLE_COUNT] = {[PEN_ROLE_FETCH] = e->plan.fetch.fetchers,
                                           [PEN_ROLE_READ] = e->plan.io_threads,
                                           [PEN_ROLE_DECODE] = e->plan.threads};
    if (e->threads.n)
        return PEN_OK;
    if (has_old_threads(e))
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "threads of a failed start have not ended yet; call again later");
    int r = prepare(e, reterr);
    if (r < 0)
        return r;
    r = pen__threads_start(&e->threads, n_of, run_thread, e, reterr);
    if (r < 0)
        stop_threads(e); /* all or none; a later call may try again */
    return r;
}

void pen__load_engine_close(PenLoadEngine *e)
{
    stop_threads(e);
    pthread_mutex_lock(&e->lock.mutex);
    e->open = false;
    pen__load_engine_unlock(e);
}

void pen__load_engine_trace(PenLoadEngine *e, PenSpanRing *spans)
{
    pthread_mutex_lock(&e->lock.mutex);
    PenSpanRing *old = e->threads.spans;
    pen__threads_trace(&e->threads, spans);
    pthread_mutex_unlock(&e->lock.mutex);
    pen__span_ring_leave(old);
}

/* ---- passes ---- */

void pen__load_engine_count(const PenLoadEngine *e, PenLoadCounters *ret)
{
    *ret = e->counters;
    ret->substituted = e->bad.n;
    pen__threads_add_times(&e->threads, ret->ns_of);
}

/* The table of the pass before goes first: an epoch needs the memory of one. */
int pen__load_engine_order_buckets(PenLoadEngine *e, PenOrder *order, PenError *reterr)
{
    pthread_mutex_lock(&e->lock.mutex);
    e->pass.order.table = NULL;
    if (e->blocks)
        pen__blocks_end(e->blocks);
    pthread_mutex_unlock(&e->lock.mutex);
    pen__bucket_table_free(&e->table);
    int r = pen__plan_buckets_order(&e->plan, order, &e->table, reterr);
    order->table = e->table;
    return r;
}

void pen__load_engine_begin(PenLoadEngine *e, const PenEpochPass *pass)
{
    pthread_mutex_lock(&e->lock.mutex);
    e->pass = *pass;
    pen__sources_begin(&e->plan);
    e->bad.in_pass = 0;
    pen__load_engine_count(e, &e->at_begin);
    e->pass_wait_max_ns = 0;
    e->pass_began_ns = pen__sys->now_ns();
    e->pass_ended_ns = 0;
    if (e->blocks)
        pen__blocks_begin(e->blocks);
    pthread_cond_broadcast(&e->lock.readers);
    pthread_mutex_unlock(&e->lock.mutex);
}

void pen__load_engine_end_pass(PenLoadEngine *e)
{
    pthread_mutex_lock(&e->lock.mutex);
    e->pass.ended = true;
    if (!e->pass_ended_ns) {
        e->pass_ended_ns = pen__sys->now_ns();
        pen__load_engine_count(e, &e->at_end);
    }
    pthread_mutex_unlock(&e->lock.mutex);
}

/* With the lock held: until no thread has a task. */
static int wait_for_tasks(PenLoadEngine *e, uint64_t deadline)
{
    int r = PEN_OK;
    do
        pen__tasks_recycle_ready(&e->tasks); /* they hold bytes a reader may be waiting for */
    while (pen__tasks_are_in_hand(&e->tasks) &&
           (r = pen__cond_wait(&e->lock.caller, &e->lock.mutex, deadline)) == PEN_OK);
    return r;
}

int pen__load_engine_drain(PenLoadEngine *e, uint32_t ms, uint64_t since_ns, PenError *reterr)
{
    uint64_t deadline = pen__deadline_after((uint64_t)ms * 1000000u);
    pthread_mutex_lock(&e->lock.mutex);
    e->lock.paused = true;
    e->pass.ended = true;
    int r = wait_for_tasks(e, deadline);
    if (r == PEN_OK) {
        if (e->blocks)
            pen__blocks_clear(e->blocks);
        pen__ring_clear(&e->ring);
        e->lock.paused = false;
    } else {
        uint64_t waited_ns = pen__sys->now_ns() - since_ns;
        r = pen__stall_report(&e->threads, &e->ring, &e->pass, waited_ns, reterr);
    }
    pthread_mutex_unlock(&e->lock.mutex);
    return r;
}
