/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/sys.h"
#include "base/thread.h"
#include "load/core.h"

#define WHERE "load/memory"

static bool fits(const PenBudget *b, uint64_t bytes)
{
    return b->used <= b->limit && bytes <= b->limit - b->used;
}

int pen__budget_take(PenCore *c, PenBudget *b, uint64_t bytes, bool *ret_over, const char *what,
                     PenError *reterr)
{
    if (bytes > b->limit)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%s takes %" PRIu64 " bytes, but of memory=%" PRIu64 " only %" PRIu64
                         " are for that; give more memory, or leave the sample out",
                         what, bytes, c->plan.shares.total, b->limit);
    /* Those who hold bytes of this kind wait for nothing but the processor, so this ends. Tasks
     * that are ready hold some too, and wait for a worker: a worker must not wait for them. */
    while (!fits(b, bytes) && !c->stop) {
        if (ret_over && !b->over) {
            b->over = *ret_over = true;
            break;
        }
        b->waiting++;
        (void)pen__cond_wait(&c->for_bytes, &c->mutex, pen__deadline_after(1000000000u));
        b->waiting--;
    }
    if (c->stop)
        return PEN_END;
    b->used += bytes;
    b->peak = PEN_MAX(b->peak, b->used);
    return PEN_OK;
}

void pen__budget_give(PenCore *c, PenBudget *b, uint64_t bytes)
{
    b->used -= bytes;
    if (b->waiting)
        pthread_cond_broadcast(&c->for_bytes);
}
