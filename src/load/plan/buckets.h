/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of several shapes: the fields of each bucket, and which bucket each sample is in. */
#ifndef PEN_LOAD_PLAN_BUCKETS_H
#define PEN_LOAD_PLAN_BUCKETS_H

#include "load/plan/plan.h"

/* In this order: the sizes of the settings, if there are any; the fields of every bucket but the
 * first, which are those of the plan with programs of other sizes; the samples of each bucket. */
int pen__plan_buckets_take(PenLoadPlan *p, PenError *reterr);
int pen__plan_buckets_fields(PenLoadPlan *p, PenError *reterr);
int pen__plan_buckets_assign(PenLoadPlan *p, PenError *reterr);
void pen__plan_buckets_free(PenLoadPlan *p); /* there may be none */

/* The bucket of sample i of an epoch, before they are mixed; there are buckets. */
uint32_t pen__plan_bucket_of(const PenLoadPlan *p, uint64_t epoch, uint64_t i);
/* Places of an epoch, batches of all ranks one after another. The caller is the only one. */
uint64_t pen__plan_places(const PenLoadPlan *p, uint64_t epoch);
int pen__plan_buckets_order(const PenLoadPlan *p, const PenOrder *order, PenBucketTable **ret,
                            PenError *reterr);

#endif
