/* SPDX-License-Identifier: Apache-2.0 */
/* The core's life: made with the loader, threads started with the first pass, gone when nobody uses
 * it. */
#include "load/core.h"

#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/thread.h"

#define WHERE "load/core"

enum { CLOSE_MS = 750 }; /* that a thread is waited for */

static int init_conds(PenCore *c, PenError *reterr)
{
    pthread_cond_t *all[] = {&c->for_io, &c->for_work, &c->for_user, &c->for_bytes};
    for (size_t i = 0; i < PEN_LEN(all); i++)
        if (pen__cond_init(all[i]) < 0) {
            while (i-- > 0)
                pthread_cond_destroy(all[i]);
            return pen__fail_memory(reterr, WHERE, "condition");
        }
    pthread_mutex_init(&c->mutex, NULL);
    return PEN_OK;
}

static void free_core(PenCore *c)
{
    for (PenSlot *s = c->free_slots, *next; s; s = next) {
        next = s->next;
        pen__slot_free(s);
    }
    for (PenSlot *s = c->under_way, *next; s; s = next) {
        next = s->next;
        pen__slot_free(s);
    }
    for (PenTask *t; (t = pen__ready_pop(c));)
        pen__task_free(&c->plan, &t);
    for (PenTask *t = c->idle, *next; t; t = next) {
        next = t->next;
        pen__task_free(&c->plan, &t);
    }
    for (uint32_t i = 0; i < c->n_threads; i++)
        pen__decode_context_free(&c->threads[i].context);
    pen__free(c->threads);
    pen__buf_free(&c->bad);
    pen__window_free(&c->window);
    if (c->plan.pack)
        pen__pack_trim(c->plan.pack);
    pen__load_plan_fini(&c->plan);
    pthread_cond_destroy(&c->for_io);
    pthread_cond_destroy(&c->for_work);
    pthread_cond_destroy(&c->for_user);
    pthread_cond_destroy(&c->for_bytes);
    pthread_mutex_destroy(&c->mutex);
    pen__free(c);
}

void pen__core_unref(PenCore *c)
{
    uint32_t left = --c->refs;
    pthread_mutex_unlock(&c->mutex);
    if (!left)
        free_core(c);
}

int pen__core_new(PenPack *pack, const PenLoaderSettings *settings, PenCore **ret, PenError *reterr)
{
    PenCore *c = pen__zalloc(sizeof *c);
    if (!c)
        return pen__fail_memory(reterr, WHERE, "loader");
    int r = pen__load_plan_init(&c->plan, pack, settings, reterr);
    if (r == PEN_OK)
        r = init_conds(c, reterr);
    if (r < 0) {
        pen__load_plan_fini(&c->plan);
        pen__free(c);
        return r;
    }
    const PenShares *shares = &c->plan.shares;
    c->pid = getpid();
    c->refs = 1;
    c->pass.ended = true;
    c->under_way_end = &c->under_way;
    c->ready.last = &c->ready.first;
    c->read.limit = shares->read / 2;
    c->scratch.limit = shares->scratch - c->plan.threads * shares->scratch_each;
    *ret = c;
    return PEN_OK;
}

static int make_tasks(PenCore *c, PenError *reterr)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < c->plan.tasks && r == PEN_OK; i++) {
        PenTask *t;
        r = pen__task_new(&c->plan, &t, reterr);
        if (r == PEN_OK) {
            t->next = c->idle;
            c->idle = t;
            c->n_idle++;
        }
    }
    return r;
}

static int start_thread(PenCore *c, PenThread *t, PenError *reterr)
{
    static void *(*const run[])(void *) = {pen__fetcher_run, pen__feeder_run, pen__worker_run};
    t->core = c;
    int r = t->role == PEN_ROLE_DECODE ? pen__decode_context_new(&t->context, reterr) : PEN_OK;
    if (r < 0)
        return r;
    /* Before it runs, so that it never sees a count that is too low. */
    pthread_mutex_lock(&c->mutex);
    c->refs++;
    c->live++;
    pthread_mutex_unlock(&c->mutex);
    r = pen__thread_start(&t->id, run[t->role], t, reterr);
    if (r == PEN_OK)
        return PEN_OK;
    pthread_mutex_lock(&c->mutex);
    c->refs--;
    c->live--;
    pthread_mutex_unlock(&c->mutex);
    pen__decode_context_free(&t->context);
    return r;
}

