/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/job/writer_task.h"

#include <stdio.h>
#include <string.h>

#include "ingest/job/task_store.h"
#include "io/inner.h"
#include "manage/work.h"
#include "manage/work_home.h"
#include "pack/format/format.h"

#define WHERE "ingest/writer"

void pen__writer_record_name(const PenStore *store, uint32_t task, uint32_t n_tasks,
                             char ret[PEN_WRITER_RECORD_BYTES])
{
    char name[PEN_TASK_NAME_BYTES];
    pen__work_task_name(task, n_tasks, name);
    snprintf(ret, PEN_WRITER_RECORD_BYTES, PEN_WORK_NAME "/%s%s", name,
             pen__store_remote(store) ? "" : "/done");
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int is_remote(const PenWriterTask *t)
{
    return pen__store_remote(t->store) != NULL;
}

static int check_free(const PenWriterTask *t, PenError *reterr)
{
    int r = pen__store_has(t->store, PEN_MANIFEST_NAME, reterr);
    if (r == 1)
        return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                         "%s: the pack already exists; choose another name", t->path);
    return r;
}

static int fail_other(const PenWriterTask *t, PenError *reterr)
{
    int r = pen__writer_plan_is_there(t->store, reterr);
    if (r < 0)
        return r;
    if (r == 1)
        return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                         "%.300s: the tasks that have begun here have another schema, other "
                         "settings or another number of tasks; use the same for all tasks, or "
                         "discard what these have written with 'penstock gc --abandon %.300s'",
                         t->path, t->path);
    return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                     "%.300s: a plan or an unfinished run of 'penstock pack' exists here; finish "
                     "it, or discard it with 'penstock gc --abandon %.300s'",
                     t->path, t->path);
}

/* The plan that is there has to be this one: 1 it is, 0 there is none. */
static int has_plan(PenWriterTask *t, PenError *reterr)
{
    int r = pen__store_has(t->store, PEN_SHARED_PLAN, reterr);
    if (r != 1)
        return r;
    r = pen__writer_plan_adopt(t->store, &t->plan, reterr);
    return r == PEN_OK ? fail_other(t, reterr) : r;
}

