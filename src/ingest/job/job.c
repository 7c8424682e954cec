/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/job/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/job/settings.h"
#include "ingest/prepare/prepared.h"
#include "io/inner.h"
#include "manage/work.h"
#include "manage/work_home.h"

#define WHERE "ingest/job"

/* ---- opening --------------------------------------------------------------------------------- */

static int lock(void *ctx, PenError *reterr)
{
    PenJob *job = ctx;
    const PenIngestSettings *s = job->settings;
    if (pen__store_remote(job->store))
        return pen__home_lock(s->out, job->home, 1, &job->lock, reterr);
    if (!s->n_tasks)
        return pen__dir_lock(job->home, 1, &job->lock, reterr);
    char *plan = pen__work_path(job->home, "plan");
    if (!plan)
        return pen__fail_memory(reterr, WHERE, s->out);
    /* Tasks share the directory; only the one that makes the plan has it for itself. */
    int r = pen__file_exists(plan, reterr);
    if (r >= 0) {
        r = pen__dir_lock(job->home, r == PEN_OK, &job->lock, reterr);
        if (r == PEN_E_BUSY)
            pen__fail(
                reterr, r, WHERE,
                "%s: another process is writing here; make the plan with 'penstock plan' before "
                "the tasks start",
                s->out);
    }
    pen__free(plan);
    return r;
}

/* The pack that is there: wanted when appending, in the way otherwise. */
static int open_base(PenJob *job, PenError *reterr)
{
    const PenIngestSettings *s = job->settings;
    int r = pen__store_has(job->store, PEN_MANIFEST_NAME, reterr);
    if (r == 1 && !s->append)
        return pen__fail(
            reterr, PEN_E_EXISTS, WHERE,
            "%s: the pack already exists; choose another name, or --append to add to it", s->out);
    if (r == PEN_OK && s->append)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: no pack to append to; leave out --append to make one", s->out);
    if (r == 1)
        r = pen__pack_open_store(job->store, &job->base, reterr);
    if (r == PEN_OK && job->base && pen__manifest_is_mapped(pen__pack_manifest(job->base)))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: an in-place pack cannot be appended to; make an ordinary pack of it "
                         "with 'penstock copy', or index all files again",
                         s->out);
    return r;
}

static int open_carry(PenJob *job, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(job->base);
    if (info->n_samples % info->block_samples == 0)
        return PEN_OK;
    int r = pen__copy_block(job->base, info->n_blocks - 1, &job->carry, reterr);
    for (uint32_t i = 0; i < job->carry.n; i++)
        job->carry.samples[i].position = i;
    return r;
}

/* A run without a task would drop what tasks have completed. */
static int check_complete(const PenJob *job, const char *task, PenError *reterr)
{
    PenTaskDone done;
    const char *out = job->settings->out;
    char *folder = pen__work_path(job->home, task);
    int r =
        folder ? pen__task_done_load(folder, &done, reterr) : pen__fail_memory(reterr, WHERE, out);
    pen__free(folder);
    if (r != 1)
        return r == PEN_E_CORRUPT ? PEN_OK : r; /* a damaged record is no loss */
    return pen__fail(
        reterr, PEN_E_INVALID, WHERE,
        "%.300s: %s is complete and would be lost; run the others with --task and then "
        "'penstock finalise %.300s', or discard it with 'penstock gc --abandon %.300s'",
        out, task, out, out);
}

/* All tasks have to be of the same number, or they could never be joined. */
static int check_tasks(const PenJob *job, PenError *reterr)
{
    const PenIngestSettings *s = job->settings;
    PenNames names = {0};
    uint32_t task, n_tasks;
    int r = pen__tasks_list(job->shared, job->home, &names, reterr);
    for (uint64_t i = 0; i < names.n && r == PEN_OK; i++) {
        if (!pen__work_task(names.names[i], &task, &n_tasks) || n_tasks == s->n_tasks)
            continue;
        r = !s->n_tasks
                ? check_complete(job, names.names[i], reterr)
                : pen__fail(
                      reterr, PEN_E_INVALID, WHERE,
                      "%.300s: task %u of %u: the tasks run so far are of %u; use that number, "
                      "or run 'penstock gc --abandon %.300s' and start again",
                      s->out, s->task, s->n_tasks, n_tasks, s->out);
    }
    pen__names_free(&names);
    return r;
}

