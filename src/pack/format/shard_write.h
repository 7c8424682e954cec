/* SPDX-License-Identifier: Apache-2.0 */
/* Writing one shard: blocks in, a complete and synced file at its final place out. */
#ifndef PEN_PACK_FORMAT_SHARD_WRITE_H
#define PEN_PACK_FORMAT_SHARD_WRITE_H

#include "io/store.h"
#include "pack/format/manifest.h"
#include "pack/format/schema.h"
#include "pack/format/stored.h"

typedef struct PenShardWriter PenShardWriter;

typedef struct PenShardPlan { /* what part of the plan is in it */
    uint64_t first, end;
    uint64_t n_bad;
} PenShardPlan;

typedef struct PenShardSettings {
    PenStore *store; /* has to outlive the writer, like the schema */
    const char *part_path;
    const PenSchema *schema;
    const uint8_t *id; /* is copied */
    uint64_t block_samples;
    bool has_columns;
} PenShardSettings;

int pen__shard_create(const PenShardSettings *settings, PenShardWriter **ret, PenError *reterr);
/* A block; n is block_samples, or less for the last one. 1: the shard now has `end_bytes` bytes,
 * and this was its last block. 0: the block is not written, since it may turn out to be the last
 * one, which is different; the samples have to stay until the next call of any function here. */
int pen__shard_add(PenShardWriter *w, const PenStoredSample *const *samples, uint32_t n,
                   uint64_t end_bytes, PenError *reterr);
/* Writes the block that was added and not written: another one will follow. */
int pen__shard_flush(PenShardWriter *w, PenError *reterr);
uint64_t pen__shard_bytes(const PenShardWriter *w);
/* Ends the file and gives it its name. The digest is that of its entry. */
int pen__shard_commit(PenShardWriter **w, const PenShardPlan *plan, uint8_t ret_digest[16],
                      PenError *reterr);
void pen__shard_abort(PenShardWriter **w); /* accepts NULL */

#endif
