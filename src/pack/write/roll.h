/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence of samples into as many shards as it takes. Finished shards are taken over after an
 * interruption: the caller has noted them as they were finished, and says which of them still hold.
 */
#ifndef PEN_PACK_WRITE_ROLL_H
#define PEN_PACK_WRITE_ROLL_H

#include <stdbool.h>

#include "io/store.h"
#include "pack/format/manifest.h"
#include "pack/format/schema.h"
#include "pack/format/stored.h"

typedef struct PenRoll PenRoll;

typedef struct PenRollSettings {
    PenStore *store;       /* of the pack; has to outlive the roll */
    const char *part_path; /* where a shard is while it is being written */
    const PenSchema *schema;
    uint64_t block_samples, shard_bytes;
    uint8_t plan_id[32];
    uint64_t task, n_tasks;
    /* Samples at the end that do not fill a block become a shard of their own (the rest), to be
     * joined with other rests; else they are the short last block. */
    bool keep_rest;
    bool has_columns; /* shards get columns; part of what the plan's id is made from */
    /* A sample given to the roll stays in use until it is released. A full block waits for the
     * next sample, or with `keep_rest` until the next block is full as well. */
    void (*release)(void *ctx, const PenStoredSample *sample);
    /* Called before a shard gets its final name; may be NULL. */
    int (*before_commit)(void *ctx, PenError *reterr);
    /* Called when shard number `ordinal` is in its place and all positions below `end` are done;
     * may be NULL. */
    int (*finished)(void *ctx, uint64_t ordinal, const PenShardEntry *entry, uint64_t end,
                    PenError *reterr);
    /* May shard number `ordinal` be taken over? 1 yes, 0 no. Called first with `entry` NULL, then,
     * when the shard is there, with what was found. NULL: none may. */
    int (*resume)(void *ctx, uint64_t ordinal, const PenShardEntry *entry, uint64_t end,
                  PenError *reterr);
    void *ctx;
} PenRollSettings;

/* The path is copied; the schema has to outlive the roll. */
int pen__roll_open(const PenRollSettings *settings, PenRoll **ret, PenError *reterr);
/* Takes over the shards that are finished; the sequence goes on at *ret_position. */
int pen__roll_resume(PenRoll *r, uint64_t *ret_position, PenError *reterr);
/* Positions have to rise. The sample is the roll's from here on, also on failure. */
int pen__roll_add(PenRoll *r, const PenStoredSample *sample, PenError *reterr);
/* An input behind the last sample was left out. */
void pen__roll_skip(PenRoll *r);
/* Writes what is left. *ret_rest, which may be NULL, is the entry of the rest (n_blocks 0: none).
 */
int pen__roll_finish(PenRoll *r, PenShardEntry *ret_rest, PenError *reterr);
/* What has been written, in order, and its totals. */
const PenShardEntry *pen__roll_shards(const PenRoll *r, uint64_t *ret_n);
const PenPackStats *pen__roll_stats(const PenRoll *r);
/* Removes the shards it has written: for a pack that is given up. */
void pen__roll_remove(PenRoll *r);
void pen__roll_close(PenRoll **r); /* accepts NULL; what is not finished is dropped */

/* The id of a shard of that sequence. */
void pen__shard_id(const uint8_t plan_id[32], uint64_t task, uint64_t n_tasks, uint64_t ordinal,
                   uint8_t ret[PEN_ID_BYTES]);
#define PEN_ORDINAL_REST UINT64_MAX

/* Opens the shard `id` by itself: 1 there and whole, 0 not there. ret_plan_end may be NULL. */
int pen__shard_find(PenStore *store, const uint8_t id[PEN_ID_BYTES], PenShardEntry *ret,
                    PenPackStats *ret_stats, uint64_t *ret_plan_end, PenError *reterr);

#endif
