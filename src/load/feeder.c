/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that read: they take the next position of the order, find out what is needed of its
 * sample, fetch it, and hand it to those who decode. */
#include <inttypes.h>

#include "base/sys.h"
#include "base/thread.h"
#include "load/core.h"

#define WHERE "load/feeder"

/* ---- what is next; with the lock held ---- */

static bool feed_left(const PenCore *c)
{
    return !c->paused && !c->pass.ended && c->pass.feed_batch < c->pass.steps;
}

static bool can_feed(const PenCore *c)
{
    return (c->window ? pen__window_can_give(c) : c->idle != NULL) && feed_left(c) &&
           !c->pass_status && (c->feed_slot || pen__ring_has_room(c));
}

static int open_slot(PenCore *c, PenError *reterr)
{
    PenPassState *pass = &c->pass;
    PenSlot *s = pen__ring_take(c, reterr);
    if (!s)
        return PEN_E_NO_MEMORY;
    bool valid;
    s->batch.epoch = pass->order.epoch;
    s->batch.position = pen__split_position(&pass->split, pass->feed_batch, 0, &valid);
    s->batch.n_valid = 0;
    s->batch.n_substituted = 0;
    c->feed_slot = s;
    return PEN_OK;
}

/* The next sample of the order gets its place in a batch. */
static int place_next(PenCore *c, PenTicket *ret, PenError *reterr)
{
    PenPassState *pass = &c->pass;
    if (!c->feed_slot) {
        int r = open_slot(c, reterr);
        if (r < 0)
            return r;
    }
    PenSlot *s = c->feed_slot;
    uint32_t i = pass->feed_sample;
    bool valid;
    uint64_t p = pen__split_position(&pass->split, pass->feed_batch, i, &valid);
    uint64_t chosen = pen__order_at(&pass->order, p);
    s->samples[i] = pen__load_plan_sample(&c->plan, chosen);
    s->valid[i] = valid;
    s->batch.n_valid += valid;
    *ret = (PenTicket){.slot = s,
                       .index = i,
                       .sample = s->samples[i],
                       .ordinal = pen__load_plan_ordinal(&c->plan, chosen)};
    if (++pass->feed_sample == c->plan.set.batch_size) {
        pass->feed_sample = 0;
        pass->feed_batch++;
        c->feed_slot = NULL;
    }
    return PEN_OK;
}

static PenTask *take_task(PenCore *c)
{
    PenTask *t = c->idle;
    c->idle = t->next;
    c->n_idle--;
    t->epoch = c->pass.order.epoch;
    t->status = PEN_OK;
    t->reserved = 0;
    t->block = NULL;
    return t;
}

/* ---- one sample; without the lock ---- */

int pen__task_fetch(PenCore *c, PenThread *thread, PenTask *t)
{
    PenWhere at;
    int r = pen__fetch_locate(&c->plan, t, t->slot->batch.memory, &at, &t->error);
    if (r == PEN_E_CORRUPT) /* read once more before it counts, like the payload */
        r = pen__fetch_locate(&c->plan, t, t->slot->batch.memory, &at, &t->error);
    if (r < 0)
        return r;
    pthread_mutex_lock(&c->mutex);
    if (thread)
        pen__thread_doing(thread, THREAD_READING, t->sample);
    r = pen__budget_take(c, &c->read, at.bytes, thread ? NULL : &t->over, "reading it", &t->error);
    if (r == PEN_OK)
        t->reserved = at.bytes;
    pthread_mutex_unlock(&c->mutex);
    if (r == PEN_OK)
        r = pen__fetch_read(&c->plan, t, &at, &t->error);
    pen__fetch_leave(&c->plan, &at);
    return r;
}

/* Memory for another slot may come back while some are under way; else the caller has to know. */
static void no_slot(PenCore *c, const PenError *err)
{
    if (!c->n_under_way) {
        c->pass_error = *err;
        c->pass_status = PEN_E_NO_MEMORY;
        pthread_cond_broadcast(&c->for_user);
    }
    (void)pen__cond_wait(&c->for_io, &c->mutex, pen__deadline_after(100000000u));
}

/* Reads for a task, with the lock released meanwhile. `from` is the block of a far pack. */
static void read_for(PenCore *c, PenThread *me, PenTask *t, PenAheadBlock *from)
{
    c->busy++;
    pen__thread_doing(me, THREAD_LOCATING, t->sample);
    pthread_mutex_unlock(&c->mutex);
    if (t->status == PEN_OK)
        t->status = pen__task_fetch(c, me, t);
    pthread_mutex_lock(&c->mutex);
    c->busy--;
    pen__thread_doing(me, THREAD_IDLE, 0);
    t->block = NULL; /* if another sample comes instead, it is looked for */
    if (from)
        pen__window_used(c, from);
    if (c->paused || c->stop)
        pen__task_recycle(c, t);
    else
        pen__ready_push(c, t);
    if (c->paused)
        pthread_cond_broadcast(&c->for_user);
}

static void feed_one(PenCore *c, PenThread *me)
{
    PenTicket next;
    PenError err;
    if (place_next(c, &next, &err) < 0) {
        no_slot(c, &err);
        return;
    }
    if (c->window) {
        pen__window_give(c, &next);
        return;
    }
    PenTask *t = take_task(c);
    t->slot = next.slot;
    t->index = next.index;
    t->sample = next.sample;
    t->ordinal = next.ordinal;
    read_for(c, me, t, NULL);
}

/* A sample whose block has arrived. */
static bool feed_arrived(PenCore *c, PenThread *me)
{
    if (!c->window || c->paused || !c->idle || !pen__window_has_arrived(c->window))
        return false;
    PenTask *t = take_task(c);
    PenAheadBlock *from;
    if (pen__window_take(c, t, &from))
        read_for(c, me, t, from);
    else
        pen__task_recycle(c, t);
    return true;
}

void *pen__feeder_run(void *thread)
{
    PenThread *me = thread;
    PenCore *c = me->core;
    pen__thread_name("pen-read");
    pthread_mutex_lock(&c->mutex);
    while (!c->stop) {
        if (feed_arrived(c, me))
            continue;
        if (can_feed(c))
            feed_one(c, me);
        else
            (void)pen__cond_wait(&c->for_io, &c->mutex, pen__deadline_after(1000000000u));
    }
    c->live--;
    pthread_cond_broadcast(&c->for_user);
    pen__core_unref(c);
    return NULL;
}
