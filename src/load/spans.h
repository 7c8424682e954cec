/* SPDX-License-Identifier: Apache-2.0 */
/* The spans of a sample, of a batch and of requests, for a trace. Waits are added by threads.h.
 *
 * Lock rule: the lock of lock.h is held. Without a trace they do nothing. */
#ifndef PEN_LOAD_SPANS_H
#define PEN_LOAD_SPANS_H

#include "load/epoch/pass.h"
#include "load/ring.h"
#include "load/task.h"
#include "load/threads.h"

/* Each ends when the activity of the thread began that it has now. `sample` is the one of the
 * order, which another may have replaced. */
void pen__spans_request(const PenThread *me, uint64_t block, uint64_t bytes, uint64_t begin_ns);
void pen__spans_read(const PenThread *me, const PenTask *task, uint64_t begin_ns);
void pen__spans_decode(const PenThread *me, const PenTask *task, uint64_t sample,
                       uint64_t begin_ns);
/* A batch, if this was its last sample. */
void pen__spans_sample_done(const PenThread *me, const PenTask *task);
/* The caller waited for the batch that is delivered next. */
void pen__spans_next(const PenThreads *threads, const PenEpochPass *pass, uint64_t begin_ns,
                     uint64_t end_ns);

#endif
