/* SPDX-License-Identifier: Apache-2.0 */
/* Fields whose rows follow an image (boxes, points), or another field (keep). */
#ifndef PEN_OPS_PIPELINE_FOLLOW_H
#define PEN_OPS_PIPELINE_FOLLOW_H

#include <stdbool.h>

#include "ops/pipeline/spec.h"
#include "ops/sample/follow.h"

typedef struct PenFollowSpec {
    const PenSpecOp *moves; /* boxes or points; NULL: none */
    const PenSpecOp *keeps; /* NULL: none */
    uint32_t n_ops;         /* so many of the field's operations are these */
} PenFollowSpec;

/* A second one of either, or in the wrong order, counts no more. */
PenFollowSpec pen__follow_spec(const PenSpecField *spec);

/* What the operation `moves` does to rows whose stored form `ret` has already. */
int pen__follow_rule(const PenFollowSpec *spec, const char *field, PenFollowRule *ret,
                     PenError *reterr);
/* The image that it follows; NULL: the only one. */
const char *pen__follow_image(const PenSpecOp *moves);
bool pen__follow_wants_kept(const PenSpecOp *moves);

#endif
