/* SPDX-License-Identifier: Apache-2.0 */
/* From settings to a plan: they are checked, and what they leave open is chosen. */
#ifndef PEN_LOAD_PLAN_BUILDER_H
#define PEN_LOAD_PLAN_BUILDER_H

#include <penstock/mix.h>

#include "load/plan/plan.h"

/* On failure nothing is left to free. The plan holds a reference to the pack. */
int pen__load_plan_build(PenLoadPlan *p, PenPack *pack, const PenLoaderSettings *settings,
                         PenError *reterr);
/* The same for a mixture, with a reference to each pack. */
int pen__load_plan_build_mix(PenLoadPlan *p, const PenMixSettings *mix,
                             const PenLoaderSettings *settings, PenError *reterr);
/* How an epoch is cut into batches from position `start` on, which is step `step` of a token
 * budget. With buckets, positions are places. The caller is the only one. */
PenSplit pen__load_plan_split(const PenLoadPlan *p, uint64_t epoch, uint64_t start, uint64_t step);
void pen__load_plan_fini(PenLoadPlan *p); /* a zeroed one is fine */

#endif
