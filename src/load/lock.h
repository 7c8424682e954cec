/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a running loader: one mutex for all that the caller, the threads and the leased
 * batches share, the conditions they wait on, and two flags that all of them check.
 *
 * Lock rule
 * - The mutex guards the flags, the pass (epoch/pass.h), the ring and the state of its slots
 *   (ring.h), the lists of tasks (tasks.h), the budgets (budget.h), the prefetched blocks
 *   (prefetch/), what each thread is doing (threads.h) and the list of bad samples. The plan does
 *   not change while threads run and needs no lock.
 * - Not guarded: a task that a thread has taken from a list, and a sample's part of its slot's
 *   memory. Both belong to that thread until it puts the task back.
 * - The mutex is held for operations on lists and counters, while the ring allocates or frees a
 *   slot, and for a report on a stalled batch. Threads read, decode and open shards without it. The
 *   headers of the parts say which functions need it.
 * - Order: this mutex first, then those of the pack, which knows nothing of the loader. No other
 *   lock of the loader is taken while it is held.
 * - Every wait has a deadline, and checks its condition again.
 *
 * One mutex is enough: it is taken three times for a sample, each time for a few instructions. It
 * is right because the end of one step changes several parts at once: a task that ends may complete
 * a slot, releases bytes, and lets a reader continue. With a mutex for each part a sample would
 * take more of them, and their order would have to be kept. */
#ifndef PEN_LOAD_LOCK_H
#define PEN_LOAD_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include <penstock/error.h>

typedef struct PenLoadLock {
    pthread_mutex_t mutex;
    pthread_cond_t readers;  /* wait for an idle task, a free slot, a block or a pass */
    pthread_cond_t decoders; /* wait for a task whose bytes have been read */
    pthread_cond_t caller;   /* waits for a full slot, an error, or threads that pause or end */
    bool stop;               /* threads end as soon as they can */
    bool paused;             /* threads put their tasks back and take no others */
} PenLoadLock;

int pen__load_lock_init(PenLoadLock *l, PenError *reterr);
void pen__load_lock_fini(PenLoadLock *l);

#endif
