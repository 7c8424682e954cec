/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for operations from other threads than the loop's: over a small transport with a real
 * thread, which answers after a while. */
#include "net/retry/policy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "test.h"

#include "base/attr.h"
#include "base/sys.h"
#include "base/thread.h"

#define MS 1000000ull
#define NAME "http://loop/object"

/* ---- the transport ---- */

typedef struct Post {
    PenCall *call;
    void *ctx;
    struct Post *next;
} Post;

typedef struct Loop {
    PenTransport transport; /* first */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    Post *posts, **posts_end;
    bool stop, ended;
    uint64_t random;
    PenTimer *timers; /* of the loop alone, in order */
    /* What it answers. */
    uint64_t after_ns; /* 0: never */
    int status;
    _Atomic unsigned live;
} Loop;

typedef struct LoopTransfer {
    PenTransfer base;
    Loop *loop;
    PenTimer timer;
    const PenHttpRequest *request;
    void (*done)(void *ctx, const PenHttpReply *reply);
    void *ctx;
} LoopTransfer;

static uint64_t loop_now(PenTransport *t)
{
    (void)t;
    return pen__sys->now_ns();
}

static uint64_t loop_random(PenTransport *t)
{
    Loop *l = (Loop *)t;
    return l->random = l->random * 6364136223846793005u + 1442695040888963407u;
}

static void loop_timer_clear(PenTransport *t, PenTimer *timer)
{
    if (!timer->set)
        return;
    PenTimer **at = &((Loop *)t)->timers;
    while (*at != timer)
        at = &(*at)->next;
    *at = timer->next;
    timer->set = 0;
}

static void loop_timer_set(PenTransport *t, PenTimer *timer, uint64_t at_ns, PenCall *call,
                           void *ctx)
{
    loop_timer_clear(t, timer);
    PenTimer **at = &((Loop *)t)->timers;
    while (*at && (*at)->at_ns <= at_ns)
        at = &(*at)->next;
    *timer = (PenTimer){.at_ns = at_ns, .call = call, .ctx = ctx, .next = *at, .set = 1};
    *at = timer;
}

static void on_answer(void *ctx)
{
    LoopTransfer *x = ctx;
    PenHttpReply reply = {.status = x->loop->status, .retry_after_ms = PEN_HTTP_NONE};
    if (reply.status == 200) {
        memset(x->request->into, 'x', x->request->into_bytes);
        reply.bytes = x->request->into_bytes;
    }
    x->loop->live--;
    x->done(x->ctx, &reply);
    free(x);
}

static int loop_start(PenTransport *t, const PenHttpRequest *request,
                      void (*done)(void *ctx, const PenHttpReply *reply), void *ctx,
                      PenTransfer **ret, PenError *reterr)
{
    Loop *l = (Loop *)t;
    LoopTransfer *x = calloc(1, sizeof *x);
    (void)reterr;
    *x = (LoopTransfer){.base = {t}, .loop = l, .request = request, .done = done, .ctx = ctx};
    if (l->after_ns)
        loop_timer_set(t, &x->timer, loop_now(t) + l->after_ns, on_answer, x);
    l->live++;
    *ret = &x->base;
    return PEN_OK;
}

static void loop_cancel(PenTransfer *transfer)
{
    LoopTransfer *x = (LoopTransfer *)transfer;
    loop_timer_clear(transfer->transport, &x->timer);
    x->loop->live--;
    free(x);
}

static int loop_post(PenTransport *t, PenCall *call, void *ctx)
{
    Loop *l = (Loop *)t;
    Post *post = calloc(1, sizeof *post);
    *post = (Post){.call = call, .ctx = ctx};
    pthread_mutex_lock(&l->mutex);
    bool ended = l->ended;
    if (!ended) {
        *l->posts_end = post;
        l->posts_end = &post->next;
        pthread_cond_signal(&l->cond);
    }
    pthread_mutex_unlock(&l->mutex);
    if (ended)
        free(post);
    return ended ? PEN_E_CLOSED : PEN_OK;
}

