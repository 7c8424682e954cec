/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a job's part: first what is carried over from the pack that is appended to, then the
 * plan's items. Positions count both, so that an interrupted run finds its place by one number. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/job/assemble.h"
#include "ingest/job/job.h"
#include "ingest/job/resume.h"
#include "ingest/job/settings.h"

#define WHERE "ingest/pack"

typedef struct Writing {
    PenJob *job;
    PenRoll *roll;
    PenResume resume;
    char *bad_path, *bad_part;
    uint64_t done, done_bytes;
} Writing;

static int is_of(const PenCopied *c, const PenStoredSample *sample)
{
    return c->n && sample >= c->samples && sample < c->samples + c->n;
}

/* Samples that were copied belong to who copied them, all others are ours. */
static void release(void *ctx, const PenStoredSample *sample)
{
    const Writing *w = ctx;
    const PenResume *re = &w->resume;
    if (!is_of(&w->job->carry, sample) && !is_of(&re->copied, sample) && !is_of(&re->last, sample))
        pen__prepared_free((PenPrepared *)sample);
}

static int may_resume(void *ctx, uint64_t ordinal, const PenShardEntry *entry, uint64_t end,
                      PenError *reterr)
{
    (void)reterr;
    return pen__resume_may(&((Writing *)ctx)->resume, ordinal, entry, end);
}

static int finished(void *ctx, uint64_t ordinal, const PenShardEntry *entry, uint64_t end,
                    PenError *reterr)
{
    return pen__resume_note(&((Writing *)ctx)->resume, ordinal, entry, end, reterr);
}

/* One more JPEG without an index, for this reason. */
static void count_reason(PenIngestResult *ret, const char *why)
{
    uint32_t i = 0;
    while (i < ret->n_no_index && strcmp(ret->no_index[i].why, why) != 0)
        i++;
    if (i == PEN_NO_INDEX_REASONS)
        return;
    snprintf(ret->no_index[i].why, sizeof ret->no_index[i].why, "%s", why);
    ret->no_index[i].n++;
    ret->n_no_index = PEN_MAX(ret->n_no_index, i + 1);
}

static int take(void *ctx, PenPrepared *sample, PenError *reterr)
{
    Writing *w = ctx;
    PenJob *job = w->job;
    w->done++;
    w->done_bytes += sample->source_bytes;
    job->result->source_disk_bytes += sample->disk_bytes;
    for (uint32_t i = 0; i < sample->n_images; i++)
        if (sample->images[i].no_index)
            count_reason(job->result, sample->images[i].no_index);
    sample->sample.position += job->carry.n - job->first;
    return pen__roll_add(w->roll, &sample->sample, reterr);
}

static int note_bad(Writing *w, uint64_t position, const PenError *error, PenError *reterr)
{
    PenJob *job = w->job;
    PenItem item;
    PenBuf scratch = {0};
    int r = pen__plan_item(job->plan, position, &item, &scratch, reterr);
    if (r == PEN_OK)
        r = pen__bad_add(&job->bad, position - job->first + job->carry.n, item.key, item.key_bytes,
                         error, reterr);
    pen__buf_free(&scratch);
    return r;
}

static int bad(void *ctx, uint64_t position, const PenError *error, PenError *reterr)
{
    Writing *w = ctx;
    PenJob *job = w->job;
    if (!job->settings->skip_bad) {
        if (reterr)
            *reterr = *error;
        return error->status;
    }
    if (job->bad.n >= job->max_bad) {
        if (reterr)
            *reterr = *error;
        pen__error_prefix(reterr, "more than %" PRIu64 " broken inputs, the last of them",
                          job->max_bad);
        return error->status;
    }
    pen__roll_skip(w->roll);
    return note_bad(w, position, error, reterr);
}

static int tick(void *ctx, PenError *reterr)
{
    const Writing *w = ctx;
    const PenJob *job = w->job;
    return pen__settings_report(job->settings,
                                (PenIngestProgress){.stage = "pack",
                                                    .done = job->result->n_resumed + w->done,
                                                    .total = job->end - job->first,
                                                    .done_bytes = w->done_bytes,
                                                    .bad = job->bad.n},
                                reterr);
}