/* Waits for the threads, a little, and joins them; those that do not come are left to themselves.
 */
static void end_threads(PenCore *c)
{
    uint64_t deadline = pen__deadline_after(CLOSE_MS * 1000000ull);
    pthread_mutex_lock(&c->mutex);
    c->stop = true;
    pthread_cond_broadcast(&c->for_io);
    pthread_cond_broadcast(&c->for_work);
    pthread_cond_broadcast(&c->for_bytes);
    pen__window_stop(c->window);
    while (c->live && pen__cond_wait(&c->for_user, &c->mutex, deadline) == 0)
        ;
    bool all = !c->live;
    pthread_mutex_unlock(&c->mutex);
    for (uint32_t i = 0; i < c->n_threads; i++) {
        if (all)
            pen__thread_join(c->threads[i].id);
        else
            pthread_detach(c->threads[i].id);
    }
}

int pen__core_start(PenCore *c, PenError *reterr)
{
    if (c->n_threads)
        return PEN_OK;
    uint32_t fetch = c->plan.fetchers, read = fetch + c->plan.io_threads;
    uint32_t n = read + c->plan.threads;
    int r = pen__pack_keep(c->plan.pack, c->plan.shares.keep, reterr);
    if (r == PEN_OK && fetch && !c->window)
        r = pen__window_new(c, &c->window, reterr);
    if (r == PEN_OK && !c->idle)
        r = make_tasks(c, reterr);
    if (r == PEN_OK && !c->threads) {
        c->threads = pen__alloc_array(n, sizeof *c->threads);
        r = c->threads ? PEN_OK : pen__fail_memory(reterr, WHERE, "threads");
    }
    if (r < 0)
        return r;
    memset(c->threads, 0, n * sizeof *c->threads);
    for (uint32_t i = 0; i < n && r == PEN_OK; i++) {
        c->threads[i].role = i < fetch  ? PEN_ROLE_FETCH
                             : i < read ? PEN_ROLE_READ
                                        : PEN_ROLE_DECODE;
        r = start_thread(c, &c->threads[i], reterr);
        if (r == PEN_OK)
            c->n_threads++;
    }
    if (r < 0) { /* all or none; a later call may try again */
        end_threads(c);
        c->stop = false;
        c->n_threads = 0;
    }
    return r;
}

void pen__core_stop(PenCore *c)
{
    end_threads(c);
    pthread_mutex_lock(&c->mutex);
    pen__core_unref(c);
}

static void drop_all(PenCore *c)
{
    for (PenTask *t; (t = pen__ready_pop(c));)
        pen__task_recycle(c, t);
    if (c->window)
        pen__window_quiet(c);
    while (c->under_way) {
        PenSlot *s = c->under_way;
        c->under_way = s->next;
        pen__ring_recycle(c, s);
    }
    c->under_way_end = &c->under_way;
    c->n_under_way = 0;
    c->feed_slot = NULL;
    c->stats.slots_ready = 0;
    pen__ring_shrink(c);
}

int pen__core_quiet(PenCore *c, uint32_t ms, uint64_t since_ns, PenError *reterr)
{
    uint64_t deadline = pen__deadline_after((uint64_t)ms * 1000000u);
    int r = PEN_OK;
    pthread_mutex_lock(&c->mutex);
    c->paused = true;
    c->pass.ended = true;
    for (;;) {
        /* Tasks that wait hold bytes for which a reader may be waiting. */
        for (PenTask *t; (t = pen__ready_pop(c));)
            pen__task_recycle(c, t);
        if (!c->busy)
            break;
        if (pen__cond_wait(&c->for_user, &c->mutex, deadline) < 0) {
            r = pen__core_stalled(c, pen__sys->now_ns() - since_ns, reterr);
            break;
        }
    }
    if (r == PEN_OK) {
        drop_all(c);
        c->paused = false;
    }
    pthread_mutex_unlock(&c->mutex);
    return r;
}