static const PenTransportClass loop_class = {
    .now_ns = loop_now,
    .unix_ns = loop_now,
    .random = loop_random,
    .start = loop_start,
    .cancel = loop_cancel,
    .timer_set = loop_timer_set,
    .timer_clear = loop_timer_clear,
    .post = loop_post,
};

static void run_one(Loop *l)
{
    Post *post = l->posts;
    if (post) {
        l->posts = post->next;
        if (!l->posts)
            l->posts_end = &l->posts;
        pthread_mutex_unlock(&l->mutex);
        post->call(post->ctx);
        free(post);
        pthread_mutex_lock(&l->mutex);
        return;
    }
    uint64_t at = l->timers ? l->timers->at_ns : UINT64_MAX;
    if (pen__cond_wait(&l->cond, &l->mutex, at) == 0)
        return;
    PenTimer timer = *l->timers;
    loop_timer_clear(&l->transport, l->timers);
    pthread_mutex_unlock(&l->mutex);
    timer.call(timer.ctx);
    pthread_mutex_lock(&l->mutex);
}

static void *loop_run(void *arg)
{
    Loop *l = arg;
    pthread_mutex_lock(&l->mutex);
    while (!l->stop)
        run_one(l);
    l->ended = true;
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

static void loop_begin(Loop *l, uint64_t after_ns, int status)
{
    memset(l, 0, sizeof *l);
    l->transport.class_ = &loop_class;
    l->posts_end = &l->posts;
    l->after_ns = after_ns;
    l->status = status;
    pthread_mutex_init(&l->mutex, NULL);
    pen__cond_init(&l->cond);
    if (pen__thread_start(&l->thread, loop_run, l, NULL) < 0)
        abort();
}

static void loop_stop(Loop *l)
{
    pthread_mutex_lock(&l->mutex);
    l->stop = true;
    pthread_cond_signal(&l->cond);
    pthread_mutex_unlock(&l->mutex);
    pen__thread_join(l->thread);
}

static void loop_end(Loop *l)
{
    for (Post *post = l->posts, *next; post; post = next) {
        next = post->next;
        free(post);
    }
    pthread_cond_destroy(&l->cond);
    pthread_mutex_destroy(&l->mutex);
}

/* ---- specs, on the waiting thread's stack ---- */

typedef struct Get {
    char into[256];
    unsigned prepared, looks;
} Get;

static int get_prepare(void *ctx, unsigned attempt, PenHttpRequest *ret, PenError *reterr)
{
    Get *g = ctx;
    (void)attempt, (void)reterr;
    g->prepared++;
    ret->method = "GET";
    ret->url = NAME;
    ret->into = g->into;
    ret->into_bytes = sizeof g->into;
    return PEN_OK;
}

static PenVerdict get_judge(void *ctx, const PenHttpReply *reply, unsigned *cause, PenError *err)
{
    (void)ctx, (void)cause;
    return pen__policy_classify(NAME, reply, err);
}

static int get(PenPolicy *p, uint64_t within_ns, char *ret_first, PenError *reterr)
{
    Get g = {.prepared = 0};
    PenOperationSpec spec = {
        .prepare = get_prepare, .classify = get_judge, .ctx = &g, .name = NAME};
    int r = pen__policy_wait(p, &spec, pen__deadline_after(within_ns), reterr);
    *ret_first = g.into[sizeof g.into - 1];
    return r;
}

typedef struct Team {
    PenPolicy *p;
    uint64_t within_ns;
    unsigned each;
    _Atomic unsigned ok, late, other;
} Team;

static void *team_run(void *arg)
{
    Team *team = arg;
    for (unsigned i = 0; i < team->each; i++) {
        char last = 0;
        PenError err;
        PenPolicyCounts n;
        int r = get(team->p, team->within_ns, &last, &err);
        pen__policy_counts(team->p, &n);
        if (r == PEN_OK && last == 'x')
            team->ok++;
        else if (r == PEN_E_TIMEOUT && err.status == r)
            team->late++;
        else
            team->other++;
    }
    return NULL;
}

static void run_team(Team *team, unsigned n)
{
    pthread_t threads[16];
    for (unsigned i = 0; i < n; i++)
        if (pen__thread_start(&threads[i], team_run, team, NULL) < 0)
            abort();
    for (unsigned i = 0; i < n; i++)
        pen__thread_join(threads[i]);
}

TEST(many_threads_wait)
{
    static Loop l; /* outlives a check that fails: its thread goes on */
    PenPolicy *p;
    loop_begin(&l, MS / 2, 200);
    CHECK_INT(pen__policy_new(&l.transport, NULL, &p, NULL), PEN_OK);
    Team team = {.p = p, .within_ns = 60000 * MS, .each = 50};
    run_team(&team, 8);
    loop_stop(&l);
    CHECK_INT(team.ok, 400);
    CHECK_INT(l.live, 0);
    PenPolicyCounts n;
    pen__policy_counts(p, &n);
    CHECK_INT(n.ops, 400);
    CHECK_INT(n.bytes, 400 * 256);
    pen__policy_free(&p);
    loop_end(&l);
}

TEST(the_deadline_passes)
{
    static Loop l; /* outlives a check that fails: its thread goes on */
    PenPolicy *p;
    char last = 0;
    PenError err;
    loop_begin(&l, 0, 0);
    CHECK_INT(pen__policy_new(&l.transport, NULL, &p, NULL), PEN_OK);
    uint64_t start = pen__sys->now_ns();
    CHECK_INT(get(p, 100 * MS, &last, &err), PEN_E_TIMEOUT);
    uint64_t took = pen__sys->now_ns() - start;
    CHECK(took >= 100 * MS && took < 60000 * MS);
    CHECK(strstr(err.message, NAME ": timed out after 1 attempt over "));
    CHECK_INT(l.live, 0); /* it was cancelled before the call came back */
    CHECK_INT(get(p, 0, &last, &err), PEN_E_TIMEOUT);
    loop_stop(&l);
    pen__policy_free(&p);
    loop_end(&l);
}

TEST(the_deadline_and_the_answer_race)
{
    static Loop l; /* outlives a check that fails: its thread goes on */
    PenPolicy *p;
    loop_begin(&l, MS, 200);
    CHECK_INT(pen__policy_new(&l.transport, NULL, &p, NULL), PEN_OK);
    /* Deadlines from just before the answer on: the first come too late on any machine. */
    Team team = {.p = p, .each = 20};
    for (unsigned i = 0; i < 40; i++) {
        team.within_ns = MS + (i % 10) * MS / 10;
        run_team(&team, 4);
    }
    loop_stop(&l);
    CHECK_INT(team.ok + team.late, 40 * 4 * 20);
    CHECK(team.late > 0);
    CHECK_INT(team.other, 0);
    CHECK_INT(l.live, 0);
    pen__policy_free(&p);
    loop_end(&l);
}

TEST(a_failure_is_handed_over)
{
    static Loop l; /* outlives a check that fails: its thread goes on */
    PenPolicy *p;
    char last = 0;
    PenError err;
    loop_begin(&l, MS, 404);
    CHECK_INT(pen__policy_new(&l.transport, NULL, &p, NULL), PEN_OK);
    CHECK_INT(get(p, 10000 * MS, &last, &err), PEN_E_NOT_FOUND);
    CHECK_INT(err.status, PEN_E_NOT_FOUND);
    CHECK(strstr(err.message, "404") != NULL);
    loop_stop(&l);
    pen__policy_free(&p);
    loop_end(&l);
}

static int at_third_look(void *ctx)
{
    Get *g = ctx;
    return ++g->looks >= 3;
}

TEST(the_waiting_thread_is_interrupted)
{
    static Loop l; /* outlives a check that fails: its thread goes on */
    PenPolicy *p;
    PenError err;
    Get g = {.prepared = 0};
    PenOperationSpec spec = {.prepare = get_prepare,
                             .classify = get_judge,
                             .interrupted = at_third_look,
                             .ctx = &g,
                             .name = NAME};
    loop_begin(&l, 0, 0);
    CHECK_INT(pen__policy_new(&l.transport, NULL, &p, NULL), PEN_OK);
    uint64_t start = pen__sys->now_ns();
    CHECK_INT(pen__policy_wait(p, &spec, pen__deadline_after(60000 * MS), &err), PEN_E_CANCELLED);
    CHECK(pen__sys->now_ns() - start < 20000 * MS);
    CHECK_INT(err.status, PEN_E_CANCELLED);
    CHECK(strstr(err.message, "interrupted") != NULL);
    CHECK_INT(g.looks, 3);
    CHECK_INT(l.live, 0); /* the request was cut */
    loop_stop(&l);
    pen__policy_free(&p);
    loop_end(&l);
}

static void *stop_soon(void *arg)
{
    uint64_t until = pen__deadline_after(100 * MS);
    while (pen__sys->now_ns() < until)
        ;
    loop_stop(arg);
    return NULL;
}

/* Asks while it waits: the wait's own thread does, as it looks whether it is to go on. */
typedef struct Curious {
    Get get; /* first: the calls of a Get are taken */
    PenPolicy *p;
    char told[320];
} Curious;

static int ask_and_go(void *ctx)
{
    Curious *c = ctx;
    pen__policy_progress(c->p, c->told, sizeof c->told);
    return 1;
}

TEST(what_is_waited_for_is_told)
{
    static Loop l; /* outlives a check that fails: its thread goes on */
    Curious c = {.p = NULL};
    char told[320] = "x";
    PenOperationSpec spec = {.prepare = get_prepare,
                             .classify = get_judge,
                             .interrupted = ask_and_go,
                             .ctx = &c,
                             .name = NAME,
                             .offset = 4096,
                             .bytes = 256};
    loop_begin(&l, 0, 0);
    CHECK_INT(pen__policy_new(&l.transport, NULL, &c.p, NULL), PEN_OK);
    pen__policy_progress(c.p, told, sizeof told);
    CHECK_STR(told, ""); /* nothing is under way */
    CHECK_INT(pen__policy_wait(c.p, &spec, pen__deadline_after(60000 * MS), NULL), PEN_E_CANCELLED);
    CHECK(strstr(c.told, NAME " offset 4096, 256 bytes: 1 attempt in 0.") == c.told);
    CHECK(strstr(c.told, " s, last: no response yet"));
    loop_stop(&l);
    told[0] = 'x';
    pen__policy_progress(c.p, told, sizeof told);
    CHECK_STR(told, ""); /* nobody answers */
    pen__policy_free(&c.p);
    loop_end(&l);
}

TEST(the_loop_ends)
{
    static Loop l; /* outlives a check that fails: its thread goes on */
    PenPolicy *p;
    char last = 0;
    PenError err;
    pthread_t stopper;
    loop_begin(&l, 0, 0);
    CHECK_INT(pen__policy_new(&l.transport, NULL, &p, NULL), PEN_OK);
    CHECK_INT(pen__thread_start(&stopper, stop_soon, &l, NULL), PEN_OK);
    CHECK_INT(get(p, UINT64_MAX, &last, &err), PEN_E_CLOSED); /* while it waits */
    CHECK_INT(err.status, PEN_E_CLOSED);
    pen__thread_join(stopper);
    CHECK_INT(get(p, UINT64_MAX, &last, &err), PEN_E_CLOSED); /* before */
    CHECK(strstr(err.message, NAME) != NULL);
    pen__policy_free(&p);
    CHECK_INT(l.live, 0);
    loop_end(&l);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(many_threads_wait);
    RUN(the_deadline_passes);
    RUN(the_deadline_and_the_answer_race);
    RUN(a_failure_is_handed_over);
    RUN(the_waiting_thread_is_interrupted);
    RUN(what_is_waited_for_is_told);
    RUN(the_loop_ends);
    return TEST_END();
}
