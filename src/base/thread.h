/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, and waiting that always ends. Deadlines are points on the system interface's clock, in
 * nanoseconds.
 */
#ifndef PEN_BASE_THREAD_H
#define PEN_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

#include <penstock/error.h>

int pen__thread_start(pthread_t *ret, void *(*run)(void *), void *arg, PenError *reterr);
void pen__thread_join(pthread_t thread);

/* What the calling thread, one of ours, is called in top, perf and /proc: at most 15 letters. */
void pen__thread_name(const char *name);

/* The ID of the calling thread in the kernel. glibc has gettid() since 2.30 only. */
uint32_t pen__thread_id(void);

/* The deadline that lies `ns` after now; saturates, so UINT64_MAX means never. */
uint64_t pen__deadline_after(uint64_t ns);

/* A condition variable for pen__cond_wait. Both return 0 or PEN_E_NO_MEMORY, PEN_E_LIMIT. */
int pen__cond_init(pthread_cond_t *ret);

/* Waits with the mutex held. 0: look at the condition again. PEN_E_TIMEOUT: the deadline has
 * passed. */
int pen__cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline_ns);

#endif