/* What was left out before a shard ends has to be known when that shard is found finished. */
static int before_commit(void *ctx, PenError *reterr)
{
    Writing *w = ctx;
    if (!w->job->bad.n)
        return PEN_OK;
    return pen__bad_store(&w->job->bad, w->bad_part, w->bad_path, reterr);
}

static int open_roll(Writing *w, PenError *reterr)
{
    PenJob *job = w->job;
    const PenIngestSettings *s = job->settings;
    const PenPlanInfo *info = pen__plan_info(job->plan);
    char *part = pen__path_join(job->folder, "shard.part");
    w->bad_path = pen__path_join(job->folder, "bad");
    w->bad_part = pen__path_join(job->folder, "bad.part");
    if (!part || !w->bad_path || !w->bad_part) {
        pen__free(part);
        return pen__fail_memory(reterr, WHERE, s->out);
    }
    PenRollSettings roll = {.store = job->store,
                            .part_path = part,
                            .schema = &job->schema,
                            .block_samples = info->block_samples,
                            .shard_bytes = s->shard_bytes,
                            .task = s->task,
                            .n_tasks = s->n_tasks,
                            .keep_rest = s->n_tasks != 0,
                            .has_columns = pen__settings_have_columns(info->settings),
                            .release = release,
                            .before_commit = before_commit,
                            .finished = finished,
                            .resume = may_resume,
                            .ctx = w};
    memcpy(roll.plan_id, info->id, sizeof roll.plan_id);
    int r = pen__roll_open(&roll, &w->roll, reterr);
    pen__free(part);
    return r;
}

static int add_carry(Writing *w, uint64_t from, PenError *reterr)
{
    int r = PEN_OK;
    for (uint64_t i = from; i < w->job->carry.n && r == PEN_OK; i++)
        r = pen__roll_add(w->roll, &w->job->carry.samples[i], reterr);
    return r;
}

static int write_all(Writing *w, PenShardEntry *ret_rest, PenError *reterr)
{
    PenJob *job = w->job;
    uint64_t carry = job->carry.n;
    uint64_t from = 0;
    int r = pen__resume_open(&w->resume, job, reterr);
    if (r == PEN_OK)
        r = pen__roll_resume(w->roll, &from, reterr);
    if (r == PEN_OK)
        r = pen__resume_copy(&w->resume, w->roll, &from, reterr);
    if (r == PEN_OK)
        r = pen__bad_load(&job->bad, w->bad_path, from, reterr);
    if (r == PEN_OK && from < carry)
        r = add_carry(w, from, reterr);
    if (r < 0)
        return r;
    uint64_t position = job->first + (from > carry ? from - carry : 0);
    job->result->n_resumed = position - job->first - job->bad.n;
    PenAssembly a = {.plan = job->plan,
                     .places = job->places,
                     .schema = &job->schema,
                     .prepare = &job->prepare,
                     .threads = job->settings->threads,
                     .first = position,
                     .end = job->end,
                     .take = take,
                     .bad = bad,
                     .tick = tick,
                     .ctx = w};
    if (position < job->end)
        r = pen__assemble(&a, reterr);
    if (r == PEN_OK)
        r = tick(w, reterr);
    if (r == PEN_OK)
        r = pen__roll_finish(w->roll, ret_rest, reterr);
    if (r == PEN_OK)
        r = before_commit(w, reterr); /* broken inputs at the very end */
    if (r == PEN_OK)
        r = pen__plan_check_shared(job->plan, reterr); /* they were open all the time */
    return r;
}

int pen__job_pack(PenJob *job, PenRoll **ret_roll, PenShardEntry *ret_rest, PenError *reterr)
{
    Writing w = {.job = job};
    int r = open_roll(&w, reterr);
    if (r == PEN_OK)
        r = write_all(&w, ret_rest, reterr);
    if (r == PEN_OK) {
        job->result->n_added = job->result->n_resumed + w.done;
        job->result->n_bad = job->bad.n;
        *ret_roll = w.roll;
    } else {
        pen__roll_close(&w.roll);
    }
    pen__resume_close(&w.resume);
    pen__free(w.bad_path);
    pen__free(w.bad_part);
    return r;
}
