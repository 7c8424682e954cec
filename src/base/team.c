/* SPDX-License-Identifier: Apache-2.0 */
#include "base/team.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/thread.h"

#define TICK_NS 100000000u

typedef struct Member {
    PenTeam *team;
    unsigned number;
    pthread_t thread;
} Member;

struct PenTeam {
    PenTeamWork work;
    pthread_mutex_t mutex; /* of all below; held until all threads have been started */
    pthread_cond_t ended;  /* `running` has become 0 */
    bool is_refused;       /* a thread could not be started: none calls run() */
    bool is_left;          /* nobody waits: the last thread frees this */
    unsigned n, running;
    Member members[];
};

static void free_team(PenTeam *t)
{
    pthread_cond_destroy(&t->ended);
    pthread_mutex_destroy(&t->mutex);
    pen__free(t);
}

static void *run_member(void *arg)
{
    const Member *m = arg;
    PenTeam *t = m->team;
    pthread_mutex_lock(&t->mutex);
    bool runs = !t->is_refused;
    pthread_mutex_unlock(&t->mutex);
    if (runs) {
        pen__thread_name(t->work.name);
        t->work.run(t->work.ctx, m->number);
    }
    pthread_mutex_lock(&t->mutex);
    bool is_last = --t->running == 0;
    bool frees = is_last && t->is_left;
    if (is_last)
        pthread_cond_signal(&t->ended);
    pthread_mutex_unlock(&t->mutex);
    if (frees)
        free_team(t);
    return NULL;
}

static PenTeam *make_team(const PenTeamWork *work, unsigned n_threads)
{
    PenTeam *t = pen__zalloc(sizeof *t + n_threads * sizeof t->members[0]);
    if (!t || pen__cond_init(&t->ended) < 0) {
        pen__free(t);
        return NULL;
    }
    pthread_mutex_init(&t->mutex, NULL);
    t->work = *work;
    return t;
}

int pen__team_start(const PenTeamWork *work, unsigned n_threads, PenTeam **ret, PenError *reterr)
{
    int r = PEN_OK;
    PenTeam *t = make_team(work, n_threads);
    if (!t)
        return pen__fail_memory(reterr, "base/team", work->name);
    pthread_mutex_lock(&t->mutex);
    while (t->n < n_threads && r == PEN_OK) {
        Member *m = &t->members[t->n];
        *m = (Member){.team = t, .number = t->n};
        r = pen__thread_start(&m->thread, run_member, m, reterr);
        t->n += r == PEN_OK;
    }
    t->running = t->n;
    t->is_refused = r < 0;
    pthread_mutex_unlock(&t->mutex);
    if (r < 0)
        pen__team_join(&t);
    else
        *ret = t;
    return r;
}

int pen__team_wait(PenTeam *t, uint64_t deadline_ns)
{
    int r = PEN_OK;
    pthread_mutex_lock(&t->mutex);
    while (t->running && r == PEN_OK)
        r = pen__cond_wait(&t->ended, &t->mutex, deadline_ns);
    r = t->running ? r : PEN_OK;
    pthread_mutex_unlock(&t->mutex);
    return r;
}

void pen__team_join(PenTeam **team)
{
    PenTeam *t = *team;
    *team = NULL;
    for (unsigned i = 0; t && i < t->n; i++)
        pen__thread_join(t->members[i].thread);
    if (t)
        free_team(t);
}

void pen__team_leave(PenTeam **team)
{
    PenTeam *t = *team;
    pthread_mutex_lock(&t->mutex);
    bool leaves = t->running;
    for (unsigned i = 0; leaves && i < t->n; i++)
        (void)pthread_detach(t->members[i].thread);
    t->is_left = leaves;
    pthread_mutex_unlock(&t->mutex);
    if (leaves)
        *team = NULL;
    else
        pen__team_join(team);
}

static void tick(const PenTeamWork *work)
{
    if (work->tick)
        work->tick(work->ctx);
}

int pen__team_run(const PenTeamWork *work, unsigned n_threads, PenError *reterr)
{
    PenTeam *t = NULL;
    int r = pen__team_start(work, n_threads, &t, reterr);
    if (r < 0)
        return r;
    do {
        tick(work);
        r = pen__team_wait(t, pen__deadline_after(TICK_NS));
    } while (r == PEN_E_TIMEOUT);
    tick(work);
    pen__team_join(&t);
    return PEN_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

typedef struct Run {
    const PenEach *each;
    pthread_mutex_t mutex;
    uint64_t next;
    uint64_t failed; /* the lowest; n: none */
    PenError error;  /* its */
    PenError ended;  /* of the tick; status 0: it has not ended the run. Not under the mutex. */
} Run;

static uint64_t take_step(Run *r)
{
    pthread_mutex_lock(&r->mutex);
    uint64_t number = r->next < r->each->n ? r->next++ : r->each->n;
    pthread_mutex_unlock(&r->mutex);
    return number;
}

static void fail_step(Run *r, uint64_t number, const PenError *error)
{
    pthread_mutex_lock(&r->mutex);
    r->next = r->each->n;
    if (number < r->failed) {
        r->failed = number;
        r->error = *error;
    }
    pthread_mutex_unlock(&r->mutex);
}

static void work_steps(void *ctx, unsigned thread)
{
    Run *r = ctx;
    const PenEach *e = r->each;
    uint64_t number;
    (void)thread;
    while ((number = take_step(r)) < e->n) {
        PenError error = {0};
        int status = e->step(e->ctx, number, &error);
        if (status < 0) {
            error.status = status;
            fail_step(r, number, &error);
        }
    }
}

static void tick_steps(void *ctx)
{
    Run *r = ctx;
    const PenEach *e = r->each;
    if (!e->tick || r->ended.status < 0 || e->tick(e->ctx, &r->ended) >= 0)
        return;
    pthread_mutex_lock(&r->mutex);
    r->next = e->n;
    pthread_mutex_unlock(&r->mutex);
    if (e->stop)
        e->stop(e->ctx, 1);
}

static int run_threads(const PenEach *e, unsigned n, PenError *reterr)
{
    Run r = {.each = e, .failed = e->n};
    PenTeamWork team_work = {.name = e->name, .run = work_steps, .tick = tick_steps, .ctx = &r};
    pthread_mutex_init(&r.mutex, NULL);
    int ret = pen__team_run(&team_work, n, reterr);
    pthread_mutex_destroy(&r.mutex);
    if (r.ended.status < 0 && e->stop)
        e->stop(e->ctx, 0);
    const PenError *error = r.ended.status < 0 ? &r.ended : &r.error;
    if (ret == PEN_OK && error->status < 0) {
        ret = error->status;
        if (reterr)
            *reterr = *error;
    }
    return ret;
}

int pen__each(const PenEach *e, PenError *reterr)
{
    int r = PEN_OK;
    unsigned n = (unsigned)PEN_MIN((uint64_t)e->threads, e->n);
    if (n > 1)
        return run_threads(e, n, reterr);
    for (uint64_t i = 0; i < e->n && r >= 0; i++) {
        r = e->tick ? e->tick(e->ctx, reterr) : PEN_OK;
        if (r >= 0)
            r = e->step(e->ctx, i, reterr);
    }
    return r < 0 ? r : PEN_OK;
}
