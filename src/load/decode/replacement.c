/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/replacement.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/rng.h"
#include "load/decode/sample.h"
#include "load/epoch/purpose.h"
#include "load/read/fetch.h"
#include "load/ring.h"

enum { TRIES = 16 };

static bool is_damage(int status)
{
    return status == PEN_E_CORRUPT || status == PEN_E_DECODE;
}

static int note(PenTasks *tasks, PenTask *t, int status, const PenError *why)
{
    PenReplacement what = {.index = t->to.index,
                           .bad = {.epoch = t->to.slot->batch.epoch,
                                   .sample = (uint64_t)why->sample,
                                   .instead = t->to.sample,
                                   .status = status}};
    snprintf(what.bad.message, sizeof what.bad.message, "%.*s", (int)sizeof what.bad.message - 1,
             why->message);
    pthread_mutex_lock(&tasks->lock->mutex);
    int r = pen__slot_add_replacement(t->to.slot, &what);
    pthread_mutex_unlock(&tasks->lock->mutex);
    return r < 0 ? pen__fail_memory(&t->error, "load/replacement", "list of broken samples")
                 : PEN_OK;
}

/* Of the same source. A sample that is a frame becomes a frame of another sample. */
static void draw_sample(const PenLoadPlan *plan, PenTask *t, PenRng *rng)
{
    if (plan->sources) {
        t->to.sample = pen__rng_below(rng, plan->sources[t->to.source].n);
        return;
    }
    uint64_t i = pen__rng_below(rng, plan->state.order.n);
    PenChosen chosen = pen__load_plan_choose(plan, t->to.epoch, i);
    t->to.sample = chosen.sample;
    if (plan->has_frames)
        t->to.ordinal = chosen.ordinal;
}

/* Other samples, one after another, until one is not broken. */
static int try_others(PenTasks *tasks, const PenImageDecoder *decoder, PenTask *t)
{
    const PenLoadPlan *plan = tasks->plan;
    uint64_t broken = t->to.sample;
    uint64_t key = pen__permute_key(plan->set.seed, t->to.epoch, PEN_FOR_REPLACEMENT, broken);
    PenRng rng = pen__rng_init(key, t->to.ordinal);
    int r = t->status;
    for (int i = 0; i < TRIES && is_damage(r); i++) {
        draw_sample(plan, t, &rng);
        if (t->to.sample == broken)
            continue;
        r = pen__fetch_for_worker(tasks, t);
        if (r == PEN_OK)
            r = pen__sample_decode(tasks, decoder, t);
    }
    return r;
}

int pen__sample_replace(PenTasks *tasks, const PenImageDecoder *decoder, PenTask *task)
{
    PenError why = task->error;
    uint64_t broken = task->to.sample;
    if (!is_damage(task->status))
        return task->status;
    int r = try_others(tasks, decoder, task);
    if (r == PEN_OK)
        r = note(tasks, task, task->status, &why);
    if (is_damage(r)) { /* all of them are broken: the error names the sample of the order */
        task->error = why;
        return task->status;
    }
    if (r < 0) { /* what may be temporary is reported as it is */
        pen__error_prefix(&task->error, "instead of sample %" PRIu64, broken);
        task->error.sample = (int64_t)broken;
    }
    return r;
}
