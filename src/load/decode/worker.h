/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that decode: one sample at a time, from its bytes to its place in the batch.
 *
 * Lock rule: the lock of lock.h is held between samples, and released while one is decoded. */
#ifndef PEN_LOAD_DECODE_WORKER_H
#define PEN_LOAD_DECODE_WORKER_H

#include "load/counters.h"
#include "load/ring.h"
#include "load/tasks.h"
#include "load/threads.h"

typedef struct PenWorker { /* what all workers use */
    PenLoadLock *lock;
    const PenLoadPlan *plan;
    PenRing *ring;
    PenTasks *tasks;
    PenBudget *scratch;
    PenLoadCounters *counters;
} PenWorker;

/* Until the loader stops; called and returns without the lock. Frees the thread's context. */
void pen__worker_run(const PenWorker *w, PenThread *me);

#endif
