/* SPDX-License-Identifier: Apache-2.0 */
#include "load/threads.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/thread.h"

#define WHERE "load/threads"

enum { SHORT_NS = 1000 }; /* waits that are not traced */

/* Another thread may read the counters meanwhile. */
static void add_started(PenThreads *t)
{
    pthread_mutex_lock(&t->lock->mutex);
    t->n++;
    pthread_mutex_unlock(&t->lock->mutex);
}

static void count_live(PenThreads *t, bool more)
{
    pthread_mutex_lock(&t->lock->mutex);
    t->live += more ? 1 : -1u;
    pthread_mutex_unlock(&t->lock->mutex);
}

static int start_one(PenThreads *set, PenThread *t, void *(*run)(void *), PenError *reterr)
{
    int r = t->role == PEN_ROLE_DECODE ? pen__decode_context_new(&t->context, reterr) : PEN_OK;
    if (r < 0)
        return r;
    count_live(set, true); /* before it runs, so that the count is never too low */
    r = pen__thread_start(&t->id, run, t, reterr);
    if (r == PEN_OK)
        return PEN_OK;
    count_live(set, false);
    pen__decode_context_free(&t->context);
    return r;
}

int pen__threads_start(PenThreads *t, const uint32_t n_of[PEN_ROLE_COUNT], void *(*run)(void *),
                       void *owner, PenError *reterr)
{
    uint32_t n = n_of[PEN_ROLE_FETCH] + n_of[PEN_ROLE_READ] + n_of[PEN_ROLE_DECODE];
    if (!t->all)
        t->all = pen__alloc_array(n, sizeof *t->all);
    if (!t->all)
        return pen__fail_memory(reterr, WHERE, "threads");
    memset(t->all, 0, n * sizeof *t->all);
    int r = PEN_OK;
    for (int role = 0; role < PEN_ROLE_COUNT; role++)
        for (uint32_t i = 0; i < n_of[role] && r == PEN_OK; i++) {
            PenThread *one = &t->all[t->n];
            one->owner = owner;
            one->since_ns = pen__sys->now_ns();
            one->role = (PenRole)role;
            one->number = i;
            one->waits_for = PEN_SPAN_WAIT_WORK;
            one->spans = t->spans;
            r = start_one(t, one, run, reterr);
            if (r == PEN_OK)
                add_started(t);
        }
    return r;
}

void pen__threads_end(PenThreads *t, uint64_t deadline_ns)
{
    pthread_mutex_lock(&t->lock->mutex);
    while (t->live && pen__cond_wait(&t->lock->caller, &t->lock->mutex, deadline_ns) == 0)
        ;
    bool all = !t->live;
    pthread_mutex_unlock(&t->lock->mutex);
    for (uint32_t i = 0; i < t->n; i++) {
        if (all)
            pen__thread_join(t->all[i].id);
        else
            pthread_detach(t->all[i].id);
    }
    t->n = 0;
}

void pen__threads_fini(PenThreads *t)
{
    pen__free(t->all);
    t->all = NULL;
}

/* ---- spans ---- */

static void name_track(const PenThread *t)
{
    static const char *const names[PEN_ROLE_COUNT] = {"fetch", "read", "decode"};
    if (t->spans && t->tid)
        pen__span_ring_add(t->spans, &(PenSpan){.tag = PEN_SPAN_THREAD,
                                                .tid = t->tid,
                                                .subject = t->number,
                                                .name = names[t->role]});
}

static void add_wait(const PenThread *t, uint64_t now)
{
    bool idle = t->activity == PEN_ACTIVITY_IDLE;
    if ((!idle && t->activity != PEN_ACTIVITY_WAITING) || now - t->since_ns < SHORT_NS)
        return;
    pen__span_ring_add(t->spans, &(PenSpan){.tag = idle ? t->waits_for : PEN_SPAN_WAIT_BYTES,
                                            .tid = t->tid,
                                            .begin_ns = t->since_ns,
                                            .end_ns = now});
}

void pen__threads_trace(PenThreads *t, PenSpanRing *spans)
{
    t->spans = spans;
    for (uint32_t i = 0; i < t->n; i++) {
        PenThread *one = &t->all[i];
        pen__thread_set(one, one->activity, one->sample); /* a wait goes to the ring before */
        one->spans = spans;
        name_track(one);
    }
}

/* ---- of a thread ---- */

void pen__thread_enter(PenThread *t)
{
    t->tid = pen__thread_id();
    name_track(t);
}

void pen__threads_leave(PenThreads *t)
{
    t->live--;
    pthread_cond_broadcast(&t->lock->caller);
}

void pen__thread_set(PenThread *t, PenActivity activity, uint64_t sample)
{
    uint64_t now = pen__sys->now_ns();
    if (PEN_UNLIKELY(t->spans != NULL))
        add_wait(t, now);
    t->ns[t->activity] += now - t->since_ns;
    t->activity = activity;
    t->sample = sample;
    t->since_ns = now;
}

void pen__threads_add_times(const PenThreads *t, uint64_t ns[PEN_ROLE_COUNT][PEN_ACTIVITY_COUNT])
{
    uint64_t now = pen__sys->now_ns();
    for (uint32_t i = 0; i < t->n; i++) {
        const PenThread *one = &t->all[i];
        for (int k = 0; k < PEN_ACTIVITY_COUNT; k++)
            ns[one->role][k] += one->ns[k];
        ns[one->role][one->activity] += now - one->since_ns;
    }
}
