/* SPDX-License-Identifier: Apache-2.0 */
#include "load/prefetch/turns.h"

#include "base/attr.h"
#include "base/thread.h"

int pen__turns_init(PenTurns *t, PenLoadLock *lock)
{
    *t = (PenTurns){.lock = lock};
    return pen__cond_init(&t->changed);
}

void pen__turns_fini(PenTurns *t)
{
    pthread_cond_destroy(&t->changed);
}

void pen__turns_begin(PenTurns *t)
{
    t->n_first = t->n_answered = 0;
    t->n_before = t->n; /* some of these may wait still */
    t->warm = false;
}

void pen__turns_wake(PenTurns *t)
{
    pthread_cond_broadcast(&t->changed);
}

bool pen__turns_are_pending(const PenTurns *t)
{
    return !t->warm && t->n - t->n_before > t->n_answered;
}

uint64_t pen__turns_take(PenTurns *t)
{
    return t->n++;
}

void pen__turns_wait(PenTurns *t, uint64_t mine)
{
    PenLoadLock *lock = t->lock;
    while (!lock->stop && !t->warm && t->current < mine)
        (void)pen__cond_wait(&t->changed, &lock->mutex, pen__deadline_after(1000000000u));
    t->current = PEN_MAX(t->current, mine + 1);
    pthread_cond_broadcast(&t->changed);
}

bool pen__turns_answered(PenTurns *t, bool all_requested)
{
    bool was_warm = t->warm;
    t->n_answered++;
    if (!t->n_first && all_requested)
        t->n_first = t->n - t->n_before;
    t->warm = t->warm || (t->n_first && t->n_answered >= t->n_first);
    bool all_answered = t->n_answered >= t->n - t->n_before;
    if (was_warm || (!t->warm && !all_answered))
        return false;
    pthread_cond_broadcast(&t->changed);
    return true;
}
