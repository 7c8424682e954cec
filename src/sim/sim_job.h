/* SPDX-License-Identifier: Apache-2.0 */
/* A job that is simulated: what its parts share. */
#ifndef PEN_SIM_SIM_JOB_H
#define PEN_SIM_SIM_JOB_H

#include "load/ahead.h"
#include "net/policy.h"
#include "sim/sim_store.h"

/* Sizes of a pack, real or not. */
typedef struct PenSimPack {
    PenPack *pack; /* NULL: all shards and blocks are alike */
    uint64_t n_samples, block_samples, n_blocks, n_shards, blocks_per_shard;
    uint64_t pack_bytes, block_bytes, largest_block; /* block_bytes: mean */
    uint64_t manifest_bytes;
    uint32_t prefixes;
} PenSimPack;

int pen__sim_pack_init(PenSimPack *p, const PenSimSettings *s, PenError *reterr);
uint64_t pen__sim_pack_shard(const PenSimPack *p, uint64_t block);
unsigned pen__sim_pack_prefix(const PenSimPack *p, uint64_t shard);

/* Which blocks a node has in its cache when the second epoch begins: those it fetched first. */
typedef struct PenSimCache {
    uint64_t blocks; /* that fit; 0: there is none */
    PenOrder first;  /* the order of the first epoch */
    uint32_t nodes, ranks;
} PenSimCache;

bool pen__sim_cache_has(const PenSimCache *c, uint64_t block, uint32_t node);

typedef struct PenSimJob {
    const PenSimSettings *s;
    PenSimPack pack;
    PenSimStore store;
    PenSimNet *net;
    PenSimCache cache;
    PenOrder order; /* of the epoch that is simulated */
    uint64_t steps; /* batches of a rank */
    uint64_t room;
    uint64_t start_ns;
    struct PenSimRank *ranks;
    PenSimLink **links; /* of the nodes */
    uint64_t n_ranks, n_built;
    int r; /* of the first thing that went wrong */
    PenError err;
} PenSimJob;

#endif
