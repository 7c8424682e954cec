/* SPDX-License-Identifier: Apache-2.0 */
/* How the sequence of an epoch is cut into batches, and these into those of each rank. A pass
 * starts at `start` (0, or where a state left off). Step g of it is a global batch: the next B * R
 * positions, whatever the number of ranks; the last one may have fewer, which are divided among the
 * ranks. Which rank has which of them is chosen so that the samples of a block go to few ranks.
 *
 * With buckets, positions are places of a table whose groups are global batches; rank r has the
 * r-th part of each. With lengths, the batches of a step have those of its length instead of B.
 * Step 0 of the pass is step `step` of the epoch. */
#ifndef PEN_LOAD_EPOCH_SPLIT_H
#define PEN_LOAD_EPOCH_SPLIT_H

#include "load/epoch/lengths.h"
#include "load/epoch/order.h"

typedef enum PenDeal {
    PEN_DEAL_IN_TURN,   /* position p belongs to rank p mod R */
    PEN_DEAL_IN_PARTS,  /* each rank has one part of a global batch */
    PEN_DEAL_BY_STREAM, /* of a global batch, which is sorted by the streams from left to right */
} PenDeal;

typedef struct PenSplit {
    uint64_t n, start;
    uint32_t batch, rank, world; /* batch and world at least 1, rank < world */
    int32_t last_batch;          /* PEN_LAST_* */
    bool has_pairs; /* sample i of a batch is mixed with i + batch / 2, for any number of ranks */
    PenDeal deal;
    uint32_t streams;            /* for PEN_DEAL_BY_STREAM */
    const PenLengths *lengths;   /* NULL: all batches have `batch` samples */
    const PenBucketTable *table; /* of the order; NULL: it has none */
    uint64_t epoch, step;        /* of lengths */
} PenSplit;

/* One step of a rank. */
typedef struct PenPassStep {
    uint64_t first, n; /* its positions, over all ranks */
    uint64_t before;   /* of these, those of the ranks before this one */
    uint32_t valid;    /* and those of this rank; the other samples only pad its batch */
    uint32_t batch;    /* of a full step */
    uint32_t samples;  /* of this one: fewer, or 0, if it is short */
    uint32_t length;   /* number of its length; 0 without */
    /* Sample i of its batch is number row + i * row_step of the global batch. */
    uint64_t row, row_step;
} PenPassStep;

/* Streams stay with a rank where the ranks divide them; else the streams between two ranks are
 * shared. */
PenDeal pen__deal_for(const PenOrder *order, uint32_t world);

uint64_t pen__split_steps(const PenSplit *s); /* batches of the pass, the same for every rank */
/* Samples of this rank in its first g batches, if all of them are full. */
uint64_t pen__split_places(const PenSplit *s, uint64_t g);
/* And those that they have, if some are short. */
uint64_t pen__split_samples(const PenSplit *s, uint64_t g);
PenPassStep pen__split_step(const PenSplit *s, uint64_t g); /* g < steps */
/* Position of sample i of a step's batch; *ret_valid is false where it only pads (the order is then
 * repeated from its start). */
uint64_t pen__split_position(const PenSplit *s, const PenPassStep *step, uint32_t i,
                             bool *ret_valid);

#endif
