/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of one bucket each. One walk through the order of an epoch hands every sample to its
 * bucket; B * G samples of one bucket are a group, which becomes G consecutive batches of B. G is
 * the number of ranks for which the order was made: all of them have the same bucket in a step.
 *
 * Batch c of a group has samples whose positions in the order are c mod G, so that a rank keeps to
 * its own lanes; what does not fit that way is dealt to the batches in turn. With one bucket, ranks
 * have the batches that they have without. Of a random order the groups are mixed; other orders
 * keep them in the order in which they fill up. Groups that are not full come last: what is missing
 * are repeated samples of the bucket, which only fill up. */
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

typedef struct PenBucketCounts {
    uint64_t n[PEN_MAX_BUCKETS]; /* samples of each bucket in an epoch */
} PenBucketCounts;

/* The bucket of sample i < n of those before they are mixed. */
uint32_t pen__bucket_of(const PenBucketOf *b, uint64_t epoch, uint64_t i);
void pen__bucket_count(const PenBucketOf *b, uint64_t epoch, PenBucketCounts *ret);
/* Places of an epoch: B * G for each group. PEN_E_LIMIT for more than a table can have. */
int pen__bucket_places(const PenBucketOf *b, const PenBucketCounts *counts, PenGrouping g,
                       bool drop_last, uint64_t *ret, PenError *reterr);
/* `order` is that of the epoch, without a table. */
int pen__bucket_table_new(const PenBucketOf *of, const PenOrder *order, PenGrouping g,
                          bool drop_last, PenBucketTable **ret, PenError *reterr);
void pen__bucket_table_free(PenBucketTable **table); /* accepts NULL */

#endif
