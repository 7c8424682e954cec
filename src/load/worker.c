/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that decode: one sample at a time, from its bytes to its place in the batch. */
#include <inttypes.h>
#include <string.h>

#include "base/sys.h"
#include "base/thread.h"
#include "load/core.h"

#define WHERE "load/worker"

/* ---- lists; with the lock held ---- */

void pen__ready_push(PenCore *c, PenTask *t)
{
    t->next = NULL;
    *c->ready.last = t;
    c->ready.last = &t->next;
    c->ready.n++;
    pthread_cond_signal(&c->for_work);
}

PenTask *pen__ready_pop(PenCore *c)
{
    PenTask *t = c->ready.first;
    if (t) {
        c->ready.first = t->next;
        c->ready.n--;
        if (!t->next)
            c->ready.last = &c->ready.first;
    }
    return t;
}

void pen__task_give(PenCore *c, PenTask *t)
{
    if (t->over)
        c->read.over = false;
    t->over = false;
    if (t->reserved)
        pen__budget_give(c, &c->read, t->reserved);
    t->reserved = 0;
}

void pen__task_recycle(PenCore *c, PenTask *t)
{
    const PenLoadPlan *plan = &c->plan;
    pen__task_give(c, t);
    pen__task_trim(
        plan, t,
        (size_t)(plan->shares.read / 2 / plan->tasks / (plan->n_images + plan->n_clips + 1)));
    t->next = c->idle;
    c->idle = t;
    c->n_idle++;
    /* Waking a reader for each sample would take the processor from those who decode. While there
     * is plenty to decode one is woken, for several tasks; when there is little, all are. */
    if (c->ready.n <= plan->threads)
        pthread_cond_broadcast(&c->for_io);
    else if (c->n_idle >= plan->tasks / 2)
        pthread_cond_signal(&c->for_io);
}

static void slot_full(PenCore *c, PenSlot *s)
{
    c->stats.slots_ready++;
    if (s == c->under_way)
        pthread_cond_broadcast(&c->for_user);
}

void pen__task_done(PenCore *c, PenTask *t)
{
    PenSlot *s = t->slot;
    c->stats.bytes_read += t->bytes_read;
    if (t->status < 0 && t->index < s->failed_index) {
        s->failed_index = t->index;
        s->status = t->status;
        s->error = t->error;
    }
    if (--s->left == 0)
        slot_full(c, s);
    pen__task_recycle(c, t);
}

/* ---- one sample; without the lock ---- */

static int reserve_scratch(PenCore *c, uint64_t bytes, PenError *reterr)
{
    pthread_mutex_lock(&c->mutex);
    int r = pen__budget_take(c, &c->scratch, bytes, NULL, "decoding it", reterr);
    pthread_mutex_unlock(&c->mutex);
    return r;
}

static void release_scratch(PenCore *c, uint64_t bytes)
{
    pthread_mutex_lock(&c->mutex);
    pen__budget_give(c, &c->scratch, bytes);
    pthread_mutex_unlock(&c->mutex);
}

int pen__image_decode_to(PenCore *c, PenDecodeContext *k, const PenProgram *p,
                         const PenSamplePlan *sample_plan, const PenEncoded *image, uint8_t *dst,
                         PenError *reterr)
{
    const PenLimits *limits = &pen__limits_default;
    uint64_t need, own = c->plan.shares.scratch_each;
    PenImageHeader header;
    int r = pen__image_header(image, limits, &header, reterr);
    if (r < 0)
        return r;
    need = pen__sample_plan_memory(p, sample_plan, &header);
    /* Every thread has some scratch of its own; a large image takes from what all share. */
    if (need > own)
        r = reserve_scratch(c, need, reterr);
    if (r != PEN_OK)
        return r;
    r = pen__sample_run_parsed(k, p, sample_plan, &header, limits, dst, reterr);
    if (need > own) {
        pen__decode_context_trim(k, own);
        release_scratch(c, need);
    }
    return r;
}

static int decode_image(PenCore *c, PenDecodeContext *k, const PenOutField *f, PenTask *t)
{
    PenTaskImage *im = &t->images[f->image];
    uint8_t *dst = (uint8_t *)t->slot->batch.memory + f->offset + f->bytes * t->index;
    return pen__image_decode_to(c, k, f->program, &im->sample_plan, &im->encoded, dst, &t->error);
}

int pen__task_decode(PenCore *c, PenDecodeContext *k, PenTask *t)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < c->plan.n_fields && r == PEN_OK; i++) {
        const PenOutField *f = &c->plan.fields[i];
        if (f->kind == PEN_KIND_CLIP)
            r = pen__clip_decode(c, k, f, t);
        else if (pen__field_is_image(f))
            r = decode_image(c, k, f, t);
    }
    return r;
}

/* The message gets the sample's number and key. */
static void name_sample(PenCore *c, PenTask *t)
{
    char key[96];
    size_t bytes = 0;
    int r = pen_pack_key(c->plan.pack, t->sample, NULL, 0, &bytes, NULL);
    t->error.sample = (int64_t)t->sample;
    if (r == PEN_OK && bytes < sizeof key)
        r = pen_pack_key(c->plan.pack, t->sample, key, sizeof key, &bytes, NULL);
    if (r == PEN_OK && bytes < sizeof key)
        pen__error_prefix(&t->error, "sample %" PRIu64 " '%.*s'", t->sample, (int)bytes, key);
    else
        pen__error_prefix(&t->error, "sample %" PRIu64, t->sample);
}

static void run_task(PenCore *c, PenDecodeContext *k, PenTask *t)
{
    if (t->status == PEN_OK)
        t->status = pen__task_decode(c, k, t);
    if (t->status < 0) {
        name_sample(c, t);
        if (c->plan.set.on_bad == PEN_BAD_SUBSTITUTE)
            t->status = pen__task_swap(c, k, t);
    }
}

static void work_one(PenCore *c, PenThread *me, PenDecodeContext *k)
{
    PenTask *t = pen__ready_pop(c);
    c->busy++;
    pen__thread_doing(me, THREAD_DECODING, t->sample);
    pthread_mutex_unlock(&c->mutex);
    run_task(c, k, t);
    pthread_mutex_lock(&c->mutex);
    pen__thread_doing(me, THREAD_IDLE, 0);
    c->busy--;
    if (t->status == PEN_END || c->paused) {
        pen__task_recycle(c, t);
        pthread_cond_broadcast(&c->for_user);
    } else {
        pen__task_done(c, t);
    }
}

void *pen__worker_run(void *thread)
{
    PenThread *me = thread;
    PenCore *c = me->core;
    PenDecodeContext *k = me->context;
    pen__thread_name("pen-decode");
    pthread_mutex_lock(&c->mutex);
    while (!c->stop) {
        if (c->ready.first && !c->paused)
            work_one(c, me, k);
        else
            (void)pen__cond_wait(&c->for_work, &c->mutex, pen__deadline_after(1000000000u));
    }
    pthread_mutex_unlock(&c->mutex);
    pen__decode_context_free(&me->context);
    pthread_mutex_lock(&c->mutex);
    c->live--;
    pthread_cond_broadcast(&c->for_user);
    pen__core_unref(c);
    return NULL;
}
