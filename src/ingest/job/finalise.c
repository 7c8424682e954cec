/* SPDX-License-Identifier: Apache-2.0 */
/* Joining what all tasks have written. Each has left whole blocks and a rest of fewer samples than
 * a block has; the rests are joined here, so that every block but the last is full. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/team.h"
#include "ingest/job/job.h"
#include "ingest/job/join.h"
#include "ingest/job/settings.h"
#include "ingest/job/writer_task.h"
#include "manage/gc.h"
#include "manage/work.h"
#include "manage/work_home.h"
#include "pack/write/publish.h"

#define WHERE "ingest/finalise"

/* ---- joining --------------------------------------------------------------------------------- */

typedef struct Finalise {
    const PenIngestSettings *settings;
    const char *out;
    char *home; /* where .work is: the pack's directory, or one of this machine */
    PenLock lock;
    PenStore *store;
    PenStore *shared;       /* what tasks share in an object store; NULL: nothing */
    PenTaskRecord *records; /* of all tasks; in a directory only `done` of each is set */
    PenNames names;         /* of what the tasks left */
    PenPlan *plan;
    PenWriterPlan writer; /* instead of the plan */
    bool is_writer;
    uint8_t id[32], inputs[32]; /* of the plan */
    const char *settings_text;
    uint64_t block_samples, shard_bytes, n_items;
    PenSchema schema;
    uint32_t n_tasks;
    uint32_t n_named; /* the number that the names of tasks have; of a writer perhaps open */
    PenJoin join;
    PenRoll *roll; /* of the rests */
    uint64_t position;
    uint64_t n_joined;     /* samples, for the progress */
    PenCopied *copied;     /* the rests; all before `oldest` are released */
    uint32_t oldest;       /* a task */
    uint64_t oldest_first; /* the position of its first sample */
    PenBadList bad;
} Finalise;

/* Requests to a store are under way at once; files of a directory are read one after another. */
enum { AT_ONCE = 16, SHARDS_AT_ONCE = 512 };

static void stop_requests(const Finalise *f, int stop)
{
    pen__remote_stop(pen__store_remote(f->store), stop);
    pen__remote_stop(pen__store_remote(f->shared), stop);
}

static unsigned count_threads(const Finalise *f)
{
    return f->shared ? AT_ONCE : 1;
}

static int task_folder(const Finalise *f, uint32_t task, char **ret, PenError *reterr)
{
    char name[PEN_TASK_NAME_BYTES];
    pen__work_task_name(task, f->n_named, name);
    *ret = pen__work_path(f->home, name);
    return *ret ? PEN_OK : pen__fail_memory(reterr, WHERE, f->out);
}

/* How many tasks a writer has is in its plan, or the caller knows it. */
static int count_writers(Finalise *f, PenError *reterr)
{
    uint32_t given = f->settings->n_tasks, planned = f->writer.n_tasks;
    if (planned == PEN_TASKS_OPEN && !given)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: the tasks do not know how many they are; pass their number: "
                         "--tasks N, in Python tasks=N",
                         f->out);
    f->n_named = planned;
    f->n_tasks = planned == PEN_TASKS_OPEN ? given : planned;
    if (f->n_tasks > PEN_MAX_TASKS)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: expected at most %d tasks, found %u",
                         f->out, PEN_MAX_TASKS, f->n_tasks);
    return PEN_OK;
}

/* How many tasks of 'penstock pack' there are is in the names of the folders they left. */
static int count_named(Finalise *f, PenError *reterr)
{
    int r = PEN_OK;
    for (uint64_t i = 0; i < f->names.n && r == PEN_OK; i++) {
        uint32_t task, n;
        if (!pen__work_task(f->names.names[i], &task, &n))
            continue;
        if (n > PEN_MAX_TASKS)
            r = pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: expected at most %d tasks, found %u",
                          f->out, PEN_MAX_TASKS, n);
        else if (f->n_tasks && f->n_tasks != n)
            r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                          "%s: some tasks are of %u and some of %u; they cannot be combined: run "
                          "'penstock gc --abandon' and start again",
                          f->out, f->n_tasks, n);
        f->n_tasks = f->n_named = n;
    }
    if (r == PEN_OK && !f->n_tasks)
        r = pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                      "%s: no task has been run; run 'penstock pack --task I/N' for each first",
                      f->out);
    return r;
}

