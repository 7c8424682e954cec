/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a run. A run that continues another scans its sources again: what has changed in them
 * since is planned anew. Tasks take the plan as it is: it is what they have in common. */
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "ingest/job/finished.h"
#include "ingest/job/job.h"
#include "ingest/job/join.h"
#include "ingest/job/settings.h"
#include "ingest/job/writer_plan.h"
#include "io/inner.h"
#include "io/sink.h"
#include "io/source.h"
#include "manage/gc.h"
#include "manage/work.h"

#define WHERE "ingest/job"
/* A plan in an object store is not replaced: tasks of other machines may be using it. */
#define PLAN_AGAIN(job)                                                                            \
    ((job)->shared ? "run 'penstock gc --abandon', then 'penstock plan' and every task again"      \
                   : "run 'penstock plan' again, then every task")

/* ---- the sources a run was started with ------------------------------------------------------ */

/* They are not in the pack (it must not depend on where its input lay), so they are noted beside
 * the plan. */
static int sources_text(const PenIngestSettings *s, PenBuf *out)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < s->n_sources && r == PEN_OK; i++) {
        r = pen__buf_add(out, s->sources[i], strlen(s->sources[i]));
        if (r == PEN_OK)
            r = pen__buf_add(out, "\n", 1);
    }
    if (r == PEN_OK && s->root) {
        r = pen__buf_add(out, "root ", 5);
        if (r == PEN_OK)
            r = pen__buf_add(out, s->root, strlen(s->root));
        if (r == PEN_OK)
            r = pen__buf_add(out, "\n", 1);
    }
    if (r == PEN_OK && s->allow_outside)
        r = pen__buf_add(out, "anywhere\n", 9);
    if (r == PEN_OK && s->kind) {
        char kind[] = {'k', 'i', 'n', 'd', ' ', (char)('0' + s->kind), '\n'};
        r = pen__buf_add(out, kind, sizeof kind);
    }
    for (uint32_t i = 0; i < s->n_exclude && r == PEN_OK; i++) {
        r = pen__buf_add(out, "exclude ", 8);
        if (r == PEN_OK)
            r = pen__buf_add(out, s->exclude[i], strlen(s->exclude[i]));
        if (r == PEN_OK)
            r = pen__buf_add(out, "\n", 1);
    }
    if (r == PEN_OK && s->classes_from) {
        r = pen__buf_add(out, "classes from ", 13);
        if (r == PEN_OK)
            r = pen__buf_add(out, s->classes_from, strlen(s->classes_from));
    }
    return r;
}

static int store_sources(const PenJob *job, PenError *reterr)
{
    const PenIngestSettings *s = job->settings;
    PenBuf text = {0};
    char *part = pen__work_path(job->home, "sources.part");
    char *path = pen__work_path(job->home, "sources");
    int r = part && path && sources_text(s, &text) == PEN_OK
                ? PEN_OK
                : pen__fail_memory(reterr, WHERE, s->out);
    if (r == PEN_OK)
        r = pen__file_store(part, path, text.data, text.bytes, reterr);
    pen__buf_free(&text);
    pen__free(part);
    pen__free(path);
    return r;
}

/* Are these the sources of this run? 1 yes, 0 no. */
static int are_sources(const PenIngestSettings *s, const PenBuf *noted, PenError *reterr)
{
    PenBuf text = {0};
    int r = sources_text(s, &text) == PEN_OK ? PEN_OK : pen__fail_memory(reterr, WHERE, s->out);
    if (r == PEN_OK)
        r = text.bytes == noted->bytes &&
            (text.bytes == 0 || memcmp(text.data, noted->data, text.bytes) == 0);
    pen__buf_free(&text);
    return r;
}

