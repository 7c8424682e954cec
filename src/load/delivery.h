/* SPDX-License-Identifier: Apache-2.0 */
/* Batches, in their order, from the ring to the caller and back.
 *
 * Lock rule: called without the lock of the engine, which it takes. pen__delivery_next belongs to
 * the thread of the caller; batches are released by any thread (pen_batch_unref). */
#ifndef PEN_LOAD_DELIVERY_H
#define PEN_LOAD_DELIVERY_H

#include "load/engine.h"

/* When a call for a batch began, when it gives up, and since when the caller waits: 0 = it does
 * not. A call that gives up leaves `since_ns` for the next one. */
typedef struct PenBatchWait {
    uint64_t start_ns, deadline_ns, since_ns;
} PenBatchWait;

/* There must be a batch left in the pass. At the deadline it is PEN_E_TIMEOUT, with a report. A
 * batch that failed counts as delivered, too. */
int pen__delivery_next(PenLoadEngine *e, PenBatchWait *wait, PenBatch **ret, PenError *reterr);

#endif