static int count_tasks(Finalise *f, PenError *reterr)
{
    int r = pen__tasks_list(f->shared, f->home, &f->names, reterr);
    if (r < 0)
        return r;
    r = f->is_writer ? count_writers(f, reterr) : count_named(f, reterr);
    if (r == PEN_OK && f->settings->n_tasks && f->settings->n_tasks != f->n_tasks)
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "%s: expected the number of tasks that these were started with, %u, found %u",
                      f->out, f->n_tasks, f->settings->n_tasks);
    return r;
}

/* A task of this number of tasks? 1 yes, with its own number. */
static int is_listed(const Finalise *f, const char *name, uint32_t *ret_task)
{
    uint32_t n;
    return pen__work_task(name, ret_task, &n) && n == f->n_named && *ret_task < f->n_tasks;
}

/* 1 complete, 0 not. */
static int load_task(Finalise *f, uint32_t task, PenError *reterr)
{
    char *folder = NULL;
    char name[PEN_WRITER_RECORD_BYTES];
    PenTaskRecord *record = &f->records[task];
    pen__work_task_name(task, f->n_named, name);
    if (f->is_writer)
        pen__writer_record_name(f->store, task, f->n_named, name);
    if (f->shared || f->is_writer)
        return pen__task_record_get(f->is_writer ? f->store : f->shared, name, record, reterr);
    int r = task_folder(f, task, &folder, reterr);
    if (r == PEN_OK)
        r = pen__task_done_load(folder, &record->done, reterr);
    pen__free(folder);
    return r;
}

/* The tasks that are not complete: "3, 5, 7 and 12 more". */
typedef struct Missing {
    uint32_t n, first;
    char text[200];
} Missing;

enum { MISSING_NAMED = 10 };

static void add_missing(Missing *m, uint32_t task)
{
    size_t used = strlen(m->text);
    if (!m->n)
        m->first = task;
    if (m->n < MISSING_NAMED)
        snprintf(m->text + used, sizeof m->text - used, "%s%u", m->n ? ", " : "", task);
    m->n++;
}

static int fail_missing(const Finalise *f, Missing *m, PenError *reterr)
{
    size_t used = strlen(m->text);
    if (m->n > MISSING_NAMED)
        snprintf(m->text + used, sizeof m->text - used, " and %u more", m->n - MISSING_NAMED);
    if (f->is_writer)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: task%s %s of %u %s not complete; run %s again, then finalise", f->out,
                         m->n == 1 ? "" : "s", m->text, f->n_tasks, m->n == 1 ? "is" : "are",
                         m->n == 1 ? "it" : "them");
    if (m->n == 1)
        return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                         "%s: task %u of %u is not done; run 'penstock pack --task %u/%u' first",
                         f->out, m->first, f->n_tasks, m->first, f->n_tasks);
    return pen__fail(reterr, PEN_E_NOT_FOUND, WHERE,
                     "%s: tasks %s of %u are not done; run 'penstock pack --task %u/%u' and the "
                     "others first",
                     f->out, m->text, f->n_tasks, m->first, f->n_tasks);
}

static int fail_other_plan(const Finalise *f, uint32_t task, PenError *reterr)
{
    if (f->is_writer)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: task %u of %u was written with another schema or other settings than "
                         "the others, or for tasks that were discarded; run it again with the same",
                         f->out, task, f->n_tasks);
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: task %u of %u was run with an older plan, and inputs have changed "
                     "since; run 'penstock pack --task %u/%u' again",
                     f->out, task, f->n_tasks, task, f->n_tasks);
}

typedef struct Loading {
    Finalise *f;
    uint8_t *listed; /* of each task: it has left something; then: it is complete */
} Loading;

