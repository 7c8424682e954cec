/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of a pack, real or not, and the prefixes that the names of its shards have. */
#ifndef PEN_SIM_PACK_H
#define PEN_SIM_PACK_H

#include <penstock/pack.h>

#include "sim/settings.h"

enum { PEN_SIM_PREFIXES = 256 };

typedef struct PenSimPack {
    PenPack *pack; /* NULL: all shards and blocks are alike */
    uint64_t n_samples, block_samples, n_blocks, n_shards, blocks_per_shard;
    uint64_t pack_bytes, payload_bytes;
    uint64_t block_bytes, largest_block; /* block_bytes: mean */
    uint64_t index_bytes;                /* of a block */
    double sample_bytes;                 /* with its part of the index */
    uint64_t manifest_bytes;
    uint32_t prefixes;
} PenSimPack;

int pen__sim_pack_init(PenSimPack *p, const PenSimSettings *s, PenError *reterr);
void pen__sim_pack_fini(PenSimPack *p);                                  /* a zeroed one is fine */
uint64_t pen__sim_pack_block_bytes(const PenSimPack *p, uint64_t block); /* mean of its shard */
uint64_t pen__sim_pack_shard(const PenSimPack *p, uint64_t block);
unsigned pen__sim_pack_prefix(const PenSimPack *p, uint64_t shard);

#endif
