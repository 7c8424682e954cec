/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded queue between any number of threads. Items are pointers and stay the caller's. */
#ifndef PEN_BASE_QUEUE_H
#define PEN_BASE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>

typedef struct PenQueue PenQueue;

int pen__queue_new(size_t capacity, PenQueue **ret, PenError *reterr);
void pen__queue_free(PenQueue **q); /* no thread may be inside; items left are not touched */

/* Both wait until deadline_ns at most (see pen__deadline_after; 0 never waits) and return PEN_OK,
 * or PEN_E_TIMEOUT, or PEN_END: push when the queue is closed, pop when it is closed and empty. */
int pen__queue_push(PenQueue *q, void *item, uint64_t deadline_ns);
int pen__queue_pop(PenQueue *q, void **ret, uint64_t deadline_ns);

/* Nothing more comes in; what is inside can still be taken. Wakes all who wait. */
void pen__queue_close(PenQueue *q);

#endif
