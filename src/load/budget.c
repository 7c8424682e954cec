/* SPDX-License-Identifier: Apache-2.0 */
#include "load/budget.h"

#include <inttypes.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/thread.h"

#define WHERE "load/memory"

int pen__budget_init(PenBudget *b, PenLoadLock *lock, uint64_t limit, uint64_t memory,
                     PenError *reterr)
{
    *b = (PenBudget){.lock = lock, .limit = limit, .memory = memory};
    if (pen__cond_init(&b->released) < 0)
        return pen__fail_memory(reterr, WHERE, "condition");
    return PEN_OK;
}

void pen__budget_fini(PenBudget *b)
{
    pthread_cond_destroy(&b->released);
}

static bool fits(const PenBudget *b, uint64_t bytes)
{
    return b->used <= b->limit && bytes <= b->limit - b->used;
}

int pen__budget_take(PenBudget *b, uint64_t bytes, bool *ret_over, const char *what,
                     PenError *reterr)
{
    PenLoadLock *lock = b->lock;
    if (bytes > b->limit)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s needs %" PRIu64 " bytes, but of memory=%" PRIu64 " only %" PRIu64
                         " are available for it; increase memory, or leave the sample out",
                         what, bytes, b->memory, b->limit);
    /* Threads that hold bytes of this kind wait only for the processor, so this ends. Tasks that
     * are ready hold some too, and wait for a worker: a worker must not wait for them. */
    while (!fits(b, bytes) && !lock->stop) {
        if (ret_over && !b->over) {
            b->over = *ret_over = true;
            break;
        }
        b->waiting++;
        (void)pen__cond_wait(&b->released, &lock->mutex, pen__deadline_after(1000000000u));
        b->waiting--;
    }
    if (lock->stop)
        return PEN_END;
    b->used += bytes;
    b->peak = PEN_MAX(b->peak, b->used);
    return PEN_OK;
}

void pen__budget_release(PenBudget *b, uint64_t bytes, bool over)
{
    if (over)
        b->over = false;
    b->used -= bytes;
    if (b->waiting && bytes)
        pthread_cond_broadcast(&b->released);
}

void pen__budget_wake(PenBudget *b)
{
    pthread_cond_broadcast(&b->released);
}
