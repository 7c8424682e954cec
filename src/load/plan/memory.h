/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a slot, and the shares of the memory. */
#ifndef PEN_LOAD_PLAN_MEMORY_H
#define PEN_LOAD_PLAN_MEMORY_H

#include "load/plan/plan.h"

/* Needs fields and numbers of threads. PEN_E_LIMIT, with the least memory that would do, when the
 * memory of the settings is too small. */
int pen__plan_memory_share(PenLoadPlan *p, PenError *reterr);

/* How a remote pack is read. The order is fixed; memory decides how much of a block one request
 * has, and so how many requests there are. Needs the order and the shares. */
void pen__plan_fetching_choose(PenLoadPlan *p);

#endif
