/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed number of threads that run jobs in the order they were handed in. */
#ifndef PEN_BASE_POOL_H
#define PEN_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>

typedef struct PenPool PenPool;

/* All n_threads run, or none and an error. At most `capacity` jobs wait while others run. */
int pen__pool_start(unsigned n_threads, size_t capacity, PenPool **ret, PenError *reterr);

/* Waits for room until the deadline: PEN_OK or PEN_E_TIMEOUT; PEN_END while the pool is being
 * stopped. A job may hand in further jobs, but only with a deadline of 0 (no waiting), or all
 * threads may end up waiting for room. */
int pen__pool_submit(PenPool *pool, void (*run)(void *arg), void *arg, uint64_t deadline_ns);

/* PEN_OK once all jobs handed in are done, or PEN_E_TIMEOUT. Not from inside a job. */
int pen__pool_wait(PenPool *pool, uint64_t deadline_ns);

/* Lets the jobs handed in finish, ends the threads and frees. Not from inside a job. */
void pen__pool_stop(PenPool **pool);

#endif