static int load_step(void *ctx, uint64_t task, PenError *reterr)
{
    Loading *l = ctx;
    Finalise *f = l->f;
    if (!l->listed[task]) /* no request for it */
        return PEN_OK;
    int r = load_task(f, (uint32_t)task, reterr);
    l->listed[task] = r == 1;
    if (r > 0 && memcmp(f->records[task].done.inputs, f->inputs, sizeof f->inputs) != 0)
        r = fail_other_plan(f, (uint32_t)task, reterr);
    return r;
}

static int load_tick(void *ctx, PenError *reterr)
{
    const Loading *l = ctx;
    return pen__settings_report(l->f->settings, (PenIngestProgress){.stage = "check"}, reterr);
}

static void load_stop(void *ctx, int stop)
{
    stop_requests(((Loading *)ctx)->f, stop);
}

static int load_listed(Loading *l, PenError *reterr)
{
    Finalise *f = l->f;
    Missing missing = {.n = 0};
    for (uint64_t i = 0; i < f->names.n; i++) {
        uint32_t task;
        if (is_listed(f, f->names.names[i], &task))
            l->listed[task] = 1;
    }
    PenEach each = {.name = "pen-records",
                    .n = f->n_tasks,
                    .threads = count_threads(f),
                    .step = load_step,
                    .tick = load_tick,
                    .stop = load_stop,
                    .ctx = l};
    int r = pen__each(&each, reterr);
    for (uint32_t t = 0; t < f->n_tasks && r == PEN_OK; t++)
        if (!l->listed[t])
            add_missing(&missing, t);
    return r == PEN_OK && missing.n ? fail_missing(f, &missing, reterr) : r;
}

/* All of them, before anything is written. */
static int load_tasks(Finalise *f, PenError *reterr)
{
    Loading l = {f, pen__zalloc(f->n_tasks)};
    f->records = pen__zalloc(f->n_tasks * sizeof *f->records);
    int r =
        f->records && l.listed ? load_listed(&l, reterr) : pen__fail_memory(reterr, WHERE, f->out);
    pen__free(l.listed);
    return r;
}

static int report(const Finalise *f, PenError *reterr)
{
    return pen__settings_report(
        f->settings,
        (PenIngestProgress){
            .stage = "join", .done = f->n_joined, .total = f->n_items, .bad = f->bad.n},
        reterr);
}

/* The shard that is number `i` in the task's record. */
static int find_shard(const Finalise *f, uint32_t task, uint64_t i, PenShardEntry *ret,
                      PenPackStats *stats, PenError *reterr)
{
    const PenTaskRecord *record = &f->records[task];
    uint64_t ordinal = i < record->done.n_shards ? i : PEN_ORDINAL_REST;
    uint8_t id[PEN_ID_BYTES];
    pen__shard_id(f->id, task, f->n_named, ordinal, id);
    int r = pen__shard_find(f->store, id, ret, stats, NULL, reterr);
    if (r == PEN_OK)
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: a shard of task %u is missing; run that task again", f->out, task);
    if (r > 0 && record->shards && !pen__task_shard_is(&record->shards[i], ret))
        return pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                         "%s: a shard of task %u is of another run, with other %s; run that task "
                         "again",
                         f->out, task, f->is_writer ? "samples" : "broken inputs");
    return r < 0 ? r : PEN_OK;
}

/* Shards that are fetched together. */
typedef struct Found {
    uint32_t task;
    uint64_t number;
    PenShardEntry entry;
    PenPackStats stats;
} Found;

typedef struct Batch {
    Finalise *f;
    Found *found;
    uint64_t n;
} Batch;

static int find_step(void *ctx, uint64_t number, PenError *reterr)
{
    const Batch *b = ctx;
    Found *s = &b->found[number];
    return find_shard(b->f, s->task, s->number, &s->entry, &s->stats, reterr);
}

static int find_tick(void *ctx, PenError *reterr)
{
    return report(((Batch *)ctx)->f, reterr);
}

