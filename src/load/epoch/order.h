/* SPDX-License-Identifier: Apache-2.0 */
/* The order of an epoch: one linear sequence of n positions, each computed by itself, for any
 * number of ranks, threads and bytes of memory.
 *
 * Shuffle and sticky deliver the samples of G streams in turn: position p belongs to stream
 * lane(p mod G). A stream delivers block after block, each completely, so that at any time the
 * samples of G blocks from all over the pack are mixed. The streams begin their blocks at different
 * times. Inside a block, each half of the time is one half of the block, each quarter one quarter,
 * and so on: with less memory, smaller pieces are fetched. */
#ifndef PEN_LOAD_EPOCH_ORDER_H
#define PEN_LOAD_EPOCH_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <penstock/loader.h>

#include "load/epoch/bucket_table.h"
#include "load/epoch/permute.h"

/* Streams are 3 * 2^k, k from 1 to 30: many numbers of ranks divide that. */
enum { PEN_STREAMS_LEAST = 6 };
#define PEN_STREAMS_MOST (UINT32_C(3) << 30)

/* What stays the same for all epochs of a run; kept in the state. */
typedef struct PenOrderPlan {
    int32_t kind; /* PEN_ORDER_* */
    uint64_t n;   /* samples; 1 to PEN_PERMUTE_MOST */
    uint64_t seed;
    uint64_t block_samples; /* K, of shuffle and sticky */
    uint32_t streams;       /* G, of shuffle and sticky; G * K is the shuffle buffer */
} PenOrderPlan;

/* Of one epoch. A plain value; may be copied. */
typedef struct PenOrder {
    PenOrderPlan plan;
    uint64_t epoch;
    uint32_t streams;       /* 0: all samples are mixed, or none */
    uint64_t full_blocks;   /* of K samples */
    uint64_t stream_blocks; /* full blocks of each stream */
    uint64_t body; /* positions of these; the samples behind them are dealt to all streams */
    PenPermutation samples; /* of a full shuffle */
    PenPermutation blocks;
    PenPermutation pair;         /* of the blocks of two streams, but for its key; of sticky */
    const PenBucketTable *table; /* positions are its places; NULL: there are no buckets */
} PenOrder;

int pen__order_check(const PenOrderPlan *plan, PenError *reterr); /* what the next one refuses */
int pen__order_init(PenOrder *ret, const PenOrderPlan *plan, uint64_t epoch, PenError *reterr);
/* The sample at a position below n. */
uint64_t pen__order_at(const PenOrder *o, uint64_t position);

/* "sequential", "random", "shuffle" or "sticky"; NULL for another number. */
const char *pen__order_name(int32_t kind);
bool pen__order_has_streams(int32_t kind);
/* How many streams this plan really has: 0 where all samples are mixed at once, because they fit
 * into the buffer, or where none are. */
uint32_t pen__order_streams(const PenOrderPlan *plan);
/* The default shuffle buffer, in samples, of a pack of so many bytes and samples. */
uint64_t pen__order_buffer(uint64_t bytes, uint64_t samples);
/* The least valid number of streams whose blocks have at least so many samples. */
uint32_t pen__streams_for(uint64_t samples, uint64_t block_samples);
/* Of stream p mod G, its number from left to right: streams with the same residue modulo 3 * 2^j
 * are next to each other. Lanes 2 * i and 2 * i + 1 are a pair, p mod G/2. */
uint32_t pen__stream_lane(uint32_t streams, uint64_t position);

#endif
