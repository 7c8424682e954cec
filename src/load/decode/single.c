/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/single.h"

#include "base/error.h"
#include "base/mem.h"
#include "load/decode/lists.h"
#include "load/decode/run.h"
#include "load/plan/buckets.h"
#include "load/plan/sources.h"
#include "load/read/fetch.h"

#define WHERE "load/single"

enum { KEEP = 1 << 20 }; /* bytes of a buffer that is kept for the next call */

static void free_single(const PenLoadPlan *plan, PenSingle *one)
{
    if (!one)
        return;
    pen__task_free(plan, &one->task);
    pen__decode_context_free(&one->context);
    pen__video_decoder_free(&one->video);
    pen__free(one);
}

static int new_single(const PenLoadPlan *plan, PenSingle **ret, PenError *reterr)
{
    PenSingle *one = pen__zalloc(sizeof *one);
    if (!one)
        return pen__fail_memory(reterr, WHERE, "sample");
    int r = pen__task_new(plan, &one->task, reterr);
    if (r == PEN_OK)
        r = pen__decode_context_new(&one->context, reterr);
    if (r < 0) {
        free_single(plan, one);
        return r;
    }
    *ret = one;
    return PEN_OK;
}

/* Blocks of a remote pack are read entirely. No prefetching competes for their memory here. */
static int keep_blocks(PenSingles *s, PenError *reterr)
{
    const PenLoadPlan *plan = s->tasks->plan;
    pthread_mutex_t *lock = &s->tasks->lock->mutex;
    pthread_mutex_lock(lock);
    bool is_first = !s->has_cache;
    s->has_cache = true;
    pthread_mutex_unlock(lock);
    return is_first ? pen__sources_keep(plan, plan->shares.index, reterr) : PEN_OK;
}

static int take(PenSingles *s, PenSingle **ret, PenError *reterr)
{
    pthread_mutex_lock(&s->tasks->lock->mutex);
    *ret = s->idle;
    if (s->idle)
        s->idle = s->idle->next;
    pthread_mutex_unlock(&s->tasks->lock->mutex);
    if (*ret)
        return PEN_OK;
    int r = keep_blocks(s, reterr);
    return r < 0 ? r : new_single(s->tasks->plan, ret, reterr);
}

static void put_back(PenSingles *s, PenSingle *one)
{
    pen__task_trim(s->tasks->plan, one->task, KEEP);
    pthread_mutex_lock(&s->tasks->lock->mutex);
    pen__tasks_release(s->tasks, one->task);
    one->next = s->idle;
    s->idle = one;
    pthread_mutex_unlock(&s->tasks->lock->mutex);
}

static int run(PenSingles *s, PenSingle *one, PenSlot *slot, PenError *reterr)
{
    const PenLoadPlan *plan = s->tasks->plan;
    PenTask *task = one->task;
    PenImageDecoder decoder = {.context = one->context,
                               .own_bytes = plan->shares.scratch_each,
                               .shared = s->scratch,
                               .video = &one->video};
    task->status = pen__fetch_for_worker(s->tasks, task);
    pen__task_run(s->tasks, &decoder, task);
    if (task->status == PEN_END)
        return pen__fail(reterr, PEN_E_CLOSED, WHERE, "the loader is being closed");
    if (task->status < 0) {
        if (reterr)
            *reterr = task->error;
        return task->status;
    }
    slot->batch.n_substituted = slot->replacements.bytes > 0;
    if (plan->n_values)
        pen__lists_join(plan, slot);
    return PEN_OK;
}

static void assign(const PenLoadPlan *plan, PenTask *task, PenSlot *slot, uint64_t epoch,
                   uint64_t index)
{
    PenChosen chosen = pen__load_plan_choose(plan, epoch, index);
    if (plan->buckets)
        pen__slot_set_shape(plan, slot, pen__plan_bucket_of(plan, epoch, index), 1);
    PenAssignment to = {.pack = chosen.pack,
                        .fields = plan->buckets ? slot->fields : chosen.fields,
                        .slot = slot,
                        .memory = slot->batch.memory,
                        .ordinal = chosen.ordinal,
                        .source = chosen.source,
                        .sample = chosen.sample,
                        .epoch = chosen.epoch};
    slot->samples[0] = to.sample;
    if (slot->ordinals)
        slot->ordinals[0] = pen__load_plan_ordinal(plan, &chosen);
    slot->valid[0] = 1;
    slot->batch.n_valid = 1;
    slot->batch.epoch = epoch;
    slot->batch.position = index;
    pen__task_assign(task, &to);
}

int pen__single_load(PenSingles *s, uint64_t epoch, uint64_t index, PenSlot **ret, PenError *reterr)
{
    const PenLoadPlan *plan = s->tasks->plan;
    PenSingle *one;
    int r = take(s, &one, reterr);
    if (r < 0)
        return r;
    PenSlot *slot = pen__slot_new(plan, reterr);
    r = PEN_E_NO_MEMORY;
    if (slot) {
        assign(plan, one->task, slot, epoch, index);
        r = run(s, one, slot, reterr);
    }
    put_back(s, one);
    if (r < 0) {
        pen__slot_free(slot);
        return r;
    }
    atomic_store(&slot->refs, 1);
    *ret = slot;
    return PEN_OK;
}

void pen__singles_fini(PenSingles *s)
{
    while (s->idle) {
        PenSingle *one = s->idle;
        s->idle = one->next;
        free_single(s->tasks->plan, one);
    }
}
