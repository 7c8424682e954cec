/* SPDX-License-Identifier: Apache-2.0 */
/* A shard opened for reading: its tail is read and checked, its blocks can be found. */
#ifndef PEN_PACK_FORMAT_SHARD_READ_H
#define PEN_PACK_FORMAT_SHARD_READ_H

#include "io/source.h"
#include "pack/format/block_read.h"
#include "pack/format/manifest.h"

typedef struct PenShard {
    PenSource *source;
    PenShardEntry entry; /* as the file itself says: blocks_used and samples_used are all it has */
    uint64_t n_samples, block_samples;
    uint64_t keys_offset, tail_offset;
    uint32_t keys_crc;
    uint64_t plan_first, plan_end, n_bad;
    uint8_t *tail; /* begins with the block table */
} PenShard;

/* Opens the file of the shard `id`. `expected` (may be NULL) is the manifest's entry, which it has
 * to fit. On success the shard owns `source`, else the caller keeps it. */
int pen__shard_open(PenShard *ret, PenSource *source, const uint8_t *id,
                    const PenShardEntry *expected, PenError *reterr);
void pen__shard_close(PenShard *s);

void pen__shard_stats(const PenShard *s, PenPackStats *ret);
uint64_t pen__shard_stat(const PenShard *s, uint32_t number); /* PEN_STAT_*; 0: it has none */
PenBlockEntry pen__shard_block(const PenShard *s, uint64_t block);

/* The sorted key hashes (12 bytes each), read and checked; the caller's to pen__free. */
int pen__shard_keys(PenShard *s, uint8_t **ret, PenError *reterr);

/* The checked index of a block in a buffer of its own. */
int pen__shard_index(PenShard *s, const PenSchema *schema, uint64_t block, uint8_t **ret_data,
                     PenBlockView *ret, PenError *reterr);

#endif
