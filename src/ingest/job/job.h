/* SPDX-License-Identifier: Apache-2.0 */
/* A run of packing: the directory locked, the pack that is appended to, the plan. */
#ifndef PEN_INGEST_JOB_JOB_H
#define PEN_INGEST_JOB_JOB_H

#include "ingest/job/bad.h"
#include "ingest/job/task_store.h"
#include "ingest/job/wait.h"
#include "ingest/plan/plan.h"
#include "ingest/prepare/prepare.h"
#include "io/dir.h"
#include "io/places.h"
#include "pack/reader/reader.h"
#include "pack/write/copy.h"
#include "pack/write/roll.h"

typedef struct PenJob {
    const PenIngestSettings *settings;
    PenIngestResult *result;
    PenLock lock, task_lock;
    PenLockWait wait;
    PenPack *base;   /* append: the pack as it is; else NULL */
    PenCopied carry; /* its short last block, to be written anew */
    PenPlan *plan;
    PenSchema schema;
    PenPrepareSettings prepare;
    PenPlaces *places;      /* of remote sources */
    PenSummaries summaries; /* of remote tars, for an in-place pack; folder NULL: there are none */
    PenStore *store;        /* of the pack */
    PenStore *shared;       /* what tasks share in an object store; NULL: nothing */
    char *home;             /* where .work is: the pack's directory, or one of this machine */
    char *folder;           /* .work/run, or .work/task-I-of-N */
    PenBadList bad;
    uint64_t max_bad;
    uint64_t first, end; /* of the plan: this job's part */
    int resumed;         /* it continues a run that was interrupted */
} PenJob;

/* Checks, locks, makes the plan or takes up the one that is there. On failure closes what it
 * opened. `plan_only`: the plan is for tasks. */
int pen__job_open(PenJob *job, const PenIngestSettings *settings, PenIngestResult *result,
                  int plan_only, PenError *reterr);
void pen__job_close(PenJob *job);

/* Says where the summaries of remote tars are, and how they are made. */
int pen__job_summaries_init(PenJob *job, const char *settings_text, PenError *reterr);
/* Has one been made? 1 yes, 0 no. */
int pen__job_has_summaries(const PenJob *job);

/* The steps of it: the plan. */
int pen__job_open_plan(PenJob *job, PenError *reterr);
/* Removes all of an unfinished run: its shards, its plan. Needs home and store; the plan, when it
 * can be read. */
int pen__job_give_up(PenJob *job, PenError *reterr);

/* Writes the job's part of the plan. The rest is kept apart for a task. */
int pen__job_pack(PenJob *job, PenRoll **ret_roll, PenShardEntry *ret_rest, PenError *reterr);

/* The plan's fields and classes. */
int pen__plan_schema(const PenPlan *plan, PenSchema *ret, PenError *reterr);

/* What tasks leave behind in a directory: .work/task-I-of-N/done. */
int pen__task_done_store(const char *folder, const PenTaskDone *done, PenError *reterr);
/* 1 there, 0 not. */
int pen__task_done_load(const char *folder, PenTaskDone *ret, PenError *reterr);

/* Fills in what the shards take on disk. */
int pen__result_sizes(PenStore *store, const PenManifest *m, PenIngestResult *ret,
                      PenError *reterr);

#endif
