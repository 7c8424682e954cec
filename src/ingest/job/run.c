/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls that pack: plan, run. */
#include <inttypes.h>
#include <string.h>

#include "base/sys.h"
#include "ingest/job/job.h"
#include "ingest/job/join.h"
#include "ingest/job/settings.h"
#include "manage/gc.h"
#include "manage/work.h"
#include "manage/work_home.h"
#include "pack/write/publish.h"

#define WHERE "ingest/run"

int pen_ingest_plan(const PenIngestSettings *settings, PenIngestResult *ret, PenError *reterr)
{
    PenJob job;
    PenIngestSettings own = pen__ingest_settings(settings);
    PenIngestResult result = {0};
    int r = pen__job_open(&job, &own, &result, 1, reterr);
    if (r < 0)
        return r;
    const PenPlanInfo *info = pen__plan_info(job.plan);
    result.n_samples = info->n_items;
    result.n_known = info->n_known;
    result.block_samples = info->block_samples;
    result.stats.source_bytes = info->source_bytes;
    pen__result_classes(&result, info->classes, info->n_classes);
    if (job.shared) {
        r = pen__tasks_put_plan(job.shared, &own, job.home, job.plan, reterr);
        pen__plan_close(&job.plan);
        pen__home_leave(job.home);
    }
    pen__job_close(&job);
    if (r == PEN_OK && ret)
        *ret = result;
    return r;
}

/* The list of broken inputs, to where people find it. */
static int write_report(const PenJob *job, PenError *reterr)
{
    const PenIngestSettings *s = job->settings;
    if (!job->bad.n)
        return PEN_OK;
    return pen__report_store(s->out, s->bad_report, &job->bad, reterr);
}

static int publish(PenJob *job, PenRoll *roll, PenError *reterr)
{
    const PenPlanInfo *info = pen__plan_info(job->plan);
    PenJoin join = {.store = job->store,
                    .home = job->home,
                    .schema = &job->schema,
                    .settings = info->settings,
                    .block_samples = info->block_samples};
    uint64_t n;
    const PenShardEntry *shards = pen__roll_shards(roll, &n);
    int r = pen__settings_report(
        job->settings, (PenIngestProgress){.stage = "publish", .bad = job->bad.n}, reterr);
    if (r == PEN_OK && job->base)
        r = pen__join_base(&join, job->base, reterr);
    if (r == PEN_OK)
        r = pen__join_add(&join, shards, n, pen__roll_stats(roll), reterr);
    if (r == PEN_OK)
        r = write_report(job, reterr);
    if (r == PEN_OK)
        r = pen__join_publish(&join, job->result, reterr);
    pen__join_fini(&join);
    return r;
}

/* The result of a task; its stats and the bytes of its shards are there already. */
static void fill_task(const PenJob *job, const PenTaskDone *done)
{
    job->result->n_samples = done->n_samples;
    job->result->n_shards = done->n_shards;
    job->result->block_samples = pen__plan_info(job->plan)->block_samples;
    pen__result_missing(job->result, job->schema.fields, job->schema.n_fields);
    pen__result_classes(job->result, (const char *const *)job->schema.classes,
                        job->schema.n_classes);
}

static int put_record(const PenJob *job, const PenTaskDone *done, const PenShardEntry *shards,
                      const PenShardEntry *rest, PenError *reterr)
{
    PenTaskRecord record = {.done = *done, .bad = job->bad};
    char name[PEN_TASK_NAME_BYTES];
    pen__work_task_name(job->settings->task, job->settings->n_tasks, name);
    int r = pen__task_record_make(shards, rest, &record, reterr);
    if (r == PEN_OK)
        r = pen__task_record_put(job->shared, "", name, &record, reterr);
    record.bad = (PenBadList){.n = 0}; /* the job's */
    pen__task_record_free(&record);
    return r;
}

static int end_task(PenJob *job, PenRoll *roll, const PenShardEntry *rest, PenError *reterr)
{
    uint64_t n;
    const PenShardEntry *shards = pen__roll_shards(roll, &n);
    PenTaskDone done = pen__task_done(shards, n, rest, pen__plan_info(job->plan)->inputs);
    job->result->pack_bytes = rest->n_blocks ? pen__shard_stored(rest) : 0;
    for (uint64_t i = 0; i < n; i++)
        job->result->pack_bytes += pen__shard_stored(&shards[i]);
    job->result->stats = *pen__roll_stats(roll);
    fill_task(job, &done);
    return job->shared ? put_record(job, &done, shards, rest, reterr)
                       : pen__task_done_store(job->folder, &done, reterr);
}

/* ---- a task that is complete already --------------------------------------------------------- */

static int add_found(const PenJob *job, const PenTaskShard *shard, uint64_t ordinal,
                     PenError *reterr)
{
    PenShardEntry entry;
    PenPackStats stats;
    uint8_t id[PEN_ID_BYTES];
    pen__shard_id(pen__plan_info(job->plan)->id, job->settings->task, job->settings->n_tasks,
                  ordinal, id);
    int r = pen__shard_find(job->store, id, &entry, &stats, NULL, reterr);
    r = pen__error_accept(r, PEN_E_CORRUPT, reterr);
    r = pen__error_accept(r, PEN_E_FORMAT, reterr);
    if (r <= 0 || !pen__task_shard_is(shard, &entry))
        return r < 0 ? r : 0;
    pen__stats_add(&job->result->stats, &stats);
    job->result->pack_bytes += pen__shard_stored(&entry);
    return 1;
}

