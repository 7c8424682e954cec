/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of one bucket each. One walk through the order of an epoch hands every sample to its
 * bucket; as many samples of one bucket as a global batch has are a group, which becomes the
 * batches of all ranks in one step. So which samples are in a group depends on the size of the
 * global batch alone; the groups are then cut into the parts of the ranks, sorted by their streams.
 *
 * Where all samples are mixed at once, the groups are mixed too; other orders keep them in the
 * order in which they fill up. Groups that are not full come last: in the places that are left are
 * repeated samples of the bucket, which pad the batches, or are not loaded if these are short. */
#ifndef PEN_LOAD_EPOCH_BUCKETS_H
#define PEN_LOAD_EPOCH_BUCKETS_H

#include "load/epoch/order.h"
#include "load/epoch/weights.h"

enum { PEN_MAX_BUCKETS = 255 };
#define PEN_BUCKET_SAMPLES_MOST (UINT64_C(1) << 31)

/* Which bucket each sample of an epoch is in. */
typedef struct PenBucketOf {
    const uint8_t *of_entry;   /* of the samples chosen */
    const PenWeights *weights; /* of these; NULL: each is in an epoch once */
    uint32_t n_buckets;
    uint64_t n; /* samples of an epoch */
    uint64_t seed;
} PenBucketOf;

/* Of what the batches of a step are made. */
typedef struct PenBucketSteps {
    uint64_t group;     /* samples of a global batch */
    uint32_t world;     /* parts that it is cut into */
    int32_t last_batch; /* PEN_LAST_* */
    bool has_pairs;     /* neighbours stay together, for any number of ranks */
} PenBucketSteps;

typedef struct PenBucketCounts {
    uint64_t n[PEN_MAX_BUCKETS]; /* samples of each bucket in an epoch */
} PenBucketCounts;

/* The bucket of sample i < n of those before they are mixed. */
uint32_t pen__bucket_of(const PenBucketOf *b, uint64_t epoch, uint64_t i);
void pen__bucket_count(const PenBucketOf *b, uint64_t epoch, PenBucketCounts *ret);
/* Places of an epoch: those of all groups. PEN_E_LIMIT for more than a table can have. */
int pen__bucket_places(const PenBucketOf *b, const PenBucketCounts *counts,
                       const PenBucketSteps *steps, uint64_t *ret, PenError *reterr);
/* `order` is that of the epoch, without a table. */
int pen__bucket_table_new(const PenBucketOf *of, const PenOrder *order, const PenBucketSteps *steps,
                          PenBucketTable **ret, PenError *reterr);
void pen__bucket_table_free(PenBucketTable **table); /* accepts NULL */

#endif
