/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a loader: idle ones, a queue of those whose bytes have been read, and the budget for
 * these bytes. A task is in one of the two lists, or in the hands of one thread.
 *
 * Lock rule: the lock of lock.h guards the lists, the budget and the counters. It is held for every
 * function but init, make and fini. pen__tasks_reserve may release it while it waits. */
#ifndef PEN_LOAD_TASKS_H
#define PEN_LOAD_TASKS_H

#include "load/budget.h"
#include "load/lock.h"
#include "load/task.h"

typedef struct PenTasks {
    PenLoadLock *lock;
    const PenLoadPlan *plan;
    PenBudget budget; /* for bytes that tasks read */
    PenTask *idle;
    PenTask *ready, **ready_end; /* in the order in which they were read */
    uint32_t n, n_idle, n_ready;
    uint32_t until_timed; /* tasks until the next one is */
} PenTasks;

int pen__tasks_init(PenTasks *t, const PenLoadPlan *plan, PenLoadLock *lock, PenError *reterr);
/* plan->tasks of them, all idle; a call after a failure makes those that are missing. */
int pen__tasks_make(PenTasks *t, PenError *reterr);
void pen__tasks_fini(PenTasks *t); /* when no thread has one */

/* A task from a list, into the hands of the caller; there must be an idle one, a ready one. */
PenTask *pen__tasks_take_idle(PenTasks *t);
PenTask *pen__tasks_take_ready(PenTasks *t);
/* Back to a list. The bytes that a recycled task has reserved are released. */
void pen__tasks_push_ready(PenTasks *t, PenTask *task);
void pen__tasks_recycle(PenTasks *t, PenTask *task);
void pen__tasks_recycle_ready(PenTasks *t);     /* all of them */
bool pen__tasks_are_in_hand(const PenTasks *t); /* any, of some thread */

/* Bytes for reading; see pen__budget_take. With `may_exceed` it takes them rather than waiting. */
int pen__tasks_reserve(PenTasks *t, PenTask *task, uint64_t bytes, bool may_exceed,
                       PenError *reterr);
void pen__tasks_release(PenTasks *t, PenTask *task);

#endif
