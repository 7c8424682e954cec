/* SPDX-License-Identifier: Apache-2.0 */
/* What it takes to fetch a part of a block: an entire block comes with one request; samples of it
 * with one, and one more for the block's index, which is kept. A node with a cache fetches entire
 * blocks, once. */
#ifndef PEN_SIM_PART_H
#define PEN_SIM_PART_H

#include "load/prefetch/schedule.h"
#include "load/remote/shares.h"
#include "sim/pack.h"

/* Indexes of blocks that a rank keeps: number + 1, each in the place that its number has. */
typedef struct PenSimIndexes {
    uint64_t *kept, n;
} PenSimIndexes;

int pen__sim_indexes_init(PenSimIndexes *x, const PenSimPack *pack, uint64_t bytes,
                          PenError *reterr);
void pen__sim_indexes_fini(PenSimIndexes *x);

/* Caches of all nodes. A cache keeps what was fetched first. */
typedef struct PenSimCachePlan {
    uint64_t capacity; /* blocks; 0: there is none */
    uint64_t stored;   /* when the epoch begins */
    double share;      /* that these are of the blocks that the node needs */
    uint64_t seed;
} PenSimCachePlan;

/* Of one node. */
typedef struct PenSimCache {
    PenSimCachePlan plan;
    uint32_t node;
    uint8_t *added; /* one bit for each block; NULL: there is no cache */
    uint64_t n;
} PenSimCache;

int pen__sim_cache_init(PenSimCache *c, const PenSimCachePlan *plan, const PenSimPack *pack,
                        uint32_t node, PenError *reterr);
void pen__sim_cache_fini(PenSimCache *c);

/* Bytes to request; 0: no request. */
typedef struct PenSimCost {
    uint64_t index, part;
    uint64_t memory; /* of what has arrived */
    bool is_block;
} PenSimCost;

/* Adds what is fetched to the indexes and to the cache. */
PenSimCost pen__sim_fetch(const PenSimPack *pack, PenSimIndexes *x, PenSimCache *c,
                          const PenBlockPart *part);

/* ---- when a rank fetches what: of a job whose last batches are dropped if they are not full ----
 */

PenSplit pen__sim_split(const PenOrder *order, uint32_t batch, uint32_t world, uint32_t rank);
/* `limit_bytes`: of parts in memory. The pack has to stay. */
PenSchedulePlan pen__sim_schedule(const PenSimPack *pack, const PenFetchPlan *fetch,
                                  uint64_t limit_bytes);

#endif