static void find_stop(void *ctx, int stop)
{
    stop_requests(((Batch *)ctx)->f, stop);
}

static int join_batch(Batch *b, PenError *reterr)
{
    Finalise *f = b->f;
    PenEach each = {.name = "pen-shards",
                    .n = b->n,
                    .threads = count_threads(f),
                    .step = find_step,
                    .tick = find_tick,
                    .stop = find_stop,
                    .ctx = b};
    int r = pen__each(&each, reterr);
    for (uint64_t i = 0; i < b->n && r == PEN_OK; i++) {
        r = pen__join_add(&f->join, &b->found[i].entry, 1, &b->found[i].stats, reterr);
        f->n_joined += b->found[i].entry.samples_used;
    }
    b->n = 0;
    return r;
}

static int join_shards(Finalise *f, PenError *reterr)
{
    Batch b = {.f = f, .found = pen__alloc_array(SHARDS_AT_ONCE, sizeof *b.found)};
    int r = b.found ? PEN_OK : pen__fail_memory(reterr, WHERE, f->out);
    for (uint32_t t = 0; t < f->n_tasks; t++)
        for (uint64_t i = 0; i < f->records[t].done.n_shards && r == PEN_OK; i++) {
            b.found[b.n++] = (Found){.task = t, .number = i};
            if (b.n == SHARDS_AT_ONCE)
                r = join_batch(&b, reterr);
        }
    if (r == PEN_OK)
        r = join_batch(&b, reterr);
    pen__free(b.found);
    return r;
}

/* ---- rests ----------------------------------------------------------------------------------- */

/* The roll has written all but the block that has the last sample. */
static void free_written(Finalise *f, uint32_t task)
{
    uint64_t last = PEN_MAX(f->position, 1u) - 1;
    uint64_t written = last - last % f->block_samples;
    for (; f->oldest <= task && f->oldest_first + f->copied[f->oldest].n <= written; f->oldest++) {
        f->oldest_first += f->copied[f->oldest].n;
        pen__copied_free(&f->copied[f->oldest]);
    }
}

/* Some tasks, one after another, whose rests are fetched together. */
typedef struct Rests {
    Finalise *f;
    uint32_t first, n;
    uint64_t n_bad[AT_ONCE]; /* inputs that were left out */
} Rests;

/* The samples of a task's rest, which is opened as if it were a pack of one shard. */
static int load_rest(const Finalise *f, uint32_t task, uint64_t *ret_bad, PenError *reterr)
{
    PenShardEntry entry;
    PenPackStats stats;
    PenPackDraft draft = {0};
    PenCopied *c = &f->copied[task];
    int r = find_shard(f, task, f->records[task].done.n_shards, &entry, &stats, reterr);
    if (r < 0)
        return r;
    PenManifest m = {
        .block_samples = f->block_samples, .n_shards = 1, .schema = f->schema, .shards = &entry};
    r = pen__draft_open(&draft, f->store, &m, reterr);
    if (r == PEN_OK)
        r = pen__copy_block(draft.pack, 0, c, reterr);
    pen__draft_close(&draft);
    if (r == PEN_OK && c->n != f->records[task].done.n_rest)
        r = pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                      "%s: the last samples of task %u are damaged; run that task again", f->out,
                      task);
    *ret_bad = stats.bad;
    return r;
}

static int rest_step(void *ctx, uint64_t number, PenError *reterr)
{
    Rests *s = ctx;
    uint32_t task = s->first + (uint32_t)number;
    if (!s->f->records[task].done.n_rest)
        return PEN_OK;
    return load_rest(s->f, task, &s->n_bad[number], reterr);
}

static int rest_tick(void *ctx, PenError *reterr)
{
    return report(((Rests *)ctx)->f, reterr);
}

static void rest_stop(void *ctx, int stop)
{
    stop_requests(((Rests *)ctx)->f, stop);
}

