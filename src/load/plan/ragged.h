/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged fields in a batch: as values and offsets, or padded to one size with a mask. */
#ifndef PEN_LOAD_PLAN_RAGGED_H
#define PEN_LOAD_PLAN_RAGGED_H

#include "load/plan/plan.h"
#include "ops/pipeline/spec.h"

/* Sets up `to`, the last field of the plan, and adds the field for the mask if it is padded. */
int pen__plan_add_ragged(PenLoadPlan *p, PenOutField *to, const PenField *stored,
                         const PenSpecField *spec, PenError *reterr);
/* Adds the field that says which of n rows, or frames, are of the sample. */
int pen__plan_add_mask(PenLoadPlan *p, const PenOutField *of, uint32_t n, uint32_t *ret,
                       PenError *reterr);
/* A field that counts from the frame of a sample needs samples that are frames. */
int pen__plan_check_frames(const PenLoadPlan *p, const char *name, PenError *reterr);

#endif