int pen__writer_task_check(void *task, PenError *reterr)
{
    const PenWriterTask *t = task;
    int r = is_remote(t) ? pen__writer_plan_is(t->store, &t->plan, reterr) : 1;
    if (r == 1 && is_remote(t)) { /* finalise may have been killed before it removed the plan */
        r = pen__store_has(t->store, PEN_MANIFEST_NAME, reterr);
        r = r < 0 ? r : !r;
    }
    if (r == PEN_OK)
        return pen__fail(reterr, PEN_E_CHANGED, WHERE,
                         "%s: the pack has been published, or its tasks have been discarded, while "
                         "task %u was running; nothing more is written",
                         t->path, t->task);
    return r < 0 ? r : PEN_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A task of a process that was taken for dead must not leave a plan behind that nobody removes:
 * the manifest may have appeared before the plan did. */
static int open_remote(PenWriterTask *t, PenError *reterr)
{
    int r = check_free(t, reterr);
    if (r == PEN_OK)
        r = pen__writer_plan_draw(&t->plan, reterr);
    if (r < 0)
        return r;
    r = pen__store_put(t->store, "", PEN_SHARED_PLAN, &t->plan, PEN_IF_ABSENT, NULL, reterr);
    int is_new = r == PEN_OK;
    if (r == PEN_E_EXISTS || r == PEN_E_CHANGED) {
        r = has_plan(t, reterr);
        r = r == PEN_OK ? pen__writer_task_check(t, reterr) : PEN_MIN(r, PEN_OK);
    }
    if (r == PEN_OK)
        r = check_free(t, reterr);
    if (r == PEN_E_EXISTS && is_new)
        pen__store_remove(t->store, PEN_SHARED_PLAN, NULL);
    return r;
}

static int lock_folder(PenWriterTask *t, PenError *reterr)
{
    char name[PEN_TASK_NAME_BYTES];
    pen__work_task_name(t->task, t->n_tasks, name);
    t->folder = pen__work_path(t->path, name);
    int r = t->folder ? pen__inner_make(t->folder, pen__inner_root(t->folder), reterr)
                      : pen__fail_memory(reterr, WHERE, t->path);
    return r < 0 ? r : pen__inner_lock(t->folder, &t->task_lock, reterr);
}

/* Several tasks may do this at the same time, mostly with the same bytes. If these differ, the last
 * one stays, and finalise finds the record of another plan. */
static int store_plan(const PenWriterTask *t, PenError *reterr)
{
    char *part = pen__path_join(t->folder, "plan.part");
    int r =
        part ? pen__store_put(t->store, part, PEN_SHARED_PLAN, &t->plan, PEN_IF_ANY, NULL, reterr)
             : pen__fail_memory(reterr, WHERE, t->path);
    pen__free(part);
    return r;
}

static int open_directory(PenWriterTask *t, PenError *reterr)
{
    int r = check_free(t, reterr); /* nothing is written into a pack that is complete */
    if (r == PEN_OK)
        r = pen__home_lock(t->path, t->path, 0, &t->lock, reterr);
    if (r == PEN_OK)
        r = check_free(t, reterr);
    int has = r == PEN_OK ? has_plan(t, reterr) : r;
    if (has >= 0)
        r = lock_folder(t, reterr);
    else
        return has;
    return r == PEN_OK && !has ? store_plan(t, reterr) : r;
}

int pen__writer_task_open(PenWriterTask *t, PenWriterPlan *plan, const char *name, PenError *reterr)
{
    if (t->task >= t->n_tasks)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "task %u of %u: expected a number below %u",
                         t->task, t->n_tasks, t->n_tasks);
    uint32_t most = t->n_tasks == PEN_TASKS_OPEN ? t->task + 1 : t->n_tasks;
    if (most > PEN_MAX_TASKS)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: expected at most %d tasks, found %u",
                         t->path, (int)PEN_MAX_TASKS, most);
    plan->n_tasks = t->n_tasks;
    int r = pen__writer_plan_write(plan, name, &t->plan, reterr);
    memcpy(t->plan_id, plan->id, sizeof t->plan_id);
    if (r < 0)
        return r;
    r = is_remote(t) ? open_remote(t, reterr) : open_directory(t, reterr);
    if (r == PEN_OK)
        pen__writer_plan_job(&t->plan, t->job);
    return r;
}

char *pen__writer_task_part(const PenWriterTask *t)
{
    return t->folder ? pen__path_join(t->folder, "shard.part") : pen__strdup("");
}

/* ---- ending ---------------------------------------------------------------------------------- */

static int put_record(const PenWriterTask *t, const PenTaskRecord *record, PenError *reterr)
{
    char name[PEN_WRITER_RECORD_BYTES];
    char *part = t->folder ? pen__path_join(t->folder, "done.part") : pen__strdup("");
    pen__writer_record_name(t->store, t->task, t->n_tasks, name);
    int r = part ? pen__task_record_put(t->store, part, name, record, reterr)
                 : pen__fail_memory(reterr, WHERE, t->path);
    pen__free(part);
    return r;
}

int pen__writer_task_finish(PenWriterTask *t, PenRoll *roll, uint64_t *ret_n_samples,
                            PenError *reterr)
{
    uint64_t n;
    PenShardEntry rest;
    PenTaskRecord record = {.shards = NULL};
    int r = pen__roll_finish(roll, &rest, reterr);
    if (r < 0)
        return r;
    const PenShardEntry *shards = pen__roll_shards(roll, &n);
    record.done = pen__task_done(shards, n, &rest, t->job);
    r = pen__task_record_make(shards, &rest, &record, reterr);
    if (r == PEN_OK)
        r = pen__writer_task_check(t, reterr);
    if (r == PEN_OK)
        r = put_record(t, &record, reterr);
    *ret_n_samples = record.done.n_samples;
    pen__task_record_free(&record);
    return r;
}

void pen__writer_task_close(PenWriterTask *t)
{
    pen__buf_free(&t->plan);
    pen__free(t->folder);
    pen__dir_unlock(&t->task_lock);
    pen__dir_unlock(&t->lock);
}
