/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of several shapes, of buckets or of lengths: the fields of each. */
#ifndef PEN_LOAD_PLAN_SHAPES_H
#define PEN_LOAD_PLAN_SHAPES_H

#include "load/plan/plan.h"

/* Has an operation of the field the size of a bucket, or the length of a step? */
bool pen__plan_has_shapes(const PenLoadPlan *p, const PenOutField *f);
/* For every shape the plan's fields, with programs of its own where that is so. */
int pen__plan_shapes_new(PenLoadPlan *p, uint32_t n, PenError *reterr);
void pen__plan_shapes_free(PenLoadPlan *p); /* before the plan's own fields; there may be none */

#endif
