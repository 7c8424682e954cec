/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the remote tars of an in-place pack: each once, several at a time, before the plan is
 * made. A run that was interrupted reads only those that it has not read completely. */
#include <string.h>

#include <penstock/version.h>

#include "base/machine/cores.h"
#include "base/sha256.h"
#include "base/team.h"
#include "ingest/job/job.h"
#include "ingest/job/settings.h"
#include "ingest/prepare/summarize.h"
#include "io/inner.h"
#include "manage/work.h"

#define WHERE "ingest/summary"

/* Each has up to 9 pieces of 4 MiB in memory (io/ahead.h), and a thread for its connections. */
enum { MAX_TARS = 16 };

typedef struct Reading {
    PenJob *job;
    const PenNames *tars;
    atomic_uint_least64_t next, images, bytes;
    atomic_bool stop;
    pthread_mutex_t mutex;       /* of all below */
    PenPlaces *places[MAX_TARS]; /* of each thread; NULL: it has ended, or not begun */
    PenError error;              /* the first one; status 0: none */
    bool is_cancelled;
} Reading;

static void stop_all(Reading *r)
{
    pthread_mutex_lock(&r->mutex);
    atomic_store(&r->stop, true);
    for (unsigned i = 0; i < MAX_TARS; i++)
        if (r->places[i])
            pen__places_stop(r->places[i], 1);
    pthread_mutex_unlock(&r->mutex);
}

static void fail_all(Reading *r, const PenError *error)
{
    pthread_mutex_lock(&r->mutex);
    if (r->error.status == PEN_OK)
        r->error = *error;
    pthread_mutex_unlock(&r->mutex);
    stop_all(r);
}

static void set_places(Reading *r, unsigned number, PenPlaces *places)
{
    pthread_mutex_lock(&r->mutex);
    r->places[number] = places;
    if (places && atomic_load(&r->stop))
        pen__places_stop(places, 1);
    pthread_mutex_unlock(&r->mutex);
}

static void work(void *ctx, unsigned number)
{
    Reading *r = ctx;
    PenEntryScan *scan = NULL;
    PenPrepareSettings prepare = r->job->prepare;
    PenPlaces *places = NULL;
    PenError e = {0};
    int ret = pen__places_new(r->job->settings->remote, &places, &e);
    set_places(r, number, places);
    prepare.scan = &scan;
    PenSummarize s = {.all = &r->job->summaries,
                      .prepare = &prepare,
                      .places = places,
                      .images = &r->images,
                      .bytes = &r->bytes,
                      .stop = &r->stop};
    while (ret == PEN_OK && !atomic_load(&r->stop)) {
        uint64_t i = atomic_fetch_add(&r->next, 1);
        if (i >= r->tars->n)
            break;
        ret = pen__summarize_tar(&s, r->tars->names[i], &e);
    }
    if (ret < 0)
        fail_all(r, &e);
    set_places(r, number, NULL);
    pen__places_free(&places);
    pen__entry_scan_free(&scan);
}

static void report(void *ctx)
{
    Reading *r = ctx;
    PenIngestProgress progress = {
        .stage = "list", .done = atomic_load(&r->images), .done_bytes = atomic_load(&r->bytes)};
    if (r->is_cancelled || pen__settings_report(r->job->settings, progress, NULL) == PEN_OK)
        return;
    r->is_cancelled = true;
    stop_all(r);
}

static int make(void *ctx, const PenNames *tars, PenError *reterr)
{
    PenJob *job = ctx;
    Reading r = {.job = job, .tars = tars};
    PenTeamWork team_work = {.name = "pen-tar", .run = work, .tick = report, .ctx = &r};
    int threads = job->settings->threads;
    uint64_t n = threads > 0 ? (uint64_t)threads : pen__thread_cores();
    const char *folder = job->summaries.folder;
    int ret = pen__inner_make(folder, pen__inner_root(folder), reterr);
    if (ret < 0)
        return ret;
    n = PEN_MIN(PEN_MIN(n, tars->n), (uint64_t)MAX_TARS);
    pthread_mutex_init(&r.mutex, NULL);
    ret = pen__team_run(&team_work, (unsigned)n, reterr);
    pthread_mutex_destroy(&r.mutex);
    if (ret == PEN_OK && (r.is_cancelled || r.error.status == PEN_E_CANCELLED))
        return pen__settings_cancelled(job->settings, reterr);
    if (ret == PEN_OK && r.error.status < 0) {
        ret = r.error.status;
        if (reterr)
            *reterr = r.error;
    }
    return ret;
}

int pen__job_summaries_init(PenJob *job, const char *settings_text, PenError *reterr)
{
    static const char made_by[] = "penstock tars 1, " PEN_VERSION;
    PenSha256 sha;
    char *folder = pen__work_path(job->home, "tars");
    if (!folder)
        return pen__fail_memory(reterr, WHERE, job->home);
    job->summaries = (PenSummaries){.folder = folder, .make = make, .ctx = job};
    pen__sha256_init(&sha);
    pen__sha256_update(&sha, made_by, sizeof made_by);
    pen__sha256_update(&sha, settings_text, strlen(settings_text));
    pen__sha256_final(&sha, job->summaries.settings);
    return PEN_OK;
}

int pen__job_has_summaries(const PenJob *job)
{
    PenNames names = {0};
    int has =
        job->summaries.folder && pen__dir_list(job->summaries.folder, &names, NULL) == 0 && names.n;
    pen__names_free(&names);
    return has;
}
