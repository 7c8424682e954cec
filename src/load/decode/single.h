/* SPDX-License-Identifier: Apache-2.0 */
/* Single samples, on the thread of the caller: access by number, without the threads of a loader.
 *
 * Lock rule: called without the lock of lock.h, by any number of threads at once. The lock guards
 * the list of idle ones. */
#ifndef PEN_LOAD_DECODE_SINGLE_H
#define PEN_LOAD_DECODE_SINGLE_H

#include "load/ring.h"
#include "load/tasks.h"
#include "video/decoder.h"

typedef struct PenSingle { /* what one call uses */
    struct PenSingle *next;
    PenTask *task;
    PenDecodeContext *context;
    PenFrameDecoder video;
} PenSingle;

typedef struct PenSingles {
    PenTasks *tasks;    /* of the loader: for its budget and its lock */
    PenBudget *scratch; /* of the loader */
    PenSingle *idle;    /* as many as there were calls at once */
    bool has_cache;     /* the pack keeps blocks for these calls */
} PenSingles;

/* Entry `index` of the samples chosen, in a slot of batch_size 1 that belongs to the caller. */
int pen__single_load(PenSingles *s, uint64_t epoch, uint64_t index, PenSlot **ret,
                     PenError *reterr);
void pen__singles_fini(PenSingles *s); /* when no call is under way; a zeroed one is fine */

#endif