static int add_rest(Finalise *f, uint32_t task, PenError *reterr)
{
    PenCopied *c = &f->copied[task];
    int r = PEN_OK;
    for (uint32_t i = 0; i < c->n && r == PEN_OK; i++) {
        c->samples[i].position = f->position++;
        r = pen__roll_add(f->roll, &c->samples[i], reterr);
    }
    f->n_joined += c->n;
    if (r == PEN_OK)
        free_written(f, task);
    return r;
}

static int join_rests(Finalise *f, PenError *reterr)
{
    int r = PEN_OK;
    for (uint32_t t = 0; t < f->n_tasks && r == PEN_OK; t += AT_ONCE) {
        Rests s = {.f = f, .first = t, .n = PEN_MIN(f->n_tasks - t, (uint32_t)AT_ONCE)};
        PenEach each = {.name = "pen-rests",
                        .n = s.n,
                        .threads = count_threads(f),
                        .step = rest_step,
                        .tick = rest_tick,
                        .stop = rest_stop,
                        .ctx = &s};
        r = pen__each(&each, reterr);
        for (uint32_t i = 0; i < s.n && r == PEN_OK; i++) {
            f->join.stats.bad += s.n_bad[i]; /* all else is counted when the rests are written */
            r = add_rest(f, t + i, reterr);
        }
    }
    return r;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int load_bad(Finalise *f, uint32_t task, PenError *reterr)
{
    char *folder = NULL;
    const PenBadList *bad = &f->records[task].bad;
    if (f->shared || f->is_writer)
        return pen__bad_parse(&f->bad, bad->lines.data, bad->lines.bytes, UINT64_MAX, f->out,
                              reterr);
    int r = task_folder(f, task, &folder, reterr);
    if (r < 0)
        return r;
    char *path = pen__path_join(folder, "bad");
    r = path ? pen__bad_load(&f->bad, path, UINT64_MAX, reterr)
             : pen__fail_memory(reterr, WHERE, folder);
    pen__free(path);
    pen__free(folder);
    return r;
}

static int join_tasks(Finalise *f, PenIngestResult *ret, PenError *reterr)
{
    int r = join_shards(f, reterr);
    if (r == PEN_OK)
        r = join_rests(f, reterr);
    for (uint32_t t = 0; t < f->n_tasks && r == PEN_OK; t++) {
        r = load_bad(f, t, reterr);
        ret->n_added += r == PEN_OK ? f->records[t].done.n_samples : 0;
    }
    return r;
}

static void keep(void *ctx, const PenStoredSample *sample)
{
    (void)ctx; /* free_written releases all of a task at once */
    (void)sample;
}

static int find_plan(Finalise *f, PenError *reterr)
{
    PenBuf sources = {0};
    if (f->shared) {
        int r = pen__tasks_open_plan(f->shared, f->out, &sources, &f->plan, reterr);
        pen__buf_free(&sources);
        return r;
    }
    char *path = pen__work_path(f->home, "plan");
    int r = path ? pen__plan_open(path, &f->plan, reterr) : pen__fail_memory(reterr, WHERE, f->out);
    pen__free(path);
    if (r == PEN_E_NOT_FOUND)
        pen__fail(reterr, r, WHERE, "%s: no plan found; run 'penstock plan' first", f->out);
    return r;
}

static int open_plan(Finalise *f, PenError *reterr)
{
    int r = find_plan(f, reterr);
    if (r < 0)
        return r;
    const PenPlanInfo *info = pen__plan_info(f->plan);
    memcpy(f->id, info->id, sizeof f->id);
    memcpy(f->inputs, info->inputs, sizeof f->inputs);
    f->settings_text = info->settings;
    f->block_samples = info->block_samples;
    f->shard_bytes = UINT64_MAX;
    f->n_items = info->n_items;
    return pen__plan_schema(f->plan, &f->schema, reterr);
}

static void take_writer(Finalise *f)
{
    memcpy(f->id, f->writer.id, sizeof f->id);
    memcpy(f->inputs, f->writer.job, sizeof f->inputs);
    f->settings_text = f->writer.settings;
    f->block_samples = f->writer.block_samples;
    f->shard_bytes = f->writer.shard_bytes;
    f->schema = f->writer.schema;
}

/* The plan has to be of the inputs that are there now. */
static int check_plan(Finalise *f, PenError *reterr)
{
    if (f->is_writer)
        return PEN_OK;
    pen__plan_advise(f->plan,
                     f->shared ? "run 'penstock gc --abandon', then 'penstock plan' and every task "
                                 "again"
                               : "run 'penstock plan' again, then every task");
    return pen__plan_check_all(f->plan, reterr);
}

static int open_roll(Finalise *f, PenError *reterr)
{
    char *part = pen__work_path(f->home, "rest.part");
    PenRollSettings s = {.store = f->store,
                         .has_columns = pen__settings_have_columns(f->settings_text),
                         .part_path = part,
                         .schema = &f->schema,
                         .block_samples = f->block_samples,
                         .shard_bytes = f->shard_bytes,
                         .task = f->n_named,
                         .n_tasks = f->n_named,
                         .release = keep};
    memcpy(s.plan_id, f->id, sizeof s.plan_id);
    int r = part ? pen__roll_open(&s, &f->roll, reterr) : pen__fail_memory(reterr, WHERE, f->out);
    pen__free(part);
    return r;
}

static int open_all(Finalise *f, PenError *reterr)
{
    int r = PEN_OK;
    if (f->is_writer)
        take_writer(f);
    else
        r = open_plan(f, reterr);
    if (r == PEN_OK)
        r = count_tasks(f, reterr);
    if (r == PEN_OK)
        r = check_plan(f, reterr);
    if (r == PEN_OK)
        r = load_tasks(f, reterr);
    for (uint32_t t = 0; t < f->n_tasks && f->is_writer && r == PEN_OK; t++)
        f->n_items += f->records[t].done.n_samples;
    f->join = (PenJoin){.store = f->store,
                        .home = f->home,
                        .schema = &f->schema,
                        .settings = f->settings_text,
                        .block_samples = f->block_samples,
                        .has_unique_keys = !f->is_writer};
    if (r == PEN_OK)
        r = open_roll(f, reterr);
    if (r == PEN_OK) {
        f->copied = pen__zalloc(f->n_tasks * sizeof *f->copied);
        r = f->copied ? PEN_OK : pen__fail_memory(reterr, WHERE, f->out);
    }
    return r;
}

/* Nothing was written. */
static int fail_empty(const Finalise *f, PenError *reterr)
{
    if (f->is_writer)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: no task has added a sample", f->out);
    return pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: every input is broken; no pack was written",
                     f->out);
}

