/* SPDX-License-Identifier: Apache-2.0 */
#include "load/read/reader.h"

#include "base/thread.h"
#include "load/plan/buckets.h"
#include "load/read/fetch.h"
#include "load/spans.h"

/* ---- with the lock held ---- */

static bool can_assign(const PenReader *r)
{
    if (r->lock->paused || !pen__epoch_pass_has_next(r->pass) ||
        (!r->ring->open && !pen__ring_can_open(r->ring)))
        return false;
    return pen__epoch_pass_is_empty(r->pass) ||
           (r->blocks ? pen__blocks_can_assign(r->blocks) : r->tasks->idle != NULL);
}

/* The next batch of the pass gets a slot. NULL: no memory. */
static PenSlot *open_batch(const PenReader *r, PenError *reterr)
{
    const PenEpochPass *pass = r->pass;
    const PenPassStep *step = &pass->step;
    PenSlot *s = pen__ring_open(r->ring, reterr);
    uint32_t shape = step->length;
    if (!s)
        return NULL;
    s->batch.epoch = pass->order.epoch;
    s->batch.position =
        pen__epoch_pass_is_empty(pass) ? step->first : pen__epoch_pass_peek(pass).position;
    s->step = *step;
    if (r->plan->buckets) /* all samples of the step are in one */
        shape = pen__plan_bucket_of(r->plan, pass->order.epoch,
                                    pen__order_at(&pass->order, step->first));
    pen__slot_set_shape(r->plan, s, shape, step->samples);
    return s;
}

/* The next sample of the pass gets its place in a batch. */
static int assign_next(const PenReader *r, PenAssignment *ret, PenError *reterr)
{
    PenPassSample next = pen__epoch_pass_peek(r->pass);
    PenSlot *s = r->ring->open ? r->ring->open : open_batch(r, reterr);
    if (!s)
        return PEN_E_NO_MEMORY;
    PenChosen chosen = r->plan->mixture
                           ? pen__sources_at(r->plan, r->plan->orders, s->batch.epoch, next.chosen)
                           : pen__load_plan_choose(r->plan, s->batch.epoch, next.chosen);
    *ret = (PenAssignment){.pack = chosen.pack,
                           .fields = r->plan->shapes ? s->fields : chosen.fields,
                           .slot = s,
                           .memory = s->batch.memory,
                           .index = next.index,
                           .ordinal = chosen.ordinal,
                           .source = chosen.source,
                           .sample = chosen.sample,
                           .epoch = chosen.epoch,
                           .batch = r->pass->next_batch};
    if (s->ordinals)
        s->ordinals[next.index] = pen__load_plan_ordinal(r->plan, &chosen);
    pen__ring_add_sample(r->ring, next.index, ret->sample, next.valid);
    pen__epoch_pass_advance(r->pass);
    return PEN_OK;
}

/* Memory for another slot may be released while some are pending; else the caller has to know. */
static void wait_for_memory(const PenReader *r, const PenError *err)
{
    if (!r->ring->n_pending) {
        pen__epoch_pass_fail(r->pass, PEN_E_NO_MEMORY, err);
        pthread_cond_broadcast(&r->lock->caller);
    }
    (void)pen__cond_wait(&r->lock->readers, &r->lock->mutex, pen__deadline_after(100000000u));
}

/* Releases the lock meanwhile. `from` is what was fetched of a remote pack. */
static void read_task(const PenReader *r, PenThread *me, PenTask *t, PenBlockPart *from)
{
    PenLoadLock *lock = r->lock;
    pen__thread_set(me, PEN_ACTIVITY_LOCATING, t->to.sample);
    uint64_t begin_ns = me->since_ns;
    pthread_mutex_unlock(&lock->mutex);
    if (t->status == PEN_OK)
        t->status = pen__fetch_for_reader(r->tasks, me, t);
    pthread_mutex_lock(&lock->mutex);
    pen__thread_set(me, PEN_ACTIVITY_IDLE, 0);
    pen__spans_read(me, t, begin_ns);
    t->block = NULL; /* if it is replaced, the other sample is not in this block */
    if (from)
        pen__blocks_sample_done(r->blocks, from);
    if (lock->paused || lock->stop)
        pen__tasks_recycle(r->tasks, t);
    else
        pen__tasks_push_ready(r->tasks, t);
    if (lock->paused)
        pthread_cond_broadcast(&lock->caller);
}

static int pass_empty(const PenReader *r, PenError *reterr)
{
    if (!open_batch(r, reterr))
        return PEN_E_NO_MEMORY;
    pen__ring_close_empty(r->ring);
    pen__epoch_pass_advance(r->pass);
    return PEN_OK;
}

static void assign_one(const PenReader *r, PenThread *me)
{
    PenAssignment next;
    PenError err;
    if (pen__epoch_pass_is_empty(r->pass)) {
        if (pass_empty(r, &err) < 0)
            wait_for_memory(r, &err);
    } else if (assign_next(r, &next, &err) < 0) {
        wait_for_memory(r, &err);
    } else if (r->blocks) {
        pen__blocks_assign(r->blocks, &next);
    } else {
        PenTask *t = pen__tasks_take_idle(r->tasks);
        pen__task_assign(t, &next);
        read_task(r, me, t, NULL);
    }
}

/* A sample whose block has arrived, if there is one. */
static bool read_arrived(const PenReader *r, PenThread *me)
{
    if (!r->blocks || r->lock->paused || !r->tasks->idle || !pen__blocks_have_arrived(r->blocks))
        return false;
    PenTask *t = pen__tasks_take_idle(r->tasks);
    PenBlockPart *from;
    if (pen__blocks_take(r->blocks, t, &from))
        read_task(r, me, t, from);
    else
        pen__tasks_recycle(r->tasks, t);
    return true;
}

/* Why there is nothing to read. */
static PenSpanTag waits_for(const PenReader *r)
{
    if (!pen__epoch_pass_has_next(r->pass))
        return PEN_SPAN_WAIT_WORK;
    if (!r->ring->open && !pen__ring_can_open(r->ring))
        return PEN_SPAN_WAIT_SLOT;
    return r->tasks->idle ? PEN_SPAN_WAIT_WORK : PEN_SPAN_WAIT_QUEUE;
}

void pen__reader_run(const PenReader *r, PenThread *me)
{
    PenLoadLock *lock = r->lock;
    pen__thread_name("pen-read");
    pthread_mutex_lock(&lock->mutex);
    while (!lock->stop) {
        if (read_arrived(r, me))
            continue;
        if (can_assign(r)) {
            assign_one(r, me);
        } else {
            me->waits_for = waits_for(r);
            (void)pen__cond_wait(&lock->readers, &lock->mutex, pen__deadline_after(1000000000u));
        }
    }
    pthread_mutex_unlock(&lock->mutex);
}
