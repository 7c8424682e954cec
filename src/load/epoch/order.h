/* SPDX-License-Identifier: Apache-2.0 */
/* The order of an epoch: one linear sequence of n positions, each computed by itself, for any
 * number of ranks. */
#ifndef PEN_LOAD_EPOCH_ORDER_H
#define PEN_LOAD_EPOCH_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <penstock/loader.h>

#include "load/epoch/bucket_table.h"
#include "load/epoch/lengths.h"
#include "load/epoch/permute.h"

/* What stays the same for all epochs of a run; kept in the state. */
typedef struct PenOrderPlan {
    int32_t kind; /* PEN_ORDER_* */
    uint64_t n;   /* samples; 1 to PEN_PERMUTE_MOST */
    uint64_t seed;
    uint64_t block_samples; /* K, of orders by block */
    uint32_t lanes, window; /* C and W, of orders by block; at least 1 */
} PenOrderPlan;

/* Of one epoch. A plain value; may be copied. */
typedef struct PenOrder {
    PenOrderPlan plan;
    uint64_t epoch;
    uint64_t full_blocks; /* of K samples */
    uint64_t lane_blocks; /* full blocks of each lane */
    uint64_t body; /* positions that lie in lanes; those behind it are mixed among themselves */
    PenPermutation samples; /* of PEN_ORDER_RANDOM, and of the positions behind the body */
    PenPermutation blocks;
    PenPermutation window;       /* of a whole window, but for its key; n is 0 when there is none */
    PenPermutation lane;         /* of a lane's blocks, but for its key; of PEN_ORDER_STICKY */
    const PenBucketTable *table; /* positions are its places; NULL: there are no buckets */
} PenOrder;

int pen__order_check(const PenOrderPlan *plan, PenError *reterr); /* what the next one refuses */
int pen__order_init(PenOrder *ret, const PenOrderPlan *plan, uint64_t epoch, PenError *reterr);
/* The sample at a position below n, and back; with a table there is no way back. */
uint64_t pen__order_at(const PenOrder *o, uint64_t position);
uint64_t pen__order_find(const PenOrder *o, uint64_t sample);

/* "sequential", "random", "block" or "sticky"; NULL for another number. */
const char *pen__order_name(int32_t kind);
bool pen__order_by_block(int32_t kind); /* has lanes and windows */

/* Lanes and window for a memory of `bytes`: C * W blocks of block_bytes and as many read ahead have
 * to fit. When all n_blocks do, there are more lanes than blocks and the order is fully random.
 * Otherwise lanes are a multiple of the ranks, so that no two of these need the same block. */
void pen__order_choose(uint64_t bytes, uint64_t block_bytes, uint64_t n_blocks, uint32_t world,
                       uint32_t *ret_lanes, uint32_t *ret_window);

/* How the sequence is cut into batches. A pass starts at `start` (0, or where a state left off);
 * global batch g is the positions [start + g*B*R, start + (g+1)*B*R); rank r has those with
 * (p - start) mod R = r, so that it keeps to its own lanes when R divides their number.
 *
 * With buckets, the places of a table are split by batches: n and start are multiples of B, batch k
 * is the places [start + k*B, start + (k+1)*B), and rank r has the batches with k mod R = r.
 *
 * With lengths, the batches of a step have those of its length instead of B. Step 0 of the pass is
 * step `step` of the epoch. */
typedef struct PenSplit {
    uint64_t n, start;
    uint32_t batch, rank, world; /* batch and world at least 1, rank < world */
    bool drop_last;
    bool by_batch;
    const PenLengths *lengths; /* NULL: all batches have `batch` samples */
    uint64_t epoch, step;      /* of lengths */
} PenSplit;

uint64_t pen__split_steps(const PenSplit *s); /* batches of the pass, the same for every rank */
uint64_t pen__split_samples(const PenSplit *s,
                            uint64_t g); /* of this rank in its first g batches */
/* Position of sample k of this rank, when those of its batches are counted one after another;
 * *ret_valid is false where it only fills up (the order is then repeated from its start). */
uint64_t pen__split_nth(const PenSplit *s, uint64_t k, bool *ret_valid);
/* The same for sample i of batch g < steps. */
uint64_t pen__split_position(const PenSplit *s, uint64_t g, uint32_t i, bool *ret_valid);

#endif
