/* SPDX-License-Identifier: Apache-2.0 */
/* One pass through an epoch: which sample is assigned to a batch next, how many batches have been
 * delivered, and an error for which no batch is to blame.
 *
 * Lock rule: the lock of the loader (load/lock.h) guards it, and is held for every function. The
 * thread of the caller alone writes `ended` and `delivered`, and may read them without the lock. */
#ifndef PEN_LOAD_EPOCH_PASS_H
#define PEN_LOAD_EPOCH_PASS_H

#include "load/epoch/split.h"

typedef struct PenEpochPass {
    PenOrder order;
    PenSplit split;
    uint64_t steps;       /* batches */
    uint64_t next_batch;  /* that gets the next sample */
    uint32_t next_sample; /* its place in that batch */
    PenPassStep step;     /* and which samples that batch has */
    uint64_t assigned;    /* samples passed by so far */
    uint64_t delivered;   /* batches */
    bool ended;           /* no more samples are to be read */
    int status;           /* of `error`; PEN_OK: none */
    PenError error;
} PenEpochPass;

/* The next sample of the order. */
typedef struct PenPassSample {
    uint64_t position; /* in the sequence of all ranks */
    uint64_t chosen;   /* number among the samples of the run */
    uint32_t index;    /* in its batch; 0 begins another */
    bool valid;        /* false: it only pads the batch */
} PenPassSample;

/* The order is set, and of the split all but how it is dealt. */
void pen__epoch_pass_init(PenEpochPass *p);
/* Neither ended nor failed. */
bool pen__epoch_pass_is_running(const PenEpochPass *p);
bool pen__epoch_pass_has_next(const PenEpochPass *p); /* is running, and batches are left */
/* The next batch has no samples. */
static inline bool pen__epoch_pass_is_empty(const PenEpochPass *p)
{
    return !p->step.samples;
}
PenPassSample pen__epoch_pass_peek(const PenEpochPass *p); /* the next batch is not empty */
void pen__epoch_pass_advance(PenEpochPass *p); /* to the sample after it; or past an empty batch */
/* A failure that no batch is to blame for, until it is taken. */
void pen__epoch_pass_fail(PenEpochPass *p, int status, const PenError *error);
int pen__epoch_pass_take_error(PenEpochPass *p, PenError *reterr); /* PEN_OK: there is none */
/* Position of the state after the batches that were delivered, over all ranks. */
uint64_t pen__epoch_pass_position(const PenEpochPass *p);

#endif
