/* SPDX-License-Identifier: Apache-2.0 */
/* What all tasks of a writer have in common: a small file or object, .work/plan, that the first
 * task writes. Its hash names the shards. In an object store it also has random bytes, by which a
 * job differs from one with the same settings that was discarded before. */
#ifndef PEN_INGEST_JOB_WRITER_PLAN_H
#define PEN_INGEST_JOB_WRITER_PLAN_H

#include "ingest/job/settings.h"
#include "io/store.h"
#include "pack/format/schema.h"

typedef struct PenWriterPlan {
    uint32_t n_tasks; /* or PEN_TASKS_OPEN */
    uint64_t block_samples, shard_bytes;
    char settings[PEN_SETTINGS_TEXT_BYTES];
    PenSchema schema; /* of a loaded plan: to be released by whoever loads it */
    uint8_t id[32];   /* without the random bytes: names follow from it */
    uint8_t job[32];  /* with them: records have it */
} PenWriterPlan;

/* The bytes of it; `name` is the name of the data. Sets plan->id. The random bytes are zeros. */
int pen__writer_plan_write(PenWriterPlan *plan, const char *name, PenBuf *ret, PenError *reterr);

/* The one of the pack in `store`: 1 there, 0 no plan or one of 'penstock plan'. */
int pen__writer_plan_load(PenStore *store, PenWriterPlan *ret, PenError *reterr);
/* Is the plan there a writer's? 1 yes, 0 no plan or one of 'penstock plan'. */
int pen__writer_plan_is_there(PenStore *store, PenError *reterr);
/* Draws the random bytes of a plan. */
int pen__writer_plan_draw(PenBuf *plan, PenError *reterr);
/* If the one there differs from `plan` in the random bytes alone, 1, and `plan` gets those. 0: it
 * is another one, or there is none. */
int pen__writer_plan_adopt(PenStore *store, PenBuf *plan, PenError *reterr);
/* What PenWriterPlan.job is of a plan with these bytes. */
void pen__writer_plan_job(const PenBuf *plan, uint8_t ret[32]);
/* Has it these bytes? 1 yes, 0 no or no plan. */
int pen__writer_plan_is(PenStore *store, const PenBuf *plan, PenError *reterr);

#endif
