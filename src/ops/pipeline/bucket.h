/* SPDX-License-Identifier: Apache-2.0 */
/* What differs from batch to batch: the size of its bucket, which the word `bucket` stands for, and
 * the length of its step, `tokens`. */
#ifndef PEN_OPS_PIPELINE_BUCKET_H
#define PEN_OPS_PIPELINE_BUCKET_H

#include <stdbool.h>

#include "ops/pipeline/spec.h"

typedef struct PenBatchShape { /* 0: there are no buckets, no lengths */
    uint32_t height, width;
    uint32_t length;
} PenBatchShape;

/* The first parameter of the operation that is the size of a bucket; NULL: none. */
const PenParam *pen__bucket_param(const PenSpecOp *op);
bool pen__bucket_used(const PenSpecField *spec); /* either of both words */
/* A copy of the operations with these numbers instead of the words; to be freed by pen__free. */
int pen__bucket_resolve(const PenSpecField *spec, const PenBatchShape *shape, PenSpecOp **ret,
                        PenError *reterr);

#endif
