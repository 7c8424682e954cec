/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged fields whose rows follow an image, or rows of another field. */
#ifndef PEN_LOAD_PLAN_FOLLOW_H
#define PEN_LOAD_PLAN_FOLLOW_H

#include "load/plan/plan.h"

/* When all fields of the pipeline are there; adds those for the numbers of rows that are kept. */
int pen__plan_follow(PenLoadPlan *p, PenError *reterr);

#endif
