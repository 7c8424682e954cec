/* SPDX-License-Identifier: Apache-2.0 */
/* Images whose size differs from sample to sample: a list of them, or one tensor that is padded to
 * the largest of the batch. Both have a further field with their sizes. */
#ifndef PEN_LOAD_PLAN_SIZES_H
#define PEN_LOAD_PLAN_SIZES_H

#include "load/plan/plan.h"

/* Sets up `to`, the last field of the plan, and adds the field for the sizes. Fields of one size
 * stay as they are. */
int pen__plan_add_sizes(PenLoadPlan *p, PenOutField *to, PenError *reterr);

/* Images as sequences of patches have two further fields: the number of patches down and across,
 * and the mask of those that belong to the image. This adds both, if `to`, the last field of the
 * plan, is one of patches. */
int pen__plan_add_grid(PenLoadPlan *p, PenOutField *to, PenError *reterr);
/* The mask of `f` has the length of its program. Both are of `fields`. */
void pen__plan_size_grid(PenOutField *fields, const PenOutField *f);

#endif