static int finalise(Finalise *f, PenIngestResult *ret, PenError *reterr)
{
    int r = open_all(f, reterr);
    if (r == PEN_OK)
        r = join_tasks(f, ret, reterr);
    if (r == PEN_OK)
        r = pen__roll_finish(f->roll, NULL, reterr);
    if (r == PEN_OK) {
        uint64_t n;
        const PenShardEntry *shards = pen__roll_shards(f->roll, &n);
        r = pen__join_add(&f->join, shards, n, pen__roll_stats(f->roll), reterr);
    }
    if (r == PEN_OK && f->join.n_shards == 0)
        r = fail_empty(f, reterr);
    if (r == PEN_OK && f->bad.n)
        r = pen__report_store(f->out, NULL, &f->bad, reterr);
    if (r == PEN_OK)
        r = pen__join_publish(&f->join, ret, reterr);
    ret->n_bad = f->bad.n;
    return r;
}

/* In a store the plan is removed right after the pack was published. So if both exist, a process
 * was stopped in between, and joining the tasks once more gives the same manifest. */
static int in_the_way(Finalise *f, PenError *reterr)
{
    int r = pen__store_has(f->store, PEN_MANIFEST_NAME, reterr);
    int has_plan = r == 1 && f->shared ? pen__store_has(f->store, PEN_SHARED_PLAN, reterr) : 0;
    if (r < 0 || has_plan < 0)
        return PEN_MIN(r, has_plan);
    if (r == 1 && !has_plan)
        return pen__fail(reterr, PEN_E_EXISTS, WHERE, "%s: the pack already exists", f->out);
    return PEN_OK;
}

