/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that are those of a batch's bucket: the word `bucket` in the place of a size. */
#ifndef PEN_OPS_PIPELINE_BUCKET_H
#define PEN_OPS_PIPELINE_BUCKET_H

#include <stdbool.h>

#include "ops/pipeline/spec.h"

/* The first parameter of the operation that is the size of a bucket; NULL: none. */
const PenParam *pen__bucket_param(const PenSpecOp *op);
bool pen__bucket_used(const PenSpecField *spec);
/* A copy of the operations with that size instead of the word; to be freed by pen__free. */
int pen__bucket_resolve(const PenSpecField *spec, uint32_t height, uint32_t width, PenSpecOp **ret,
                        PenError *reterr);

#endif