/* Has another run of this task, perhaps on another machine, written all of it by this plan? 1 yes,
 * 0 no. */
static int is_complete(const PenJob *job, PenError *reterr)
{
    PenTaskRecord record;
    char name[PEN_TASK_NAME_BYTES];
    pen__work_task_name(job->settings->task, job->settings->n_tasks, name);
    int r = pen__task_record_get(job->shared, name, &record, reterr);
    r = pen__error_accept(r, PEN_E_CORRUPT, reterr); /* it is written again */
    if (r <= 0)
        return r;
    const PenTaskDone *done = &record.done;
    r = memcmp(done->inputs, pen__plan_info(job->plan)->inputs, sizeof done->inputs) == 0;
    for (uint64_t i = 0; i < done->n_shards && r == 1; i++)
        r = add_found(job, &record.shards[i], i, reterr);
    if (r == 1 && done->n_rest)
        r = add_found(job, &record.shards[done->n_shards], PEN_ORDINAL_REST, reterr);
    if (r == 1) {
        job->result->n_added = job->result->n_resumed = done->n_samples;
        job->result->n_bad = record.bad.n;
        fill_task(job, done);
    } else { /* what was counted so far */
        job->result->stats = (PenPackStats){0};
        job->result->pack_bytes = 0;
    }
    pen__task_record_free(&record);
    return r;
}

/* The work is done; a directory of its own goes with it. */
static void leave(const PenJob *job)
{
    PenGcResult gc;
    if (pen__store_remote(job->store))
        pen__home_leave(job->home);
    else if (job->resumed && !job->base) /* shards of the earlier plan, the folders they were in */
        pen__gc_locked(job->store, job->home, 0, &gc, NULL);
    else
        pen__work_remove(job->home, NULL, NULL, NULL);
}

static int fill_base(PenJob *job, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(job->base);
    PenIngestResult *ret = job->result;
    ret->n_samples = info->n_samples;
    ret->n_shards = info->n_shards;
    ret->block_samples = info->block_samples;
    ret->stats = info->stats;
    pen__result_missing(ret, info->fields, info->n_fields);
    pen__result_classes(ret, info->classes, info->n_classes);
    ret->pack_bytes = info->total_bytes;
    ret->published = 1;
    memcpy(ret->id, info->id, sizeof ret->id);
    return pen__result_sizes(job->store, pen__pack_manifest(job->base), ret, reterr);
}

static int nothing_to_add(PenJob *job, PenError *reterr)
{
    int r = fill_base(job, reterr);
    pen__plan_close(&job->plan);
    leave(job);
    return r;
}

static int pack(PenJob *job, PenError *reterr)
{
    PenRoll *roll = NULL;
    PenShardEntry rest;
    int r = pen__job_pack(job, &roll, &rest, reterr);
    if (r == PEN_OK && job->settings->n_tasks)
        r = end_task(job, roll, &rest, reterr);
    else if (r == PEN_OK && job->result->n_added == 0 && !job->base)
        r = pen__fail(
            reterr, PEN_E_DECODE, WHERE,
            "%s: every input is broken; no pack was written: see the list of broken inputs",
            job->settings->out);
    else if (r == PEN_OK)
        r = publish(job, roll, reterr);
    pen__roll_close(&roll);
    if (r < 0 && job->settings->skip_bad && !job->settings->n_tasks)
        write_report(job, NULL); /* whoever has to mend the inputs needs it now */
    pen__plan_close(&job->plan); /* some file systems keep a folder while a file in it is open */
    /* The pack is there: what cannot be removed now, the next run or gc removes. */
    if (r == PEN_OK && (!job->settings->n_tasks || job->shared))
        leave(job);
    return r;
}

static int pack_task(PenJob *job, PenError *reterr)
{
    int r = is_complete(job, reterr);
    if (r == 0)
        return pack(job, reterr);
    pen__plan_close(&job->plan);
    if (r == 1)
        leave(job);
    return r < 0 ? r : PEN_OK;
}

static int run(PenJob *job, PenError *reterr)
{
    const PenPlanInfo *info = pen__plan_info(job->plan);
    job->result->n_known = info->n_known;
    if (job->shared)
        return pack_task(job, reterr);
    return job->base && info->n_items == 0 ? nothing_to_add(job, reterr) : pack(job, reterr);
}

int pen_ingest_run(const PenIngestSettings *settings, PenIngestResult *ret, PenError *reterr)
{
    PenJob job;
    PenIngestSettings own = pen__ingest_settings(settings);
    PenIngestResult result = {0};
    int r = pen__job_open(&job, &own, &result, 0, reterr);
    if (r < 0)
        return r;
    r = r == PEN_END ? fill_base(&job, reterr) : run(&job, reterr);
    pen__job_close(&job);
    if (r == PEN_OK && ret)
        *ret = result;
    return r;
}
