/* SPDX-License-Identifier: Apache-2.0 */
/* What all tasks of a writer have in common: a small file or object, .work/plan, that the first
 * task writes. Its hash names the shards. */
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
    uint8_t id[32];
} PenWriterPlan;

/* The bytes of it; `name` is the name of the data. Sets plan->id. */
int pen__writer_plan_write(PenWriterPlan *plan, const char *name, PenBuf *ret, PenError *reterr);

/* The one of the pack in `store`: 1 there, 0 no plan or one of 'penstock plan'. */
int pen__writer_plan_load(PenStore *store, PenWriterPlan *ret, PenError *reterr);
/* Is the plan there a writer's? 1 yes, 0 no plan or one of 'penstock plan'. */
int pen__writer_plan_is_there(PenStore *store, PenError *reterr);
/* Has it these bytes? 1 yes, 0 no or no plan. */
int pen__writer_plan_is(PenStore *store, const PenBuf *plan, PenError *reterr);

#endif
