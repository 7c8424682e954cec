/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of a loader: one pack, or those of a mixture. */
#ifndef PEN_LOAD_PLAN_SOURCES_H
#define PEN_LOAD_PLAN_SOURCES_H

#include <penstock/mix.h>

#include "load/plan/plan.h"

/* ---- steps of building a plan, in this order ---- */

/* Takes references to the packs. */
int pen__sources_open(PenLoadPlan *p, const PenMixSettings *mix, PenError *reterr);
/* What the packs are together; of a plan without a mixture, too. */
void pen__sources_measure(PenLoadPlan *p);
/* The mixture, and the number of samples in an epoch. */
int pen__sources_mix(PenLoadPlan *p, const PenMixSettings *mix, PenError *reterr);
/* The field for the numbers of sources, behind those that the pipeline names. */
int pen__sources_add_field(PenLoadPlan *p, const PenMixSettings *mix, PenError *reterr);
/* The fields of each source, when those of the plan have their places in a slot. */
int pen__sources_copy_fields(PenLoadPlan *p, PenError *reterr);
void pen__sources_fini(PenLoadPlan *p);

/* ---- of every loader ---- */

/* Memory that packs keep for indexes and blocks: `bytes` for all of them together. */
int pen__sources_keep(const PenLoadPlan *p, uint64_t bytes, PenError *reterr);
void pen__sources_trim(const PenLoadPlan *p);

/* ---- of a mixture ---- */

/* A pass begins: with the lock of lock.h held. The lanes may be others since the one before. */
void pen__sources_begin(const PenLoadPlan *p);
/* The source of a block that is prefetched, whose numbers count through all sources. */
const PenMixSource *pen__sources_of_block(const PenLoadPlan *p, uint64_t block);

#endif