static int lock_task(void *ctx, PenError *reterr)
{
    PenJob *job = ctx;
    return pen__inner_lock(job->folder, &job->task_lock, reterr);
}

static int open_folder(PenJob *job, int plan_only, PenError *reterr)
{
    const PenIngestSettings *s = job->settings;
    char name[PEN_TASK_NAME_BYTES];
    snprintf(name, sizeof name, "%s", plan_only ? PEN_WORK_TASKS : "run");
    int r = s->n_tasks || !plan_only ? check_tasks(job, reterr) : PEN_OK;
    if (r < 0)
        return r;
    if (s->n_tasks)
        pen__work_task_name(s->task, s->n_tasks, name);
    job->folder = pen__work_path(job->home, name);
    if (!job->folder)
        return pen__fail_memory(reterr, WHERE, s->out);
    r = pen__inner_make(job->folder, pen__inner_root(job->folder), reterr);
    if (r == PEN_OK && s->n_tasks)
        r = pen__lock_in_time(&job->wait, lock_task, job, reterr);
    return r;
}

int pen__plan_schema(const PenPlan *plan, PenSchema *ret, PenError *reterr)
{
    const PenPlanInfo *info = pen__plan_info(plan);
    int r = pen__schema_init(ret, info->fields, info->n_fields, reterr);
    if (r < 0)
        return r;
    ret->has_entries = info->has_entries;
    ret->has_videos = info->has_videos;
    return info->class_field < 0 ? r
                                 : pen__schema_set_classes(ret, info->class_field, info->classes,
                                                           info->n_classes, reterr);
}

static int choose_part(PenJob *job, PenError *reterr)
{
    const PenIngestSettings *s = job->settings;
    uint64_t n = pen__plan_info(job->plan)->n_items;
    uint64_t part = n / 1000;
    job->max_bad = s->max_bad == UINT64_MAX ? (part > 10 ? part : 10) : s->max_bad;
    job->first = 0;
    job->end = n;
    if (!s->n_tasks)
        return PEN_OK;
    int r = pen__plan_split(job->plan, s->task, s->n_tasks, &job->first, reterr);
    return r < 0 ? r : pen__plan_split(job->plan, s->task + 1, s->n_tasks, &job->end, reterr);
}

/* Is there something in the work directory that the next run continues from? Of tasks in an object
 * store the finished shards: the plan is also in the store. */
static int has_state(const PenJob *job)
{
    const PenIngestSettings *s = job->settings;
    char name[80] = "plan";
    if (job->shared && !s->n_tasks)
        return 0;
    if (job->shared)
        snprintf(name, sizeof name, "task-%u-of-%u/shards", s->task, s->n_tasks);
    char *path = pen__work_path(job->home, name);
    int r = !path || pen__file_exists(path, NULL) != 0;
    pen__free(path);
    return r;
}

/* A run that fails before it has a plan leaves nothing behind, but what it has read of remote tars:
 * the next run does not read them again. */
static void leave_nothing(const PenJob *job)
{
    int alone = !job->settings->n_tasks || job->shared;
    if (job->home && job->lock.fd >= 0 && alone && !has_state(job) && !pen__job_has_summaries(job))
        pen__home_leave(job->home);
}

/* What several processes work on: each has a directory of its own. */
static int find_part(PenJob *job, PenError *reterr)
{
    const PenIngestSettings *s = job->settings;
    char part[PEN_TASK_NAME_BYTES] = "plan";
    if (s->in_place || s->append)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: in-place packs and --append cannot be split into tasks; use one run",
                         s->out);
    if (s->n_tasks)
        pen__work_task_name(s->task, s->n_tasks, part);
    int r = pen__home_find_part(s->out, s->work, part, &job->home, reterr);
    return r < 0 ? r : pen__tasks_open(s, &job->shared, reterr);
}

/* A task that is run again after the pack was finalised has nothing to do: PEN_END. Its sources may
 * be gone, so they are not compared. */
static int find_complete(PenJob *job, PenError *reterr)
{
    int r = pen__store_has(job->store, PEN_MANIFEST_NAME, reterr);
    if (r == 1)
        r = pen__pack_open_store(job->store, &job->base, reterr);
    return r == PEN_OK && job->base ? PEN_END : r;
}

