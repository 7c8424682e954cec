/* SPDX-License-Identifier: Apache-2.0 */
/* How a remote pack is read, from plain numbers: the shares of the memory, and how much of a block
 * one request has. The loader and the simulation use the same code. */
#ifndef PEN_LOAD_REMOTE_SHARES_H
#define PEN_LOAD_REMOTE_SHARES_H

#include <stdbool.h>
#include <stdint.h>

/* Which part of the memory is for what. */
typedef struct PenShares {
    uint64_t total;
    uint64_t ring, read, scratch, index;
    uint64_t scratch_each; /* a thread's own; more is taken from what is left of `scratch` */
    uint64_t keep;         /* of `index`: what the pack caches for all its users */
    uint64_t blocks;       /* of `index`, of a remote pack: what is prefetched */
} PenShares;

/* In bytes. */
typedef struct PenRemoteNeeds {
    uint64_t slot;          /* of a batch */
    uint64_t ring, rest;    /* batches, and all but blocks: without these nothing works */
    uint64_t largest_block; /* in memory */
    uint64_t indexes;       /* in memory, of all blocks */
    uint32_t blocks_beside; /* blocks that are not prefetched, at the same time */
} PenRemoteNeeds;

/* Fills in the shares; `total` is set. Returns 0, or if that is too little how much is needed. */
uint64_t pen__remote_shares(const PenRemoteNeeds *needs, PenShares *shares);
/* The ring that `slot` has where there is enough memory. */
uint64_t pen__remote_ring(const PenRemoteNeeds *needs);

/* How a remote pack is read: as much of a block with one request as memory allows. */
typedef struct PenFetchPlan {
    uint32_t fetchers;        /* requests at once; 0: the pack is not remote */
    uint32_t fetchers_wanted; /* and with more memory */
    uint64_t horizon;         /* see PenSchedulePlan */
    bool begins_apart;
    uint64_t resident_bytes;
    int32_t unit;           /* PEN_FETCH_BLOCKS, ... */
    uint64_t memory_wanted; /* of the settings, to read entire blocks */
} PenFetchPlan;

typedef struct PenRemoteJob {
    int32_t order; /* PEN_ORDER_* */
    uint32_t world;
    double streams; /* of one rank; 0: all samples are mixed, or none */
    uint32_t batch; /* samples of one, if those of a stream are not evenly apart in it; else 0 */
    uint64_t block_samples; /* of all packs: */
    uint64_t n_blocks, n_samples, total_bytes;
    uint64_t limit_bytes; /* for what is prefetched */
    uint64_t ring_bytes;  /* with enough memory */
    uint64_t rest_bytes;  /* the least for all but batches and blocks */
    bool has_cache;
    bool is_set; /* the number of requests at once */
} PenRemoteJob;

/* `fetchers` and `fetchers_wanted` are set. */
void pen__remote_choose(const PenRemoteJob *job, PenFetchPlan *fetch);

/* What n samples of a block have in memory, about; of all of them an upper bound. */
uint64_t pen__remote_part_bytes(uint64_t largest_block, double sample, uint32_t n, bool all);

#endif
