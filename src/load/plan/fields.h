/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a batch: those that the pipeline names, and their programs. */
#ifndef PEN_LOAD_PLAN_FIELDS_H
#define PEN_LOAD_PLAN_FIELDS_H

#include "load/plan/plan.h"

/* Fills in spec, text, warning and fields from the pack and the settings. */
int pen__plan_fields_choose(PenLoadPlan *p, PenError *reterr);

#endif