static int open_place(PenJob *job, int plan_only, PenError *reterr)
{
    const PenIngestSettings *s = job->settings;
    int r = pen__store_open(s->out, s->remote, &job->store, reterr);
    if (r == PEN_OK)
        r = pen__store_check_kind(job->store, reterr);
    if (r == PEN_OK && s->n_tasks && !plan_only && !s->append && !s->in_place)
        r = find_complete(job, reterr);
    if (r != PEN_OK)
        return r;
    if (pen__store_remote(job->store) && (s->n_tasks || plan_only))
        r = find_part(job, reterr);
    else
        r = pen__home_find(s->out, s->work, &job->home, reterr);
    /* One of this machine is made when it is locked. */
    return r < 0 || pen__store_remote(job->store) ? r : pen__home_make(s->out, job->home, reterr);
}

/* Can all images be read where they are? */
static int check_in_place(const PenJob *job, PenError *reterr)
{
    const PenPlanInfo *info = pen__plan_info(job->plan);
    for (uint32_t f = 0; f < job->schema.n_fields; f++)
        if (job->schema.fields[f].type == PEN_TYPE_CLIP)
            return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                             "%s: field '%s': an in-place pack holds images, not clips; use "
                             "'penstock pack'",
                             job->settings->out, job->schema.fields[f].name);
    PenBuf scratch = {0};
    int r = PEN_OK;
    for (uint64_t i = 0; info->in_order && i < info->n_items && r == PEN_OK; i++) {
        PenItem item;
        r = pen__plan_item(job->plan, i, &item, &scratch, reterr);
        for (uint32_t f = 0; f < info->n_fields && r == PEN_OK; f++)
            if (item.parts[f].kind == PEN_PART_STREAM) {
                char name[PEN_INPUT_NAME_BYTES];
                pen__part_name(job->plan, &item.parts[f], name, sizeof name);
                r = pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                              "%s: the tar file is compressed, so its members cannot be read in "
                              "place; decompress it, or use 'penstock pack'",
                              name);
            }
    }
    pen__buf_free(&scratch);
    return r;
}

int pen__job_open(PenJob *job, const PenIngestSettings *settings, PenIngestResult *result,
                  int plan_only, PenError *reterr)
{
    *job = (PenJob){.settings = settings,
                    .result = result,
                    .lock = PEN_LOCK_NONE,
                    .task_lock = PEN_LOCK_NONE,
                    .schema = {.class_field = -1}};
    int r = pen__settings_check(settings, reterr);
    if (r < 0)
        return r;
    job->prepare = pen__settings_prepare(settings);
    job->wait = pen__lock_wait(settings);
    r = pen__places_new(settings->remote, &job->places, reterr);
    if (r == PEN_OK)
        r = open_place(job, plan_only, reterr);
    if (r == PEN_OK)
        r = pen__lock_in_time(&job->wait, lock, job, reterr);
    if (r == PEN_OK)
        r = open_base(job, reterr);
    if (r == PEN_OK) /* before a source is read */
        r = pen__store_check_writable(job->store, PEN_MANIFEST_NAME, reterr);
    if (r == PEN_OK && job->base)
        r = open_carry(job, reterr);
    if (r == PEN_OK)
        r = pen__job_open_plan(job, reterr);
    if (r == PEN_OK)
        r = open_folder(job, plan_only, reterr);
    if (r == PEN_OK)
        r = pen__plan_schema(job->plan, &job->schema, reterr);
    if (r == PEN_OK && settings->in_place)
        r = check_in_place(job, reterr);
    if (r == PEN_OK) {
        pen__plan_connect(job->plan, job->places, job->summaries.folder ? &job->summaries : NULL);
        r = choose_part(job, reterr);
    }
    if (r < 0) {
        leave_nothing(job);
        pen__job_close(job);
    }
    return r;
}

void pen__job_close(PenJob *job)
{
    pen__copied_free(&job->carry);
    pen_pack_close(&job->base);
    pen__plan_close(&job->plan);
    pen__places_free(&job->places);
    pen__schema_fini(&job->schema);
    pen__free(job->folder);
    pen__free((char *)job->summaries.folder);
    pen__free(job->home);
    pen__store_close(&job->shared);
    pen__store_close(&job->store);
    pen__bad_free(&job->bad);
    pen__dir_unlock(&job->task_lock);
    pen__dir_unlock(&job->lock);
    *job = (PenJob){.lock = PEN_LOCK_NONE, .task_lock = PEN_LOCK_NONE};
}
