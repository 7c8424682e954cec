/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run stands: plain values, the same on every rank, as one line of text. */
#ifndef PEN_LOAD_EPOCH_STATE_H
#define PEN_LOAD_EPOCH_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <penstock/loader.h>

#include "load/epoch/order.h"

/* The largest values that a run, and so a state, may have. */
#define PEN_EPOCH_MOST ((uint64_t)INT64_MAX)
#define PEN_LANES_MOST (1u << 31) /* of lanes, and of blocks in a window */

typedef struct PenState {
    uint64_t epoch;
    uint64_t position; /* samples delivered of that epoch, over all ranks */
    PenOrderPlan order;
    uint8_t pack_id[16];
    uint64_t pipeline; /* hash of its full form */
    uint64_t subset;   /* hash of the samples chosen, their weights and buckets; 0 = all, once */
    PenGrouping group; /* of buckets; without them all is 0 */
    uint64_t place;    /* of the table of buckets: those before it were delivered */
    bool by_step;      /* steps of a token budget */
    uint64_t step;     /* of these: those of the epoch that were delivered */
} PenState;

/* "version=1 epoch=3 position=1280 ..."; buf has PEN_STATE_BYTES. Lanes, window and block are
 * written as 0 when the order is not by blocks; ranks, batch and place only with buckets; step only
 * with a token budget. */
int pen__state_write(const PenState *s, char *buf, PenError *reterr);
/* Every key once, in any order, those of buckets all or none, and step if there is one; an unknown
 * one, a missing one or a value out of range is PEN_E_INVALID, and the message names it. */
int pen__state_read(const char *text, PenState *ret, PenError *reterr);
/* PEN_E_INVALID with the first difference that would make the order or the pixels others: pack,
 * pipeline, subset, seed, number of samples, order and its lanes. */
int pen__state_match(const PenState *mine, const PenState *theirs, PenError *reterr);

#endif
