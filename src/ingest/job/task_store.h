/* SPDX-License-Identifier: Apache-2.0 */
/* What the tasks of a pack in an object store share, below NAME.pen/.work: the plan, and a record
 * of each task that is complete. A task fetches only its own part of the plan.
 *
 * plan           a small object that names the plan, written once under a condition
 * plan-HASH      the plan file
 * task-I-of-N    the record of a complete task
 *
 * All runs of a task write the same bytes under the same names, so none has to know of another. */
#ifndef PEN_INGEST_JOB_TASK_STORE_H
#define PEN_INGEST_JOB_TASK_STORE_H

#include "ingest/job/bad.h"
#include "ingest/job/settings.h"
#include "ingest/plan/plan.h"
#include "io/dir.h"
#include "io/store.h"
#include "pack/format/manifest.h"

/* The store at NAME.pen/.work. */
int pen__tasks_open(const PenIngestSettings *settings, PenStore **ret, PenError *reterr);

/* Uploads the plan of `home` and what its sources are. PEN_E_EXISTS when there is another plan. */
int pen__tasks_put_plan(PenStore *work, const PenIngestSettings *settings, const char *home,
                        const PenPlan *plan, PenError *reterr);
/* Opens it where it is; `ret_sources` gets what its sources are. `out` is the pack, for messages.
 * PEN_E_NOT_FOUND when there is no plan. */
int pen__tasks_open_plan(PenStore *work, const char *out, PenBuf *ret_sources, PenPlan **ret,
                         PenError *reterr);
/* The names of what tasks left, of which pen__work_task knows the numbers: the objects in `work`,
 * or when that is NULL the files in .work of `home`. */
int pen__tasks_list(PenStore *work, const char *home, PenNames *ret, PenError *reterr);

/* The names of tasks that anybody left there may have any number. */
enum { PEN_MAX_TASKS = 1000000 };

/* What a task leaves: .work/task-I-of-N/done in a directory, a record in an object store. */
typedef struct PenTaskDone {
    uint64_t n_shards, n_samples, n_rest;
    uint8_t inputs[32]; /* of the plan that it was run with */
} PenTaskDone;

typedef struct PenTaskShard { /* as PenShardEntry has it */
    uint8_t digest[16];
    uint64_t bytes;
} PenTaskShard;

/* Nobody keeps two runs of a task apart. The record says which shards are its own, and has the
 * broken inputs that it left out, so that it is complete or not there. */
typedef struct PenTaskRecord {
    PenTaskDone done;
    PenTaskShard *shards; /* done.n_shards, and one more for the rest when there is one */
    PenBadList bad;
} PenTaskRecord;

/* What the entries of a task's shards say; `rest` has n_blocks 0 when there is none. */
int pen__task_record_make(const PenShardEntry *shards, const PenShardEntry *rest,
                          PenTaskRecord *record, PenError *reterr);
/* The counts of these shards. */
PenTaskDone pen__task_done(const PenShardEntry *shards, uint64_t n, const PenShardEntry *rest,
                           const uint8_t inputs[32]);
bool pen__task_shard_is(const PenTaskShard *shard, const PenShardEntry *entry);
/* Replaces the one that is there. In a directory it is written to `part_path` first. */
int pen__task_record_put(PenStore *store, const char *part_path, const char *name,
                         const PenTaskRecord *record, PenError *reterr);
/* 1 there, 0 not. */
int pen__task_record_get(PenStore *store, const char *name, PenTaskRecord *ret, PenError *reterr);
void pen__task_record_free(PenTaskRecord *record);

#endif
