/* SPDX-License-Identifier: Apache-2.0 */
/* A token budget: every step has one of several lengths, and batches of tokens / length samples. */
#ifndef PEN_LOAD_PLAN_TOKENS_H
#define PEN_LOAD_PLAN_TOKENS_H

#include "load/plan/plan.h"

/* In this order: the lengths of the settings, if there are any; the fields of each length. */
int pen__plan_tokens_take(PenLoadPlan *p, PenError *reterr);
int pen__plan_tokens_fields(PenLoadPlan *p, PenError *reterr);

#endif
