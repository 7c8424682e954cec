/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that read. Each takes the next sample of the pass, assigns it to a place in a batch,
 * fetches its bytes, and pushes it to the queue of the workers. With a remote pack a sample waits
 * in between until its block has arrived (prefetch/blocks.h).
 *
 * Lock rule: the lock of lock.h is held between samples, and released while one is read. */
#ifndef PEN_LOAD_READ_READER_H
#define PEN_LOAD_READ_READER_H

#include "load/epoch/pass.h"
#include "load/prefetch/blocks.h"
#include "load/ring.h"
#include "load/tasks.h"
#include "load/threads.h"

typedef struct PenReader { /* what all readers use */
    PenLoadLock *lock;
    const PenLoadPlan *plan;
    PenEpochPass *pass;
    PenRing *ring;
    PenTasks *tasks;
    PenBlocks *blocks; /* of a remote pack; else NULL */
} PenReader;

/* Until the loader stops; called and returns without the lock. */
void pen__reader_run(const PenReader *r, PenThread *me);

#endif
