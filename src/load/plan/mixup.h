/* SPDX-License-Identifier: Apache-2.0 */
/* Images whose samples are mixed, and the targets that follow them. */
#ifndef PEN_LOAD_PLAN_MIXUP_H
#define PEN_LOAD_PLAN_MIXUP_H

#include "load/plan/plan.h"

/* When all fields are there. Fails where targets are missing, or a batch has no pairs. */
int pen__plan_mixup(PenLoadPlan *p, PenError *reterr);

#endif