static int same_sources(const PenJob *job, PenError *reterr)
{
    PenBuf noted = {0};
    char *path = pen__work_path(job->home, "sources");
    int r = path ? pen__file_load(path, 1ull << 30, &noted, reterr)
                 : pen__fail_memory(reterr, WHERE, job->settings->out);
    if (r == PEN_OK)
        r = are_sources(job->settings, &noted, reterr);
    pen__buf_free(&noted);
    pen__free(path);
    return r;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int key_known(void *ctx, const void *key, size_t key_bytes, PenError *reterr)
{
    return pen__keyset_has(ctx, key, key_bytes, reterr);
}

static int make_plan(PenJob *job, const char *path, const char *text, PenError *reterr)
{
    const PenIngestSettings *s = job->settings;
    const PenManifest *base = job->base ? pen__pack_manifest(job->base) : NULL;
    PenPack *classes = NULL;
    PenKeySet known = {.pack = NULL};
    int r = pen__settings_report(job->settings,
                                 (PenIngestProgress){.stage = "list", .bad = job->bad.n}, reterr);
    if (r == PEN_OK && job->base)
        r = pen__keyset_load(&known, job->base, reterr);
    if (r == PEN_OK && s->classes_from)
        r = pen_pack_open(s->classes_from, s->remote, &classes, reterr);
    if (r == PEN_OK) {
        PenPlanRequest request = {.settings = s,
                                  .settings_text = text,
                                  .base = job->base ? pen_pack_info(job->base) : NULL,
                                  .has_entries = base && base->schema.has_entries,
                                  .makes_entries = pen__settings_entries(s),
                                  .has_videos = base && base->schema.has_videos,
                                  .classes_from = classes ? pen_pack_info(classes) : NULL,
                                  .known = job->base ? key_known : NULL,
                                  .known_ctx = &known,
                                  .places = job->places,
                                  .summaries = job->summaries.folder ? &job->summaries : NULL,
                                  .ret_ignored = &job->result->n_ignored};
        r = store_sources(job, reterr);
        if (r == PEN_OK)
            r = pen__plan_make(&request, path, reterr);
    }
    pen__keyset_free(&known);
    pen_pack_close(&classes);
    return r;
}

/* Has anything been written by the plan that is there? 1 yes, 0 no. */
static int has_begun(const PenJob *job, PenError *reterr)
{
    PenShardEntry entry;
    uint8_t id[PEN_ID_BYTES];
    pen__shard_id(pen__plan_info(job->plan)->id, 0, 0, 0, id);
    int r = pen__shard_find(job->store, id, &entry, NULL, NULL, reterr);
    if (r == PEN_E_CORRUPT || r == PEN_E_FORMAT)
        return 1; /* damaged, but written */
    return r ? r : pen__work_has_tasks(job->home, reterr);
}

/* Was the plan made with these settings? */
static bool has_settings(const PenJob *job, const char *text)
{
    return strcmp(pen__plan_info(job->plan)->settings, text) == 0;
}

/* Does the plan that is there belong to this run? 1 yes; 0 no, and nobody needs it: it is left over
 * from a run that has published, or that ended before it had written anything. */
static int plan_fits(PenJob *job, const char *text, PenError *reterr)
{
    static const uint8_t none[16] = {0};
    const PenPlanInfo *info = pen__plan_info(job->plan);
    const uint8_t *base = job->base ? pen_pack_info(job->base)->id : none;
    if (memcmp(info->base, base, sizeof none) != 0)
        return 0;
    int r = same_sources(job, reterr);
    if (r == 1)
        r = has_settings(job, text);
    if (r)
        return r;
    r = has_begun(job, reterr);
    if (r <= 0)
        return r;
    const char *out = job->settings->out;
    int has_tasks = pen__work_has_tasks(job->home, reterr);
    if (has_tasks < 0)
        return has_tasks;
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%.300s: an interrupted run with other sources or settings exists here; run "
                     "that command again, or discard it with 'penstock gc %s%.300s'",
                     out, has_tasks ? "--abandon " : "", out);
}

/* ---- a plan in place of another -------------------------------------------------------------- */

static int remove_shard(const PenJob *job, uint64_t task, uint64_t n_tasks, uint64_t ordinal,
                        PenError *reterr)
{
    PenFinished s = {.end = 0};
    pen__shard_id(pen__plan_info(job->plan)->id, task, n_tasks, ordinal, s.id);
    return pen__finished_discard(&(PenFinishedList){&s, 1, 1}, 0, job->store, reterr);
}

/* The shards with the plan's names from the first on that the list does not have: one that was in
 * its place when the run ended and not listed yet; all, when the list is lost. */