static int lock(void *ctx, PenError *reterr)
{
    Finalise *f = ctx;
    return f->shared ? pen__home_lock(f->out, f->home, 1, &f->lock, reterr)
                     : pen__dir_lock(f->home, 1, &f->lock, reterr);
}

static int open_place(Finalise *f, PenError *reterr)
{
    const PenIngestSettings *s = f->settings;
    PenLockWait wait = pen__lock_wait(s);
    if (!f->out || !f->out[0])
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "expected a name for the pack, found none");
    int r = pen__home_find_part(f->out, s->work, "finalise", &f->home, reterr);
    if (r == PEN_OK)
        r = pen__store_open(f->out, s->remote, &f->store, reterr);
    if (r == PEN_OK)
        r = pen__store_check_kind(f->store, reterr);
    if (r == PEN_OK && pen__store_remote(f->store))
        r = pen__tasks_open(s, &f->shared, reterr);
    if (r == PEN_OK)
        r = pen__lock_in_time(&wait, lock, f, reterr);
    if (r == PEN_OK)
        r = in_the_way(f, reterr);
    if (r == PEN_OK)
        r = pen__writer_plan_load(f->store, &f->writer, reterr);
    f->is_writer = r == 1;
    return r < 0 ? r : PEN_OK;
}

/* The process that finalises on another machine has removed what this one was about to join. */
static int explain(const Finalise *f, int r, PenError *reterr)
{
    if (!f->shared ||
        (r != PEN_E_NOT_FOUND && r != PEN_E_CORRUPT && r != PEN_E_IO && r != PEN_E_CHANGED) ||
        pen__store_has(f->store, PEN_SHARED_PLAN, NULL) != 0 ||
        pen__store_has(f->store, PEN_MANIFEST_NAME, NULL) != 1)
        return r;
    return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                     "%s: another process has published the pack in the meantime", f->out);
}

/* The rests are in the pack now; nothing names the shards they were in. What cannot be removed now,
 * gc removes later. In a store the directory of this machine goes with it. */
static void clean_up(Finalise *f, int published, PenIngestResult *ret)
{
    PenGcResult gc;
    PenError why = {0};
    pen__plan_close(&f->plan);
    if (published && pen__gc_locked(f->store, f->home, 1, &gc, &why) < 0)
        snprintf(ret->not_removed, sizeof ret->not_removed, "%.255s", why.message);
    if (f->shared && f->lock.fd >= 0)
        pen__home_leave(f->home);
}

static void close_all(Finalise *f)
{
    for (uint32_t t = 0; t < f->n_tasks && f->records; t++)
        pen__task_record_free(&f->records[t]);
    pen__free(f->records);
    pen__names_free(&f->names);
    pen__free(f->home);
    pen__store_close(&f->shared);
    pen__roll_close(&f->roll);
    for (uint32_t t = 0; t < f->n_tasks && f->copied; t++)
        pen__copied_free(&f->copied[t]);
    pen__free(f->copied);
    pen__join_fini(&f->join);
    pen__bad_free(&f->bad);
    pen__schema_fini(&f->schema);
    pen__store_close(&f->store);
    pen__dir_unlock(&f->lock);
}

int pen_ingest_finalise(const PenIngestSettings *settings, PenIngestResult *ret, PenError *reterr)
{
    PenIngestSettings own = pen__ingest_settings(settings);
    Finalise f = {.settings = &own, .lock = PEN_LOCK_NONE, .schema = {.class_field = -1}};
    PenIngestResult result = {0};
    f.out = own.out;
    int r = open_place(&f, reterr);
    if (r == PEN_OK)
        r = finalise(&f, &result, reterr);
    if (r < 0)
        r = explain(&f, r, reterr);
    clean_up(&f, r == PEN_OK, &result);
    close_all(&f);
    if (r == PEN_OK && ret)
        *ret = result;
    return r;
}
