/* SPDX-License-Identifier: Apache-2.0 */
/* A writer that writes one task of a larger pack.
 *
 * All runs of a task give its shards the same names. The record of completion has their digests, so
 * finalise never joins shards of two runs that wrote different bytes. In a directory a lock keeps
 * two runs apart. In an object store there are no locks. */
#ifndef PEN_INGEST_JOB_WRITER_TASK_H
#define PEN_INGEST_JOB_WRITER_TASK_H

#include "ingest/job/writer_plan.h"
#include "io/dir.h"
#include "pack/write/roll.h"

typedef struct PenWriterTask {
    uint32_t task, n_tasks;
    const char *path; /* of the pack; both are the writer's */
    PenStore *store;
    PenBuf plan;         /* the bytes of it */
    uint8_t plan_id[32]; /* PenWriterPlan.id and .job */
    uint8_t job[32];
    PenLock lock, task_lock; /* in a directory */
    char *folder;            /* .work/task-I-of-N, in a directory */
} PenWriterTask;

/* Begins the task, or begins it anew. `plan` has the settings of the writer and its schema, which
 * stays the writer's. */
int pen__writer_task_open(PenWriterTask *t, PenWriterPlan *plan, const char *name,
                          PenError *reterr);
/* For the roll: may a shard be put in its place? In a store only while the plan is there: without
 * it, the pack has been published, or the tasks have been discarded. */
int pen__writer_task_check(void *task, PenError *reterr);
/* Where a shard is while it is being written; to be freed. */
char *pen__writer_task_part(const PenWriterTask *t);
/* Writes what the roll still has, and the record. */
int pen__writer_task_finish(PenWriterTask *t, PenRoll *roll, uint64_t *ret_n_samples,
                            PenError *reterr);
/* What was written stays: another run of the task may have written the same. Zeroed, with locks
 * that are not set, it is closed already. */
void pen__writer_task_close(PenWriterTask *t);

/* The name of a task's record in the store of the pack. */
enum { PEN_WRITER_RECORD_BYTES = 80 };
void pen__writer_record_name(const PenStore *store, uint32_t task, uint32_t n_tasks,
                             char ret[PEN_WRITER_RECORD_BYTES]);

#endif