static int remove_unlisted(const PenJob *job, uint64_t task, uint64_t n_tasks,
                           const PenFinishedList *list, PenError *reterr)
{
    const uint8_t *plan = pen__plan_info(job->plan)->id;
    uint8_t id[PEN_ID_BYTES];
    char name[PEN_SHARD_NAME_BYTES];
    uint64_t i = 0;
    int r = 1;
    for (; i < list->n; i++) {
        pen__shard_id(plan, task, n_tasks, i, id);
        if (memcmp(id, list->shards[i].id, sizeof id) != 0)
            break;
    }
    while (r == 1) {
        r = remove_shard(job, task, n_tasks, i++, reterr);
        pen__shard_id(plan, task, n_tasks, i, id);
        pen__shard_name(id, name);
        if (r == PEN_OK)
            r = pen__store_has(job->store, name, reterr);
    }
    return r;
}

/* The shards of the run or task that has this folder: all of them, or only those that its list does
 * not have, and a task's rest. */
static int drop_shards(const PenJob *job, const char *name, int all, PenError *reterr)
{
    PenFinishedList list = {0};
    const char *of = strstr(name, "-of-");
    uint64_t task = of ? strtoul(name + strlen("task-"), NULL, 10) : 0;
    uint64_t n_tasks = of ? strtoul(of + strlen("-of-"), NULL, 10) : 0;
    char *folder = pen__work_path(job->home, name);
    int r = folder ? pen__finished_load(folder, &list, reterr)
                   : pen__fail_memory(reterr, WHERE, job->home);
    if (r >= 0 && all)
        r = pen__finished_discard(&list, 0, job->store, reterr);
    if (r >= 0 && job->plan)
        r = remove_unlisted(job, task, n_tasks, &list, reterr);
    if (r >= 0 && job->plan && n_tasks)
        r = remove_shard(job, task, n_tasks, PEN_ORDINAL_REST, reterr);
    pen__finished_free(&list);
    pen__free(folder);
    return r;
}

/* Before the old plan goes: nobody could find these shards after it. */
static int drop_all_shards(const PenJob *job, int all, PenError *reterr)
{
    PenNames names = {0};
    char *work = pen__work_path(job->home, NULL);
    int r = work ? pen__dir_list(work, &names, reterr) : pen__fail_memory(reterr, WHERE, job->home);
    for (uint64_t i = 0; i < names.n && r >= 0; i++)
        if (strcmp(names.names[i], "run") == 0 || strncmp(names.names[i], "task-", 5) == 0)
            r = drop_shards(job, names.names[i], all, reterr);
    pen__names_free(&names);
    pen__free(work);
    return r < 0 ? r : PEN_OK;
}

int pen__job_give_up(PenJob *job, PenError *reterr)
{
    PenGcResult gc;
    /* A bucket is not listed for it: that may be slow, and not allowed. Where there is a pack, its
     * readers may still use shards that it has replaced. */
    int known = job->base || pen__store_remote(job->store);
    int r = known ? drop_all_shards(job, 1, reterr) : PEN_OK;
    pen__plan_close(&job->plan);
    if (r == PEN_OK)
        r = known ? pen__work_remove(job->home, NULL, NULL, reterr)
                  : pen__gc_locked(job->store, job->home, 1, &gc, reterr);
    return r < 0 ? r : pen__work_make(job->home, reterr);
}

static int rename_plan(const char *fresh, PenError *reterr)
{
    PenInner from = PEN_INNER_NONE;
    int r = pen__inner_find(fresh, pen__inner_root(fresh), &from, reterr);
    if (r < 0)
        return r;
    r = pen__sys->rename(from.dir, from.name, from.dir, "plan");
    if (r == PEN_OK)
        r = pen__sys->fsync(from.dir);
    if (r < 0)
        r = pen__fail_os(reterr, -r, WHERE, "%s: cannot replace the plan", fresh);
    pen__inner_close(&from);
    return r;
}

/* Puts the new plan in the place of the old one. */
static int replace_plan(PenJob *job, const char *fresh, PenError *reterr)
{
    PenPlan *plan = NULL;
    int r = pen__plan_open(fresh, &plan, reterr);
    if (r == PEN_OK &&
        memcmp(pen__plan_info(plan)->id, pen__plan_info(job->plan)->id, sizeof(uint8_t[32])) != 0)
        r = drop_all_shards(job, 0, reterr);
    pen__plan_close(&job->plan);
    if (r == PEN_OK)
        r = rename_plan(fresh, reterr);
    if (r == PEN_OK)
        job->plan = plan;
    else
        pen__plan_close(&plan);
    return r;
}

