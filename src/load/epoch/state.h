/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run stands: plain values, the same on every rank, as one line of text. */
#ifndef PEN_LOAD_EPOCH_STATE_H
#define PEN_LOAD_EPOCH_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <penstock/loader.h>

#include "load/epoch/order.h"

/* The largest epoch that a run, and so a state, may have. */
#define PEN_EPOCH_MOST ((uint64_t)INT64_MAX)

typedef struct PenState {
    uint64_t epoch;
    uint64_t position; /* samples delivered of that epoch, over all ranks */
    PenOrderPlan order;
    uint8_t pack_id[16];
    uint64_t pipeline; /* hash of its full form */
    uint64_t subset;   /* hash of the samples chosen, their weights and buckets; 0 = all, once */
    /* Of buckets, samples of all ranks in a step; of a token budget, in one step of each length;
     * else 0, since the order does not depend on it. */
    uint64_t global_batch;
    uint64_t place; /* of the table of buckets: those before it were delivered */
    bool by_step;   /* steps of a token budget */
    uint64_t step;  /* of these: those of the epoch that were delivered */
} PenState;

/* A hash of all that defines the order of every epoch: ranks whose hashes are equal deliver parts
 * of one order. */
uint64_t pen__state_hash(const PenState *s);

/* "version=2 epoch=3 position=1280 ..."; buf has PEN_STATE_BYTES. The shuffle buffer and block are
 * written as 0 when the order has no streams; global_batch only with buckets, which have a place,
 * or with a token budget, which has a step. */
int pen__state_write(const PenState *s, char *buf, PenError *reterr);
/* Every key once, in any order; an unknown one, a missing one or a value out of range is
 * PEN_E_INVALID, and the message names it. */
int pen__state_read(const char *text, PenState *ret, PenError *reterr);
/* PEN_E_INVALID with the first difference that would make the order or the pixels others: pack,
 * pipeline, subset, seed, number of samples, order, shuffle buffer and global batch. */
int pen__state_match(const PenState *mine, const PenState *theirs, PenError *reterr);

#endif
