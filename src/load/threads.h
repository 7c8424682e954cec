/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a loader, and what each of them is doing.
 *
 * Lock rule: the lock of lock.h guards `live`, and the activity of each thread. A thread that hangs
 * in a read is not waited for: the set must live as long as `live` is not 0. `all` and `n` belong
 * to the thread of the caller, and do not change while threads run; it holds the lock when `n`
 * grows, because another thread may read the times. */
#ifndef PEN_LOAD_THREADS_H
#define PEN_LOAD_THREADS_H

#include <stdint.h>

#include "load/lock.h"
#include "ops/run/program.h"
#include "trace/span.h"

typedef enum PenActivity {
    PEN_ACTIVITY_IDLE,
    PEN_ACTIVITY_LOCATING,
    PEN_ACTIVITY_WAITING, /* for memory */
    PEN_ACTIVITY_READING,
    PEN_ACTIVITY_DECODING,
    PEN_ACTIVITY_COUNT
} PenActivity;

typedef enum PenRole { PEN_ROLE_FETCH, PEN_ROLE_READ, PEN_ROLE_DECODE, PEN_ROLE_COUNT } PenRole;

typedef struct PenThread {
    void *owner; /* of the set */
    pthread_t id;
    PenRole role;
    PenDecodeContext *context; /* of PEN_ROLE_DECODE; the thread frees it */
    PenActivity activity;
    uint64_t sample, since_ns;       /* that the activity is about; when it began */
    uint64_t ns[PEN_ACTIVITY_COUNT]; /* of those that have ended */
    PenSpanRing *spans;              /* of the trace; NULL: there is none */
    PenSpanTag waits_for;            /* while it is idle */
    uint32_t tid, number;            /* of the system; among those of its role */
} PenThread;

typedef struct PenThreads {
    PenLoadLock *lock;
    PenThread *all;
    uint32_t n;
    uint32_t live;      /* that have not ended */
    PenSpanRing *spans; /* of threads that start, and of the caller */
} PenThreads;

/* Threads of each role, running `run` with a PenThread; without the lock. On failure the threads
 * that were started run on: the caller stops them. */
int pen__threads_start(PenThreads *t, const uint32_t n_of[PEN_ROLE_COUNT], void *(*run)(void *),
                       void *owner, PenError *reterr);
/* After `stop` was set and all were woken, without the lock: waits until the deadline, and joins
 * the threads. Those that have not ended by then are left behind. */
void pen__threads_end(PenThreads *t, uint64_t deadline_ns);
void pen__threads_fini(PenThreads *t); /* a zeroed one is fine */

/* With the lock held: the spans of all threads go to this ring, or with NULL to none. */
void pen__threads_trace(PenThreads *t, PenSpanRing *spans);

/* With the lock held: the calling thread begins, and ends; what its activity is. */
void pen__thread_enter(PenThread *t);
void pen__threads_leave(PenThreads *t);
void pen__thread_set(PenThread *t, PenActivity activity, uint64_t sample);
/* Adds the time that threads of each role have spent in each activity, up to now. */
void pen__threads_add_times(const PenThreads *t, uint64_t ns[PEN_ROLE_COUNT][PEN_ACTIVITY_COUNT]);

#endif