/* The plan fits this run; do the sources still hold what it says? */
static int scan_again(PenJob *job, const char *text, PenError *reterr)
{
    char *fresh = pen__work_path(job->home, "plan.new");
    int r =
        fresh ? make_plan(job, fresh, text, reterr) : pen__fail_memory(reterr, WHERE, job->home);
    if (r == PEN_OK)
        r = replace_plan(job, fresh, reterr);
    pen__free(fresh);
    return r;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* 1: it is open and belongs to this run; 0: nobody needs it. One that cannot be read, or that
 * another version has made, is of no use to anybody. */
static int open_old(PenJob *job, const char *path, const char *text, PenError *reterr)
{
    int r = pen__plan_open(path, &job->plan, reterr);
    if (r == PEN_OK)
        return plan_fits(job, text, reterr);
    r = pen__error_accept(r, PEN_E_CORRUPT, reterr);
    return pen__error_accept(r, PEN_E_FORMAT, reterr);
}

/* The plan in the object store: 1 it belongs to this task, 0 not. */
static int open_shared(PenJob *job, const char *text, PenError *reterr)
{
    PenBuf sources = {0};
    int r = pen__tasks_open_plan(job->shared, job->settings->out, &sources, &job->plan, reterr);
    if (r == PEN_OK)
        r = are_sources(job->settings, &sources, reterr);
    pen__buf_free(&sources);
    return r == 1 ? has_settings(job, text) : r;
}

static int open_for_task(PenJob *job, const char *path, const char *text, PenError *reterr)
{
    int r = job->shared ? open_shared(job, text, reterr) : open_old(job, path, text, reterr);
    if (r == PEN_OK)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         job->shared
                             ? "%s: the plan was made with other sources or settings; pass "
                               "those that 'penstock plan' got"
                             : "%s: the plan was made with other sources or settings, or by "
                               "another version; run 'penstock plan' again",
                         job->settings->out);
    if (r < 0)
        return r;
    pen__plan_advise(job->plan, PLAN_AGAIN(job));
    pen__plan_connect(job->plan, job->places, NULL);
    return pen__plan_check_lists(job->plan, reterr);
}

static int open_for_run(PenJob *job, const char *path, const char *text, PenError *reterr)
{
    int r = open_old(job, path, text, reterr);
    job->resumed = r == 1;
    if (r == 1)
        return scan_again(job, text, reterr);
    if (r == PEN_OK)
        r = pen__job_give_up(job, reterr);
    return r < 0 ? r : make_plan(job, path, text, reterr);
}

/* Tasks of a writer have begun in this directory. Their samples are nowhere else. */
static int refuse_writers(const PenJob *job, PenError *reterr)
{
    const char *out = job->settings->out;
    int r = pen__store_remote(job->store) ? 0 : pen__writer_plan_is_there(job->store, reterr);
    if (r == 1)
        return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                         "%.300s: tasks of a writer have begun here; finish them with 'penstock "
                         "finalise %.300s', or discard them with 'penstock gc --abandon %.300s'",
                         out, out, out);
    return r;
}

int pen__job_open_plan(PenJob *job, PenError *reterr)
{
    char text[PEN_SETTINGS_TEXT_BYTES];
    char *path = pen__work_path(job->home, "plan");
    if (!path)
        return pen__fail_memory(reterr, WHERE, job->home);
    pen__settings_text(job->settings, text);
    int r = job->shared ? PEN_OK : refuse_writers(job, reterr);
    if (r == PEN_OK && job->settings->in_place)
        r = pen__job_summaries_init(job, text, reterr);
    if (r == PEN_OK) /* of tasks in a store it is there */
        r = job->shared && job->settings->n_tasks ? 1 : pen__file_exists(path, reterr);
    if (r == 1)
        r = job->settings->n_tasks ? open_for_task(job, path, text, reterr)
                                   : open_for_run(job, path, text, reterr);
    else if (r == PEN_OK)
        r = make_plan(job, path, text, reterr);
    if (r == PEN_OK && !job->plan) {
        r = pen__plan_open(path, &job->plan, reterr);
        if (r == PEN_OK && job->settings->n_tasks)
            pen__plan_advise(job->plan, PLAN_AGAIN(job));
    }
    pen__free(path);
    return r;
}
