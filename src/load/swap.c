/* SPDX-License-Identifier: Apache-2.0 */
/* Another sample instead of a broken one. Which one depends on the seed, the epoch, the broken
 * sample's number and which of its repeats it is, so that all ranks and restarts agree. Only
 * confirmed damage is passed over: bytes that do not fit their checksum when read twice, or that
 * fit it and cannot be decoded. Anything else may pass, and would make the order depend on the
 * moment. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "load/core.h"

enum { TRIES = 16 };

static bool is_damage(int status)
{
    return status == PEN_E_CORRUPT || status == PEN_E_DECODE;
}

static int note(PenCore *c, PenTask *t, uint64_t instead, int status, const PenError *why)
{
    PenSwap swap = {.index = t->index,
                    .bad = {.epoch = t->epoch,
                            .sample = (uint64_t)why->sample,
                            .instead = instead,
                            .status = status}};
    snprintf(swap.bad.message, sizeof swap.bad.message, "%.*s", (int)sizeof swap.bad.message - 1,
             why->message);
    pthread_mutex_lock(&c->mutex);
    int r = pen__buf_add(&t->slot->swaps, &swap, sizeof swap);
    t->slot->samples[t->index] = instead;
    pthread_mutex_unlock(&c->mutex);
    return r < 0 ? pen__fail_memory(&t->error, "load/swap", "list of broken samples") : PEN_OK;
}

int pen__task_swap(PenCore *c, PenDecodeContext *k, PenTask *t)
{
    PenError why = t->error;
    uint64_t broken = t->sample;
    int first = t->status, r = first;
    if (!is_damage(first)) /* nothing was tried instead */
        return first;
    PenRng rng =
        pen__rng_init(pen__permute_key(c->plan.set.seed, t->epoch, 77, broken), t->ordinal);
    for (int i = 0; i < TRIES && is_damage(r); i++) {
        pthread_mutex_lock(&c->mutex);
        pen__task_give(c, t);
        pthread_mutex_unlock(&c->mutex);
        t->sample = pen__load_plan_sample(&c->plan, pen__rng_below(&rng, c->plan.state.order.n));
        if (t->sample == broken)
            continue;
        r = pen__task_fetch(c, NULL, t);
        if (r == PEN_OK)
            r = pen__task_decode(c, k, t);
    }
    if (r == PEN_OK)
        r = note(c, t, t->sample, first, &why);
    if (is_damage(r)) { /* nothing but broken ones: the one that the order asked for is named */
        t->error = why;
        return first;
    }
    if (r < 0) { /* what may pass is told as it is */
        pen__error_prefix(&t->error, "instead of sample %" PRIu64, broken);
        t->error.sample = (int64_t)broken;
    }
    return r;
}
