/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/worker.h"

#include "base/thread.h"
#include "load/decode/lists.h"
#include "load/decode/run.h"
#include "load/spans.h"

/* With the lock held, which it releases meanwhile: for the last sample of a batch with lists, or
 * whose samples are mixed. */
static void finish_batch(const PenWorker *w, const PenTask *t)
{
    PenSlot *s = t->to.slot;
    if (!w->plan->n_values || s->left > 1 || s->status < 0 || t->status != PEN_OK)
        return;
    pthread_mutex_unlock(&w->lock->mutex);
    pen__lists_join(w->plan, s);
    pthread_mutex_lock(&w->lock->mutex);
}

/* With the lock held: a task is done, well or not. */
static void finish_task(const PenWorker *w, PenThread *me, PenTask *t)
{
    w->counters->bytes_read += t->bytes_read;
    if (t->timed)
        pen__counters_add_clock(w->counters, &t->clock);
    pen__ring_sample_done(w->ring, t->to.slot, t->to.index, t->status, &t->error);
    pen__spans_sample_done(me, t);
    pen__tasks_recycle(w->tasks, t);
}

/* With the lock held, which it releases meanwhile. */
static void work_one(const PenWorker *w, PenThread *me, const PenImageDecoder *decoder)
{
    PenLoadLock *lock = w->lock;
    PenTask *t = pen__tasks_take_ready(w->tasks);
    pen__thread_set(me, PEN_ACTIVITY_DECODING, t->to.sample);
    uint64_t begin_ns = me->since_ns, sample = t->to.sample;
    pthread_mutex_unlock(&lock->mutex);
    pen__task_run(w->tasks, decoder, t);
    pthread_mutex_lock(&lock->mutex);
    finish_batch(w, t);
    pen__thread_set(me, PEN_ACTIVITY_IDLE, 0);
    pen__spans_decode(me, t, sample, begin_ns);
    if (t->status == PEN_END || lock->paused) {
        pen__tasks_recycle(w->tasks, t);
        pthread_cond_broadcast(&lock->caller);
    } else {
        finish_task(w, me, t);
    }
}

void pen__worker_run(const PenWorker *w, PenThread *me)
{
    PenLoadLock *lock = w->lock;
    PenFrameDecoder video = {0};
    PenImageDecoder decoder = {.context = me->context,
                               .own_bytes = w->plan->shares.scratch_each,
                               .shared = w->scratch,
                               .video = &video};
    pen__thread_name("pen-decode");
    pthread_mutex_lock(&lock->mutex);
    while (!lock->stop) {
        if (w->tasks->ready && !lock->paused)
            work_one(w, me, &decoder);
        else
            (void)pen__cond_wait(&lock->decoders, &lock->mutex, pen__deadline_after(1000000000u));
    }
    pthread_mutex_unlock(&lock->mutex);
    pen__video_decoder_free(&video);
    pen__decode_context_free(&me->context);
}
