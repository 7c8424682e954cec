/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's loop: cancelling, timers, calls from other threads, and how it ends. */
#include "net/http/engine.h"

#include "engine_help.h"
#include "test.h"

static PenEngine *engine;

static void cancel_job(void *ctx)
{
    Job *j = ctx;
    PenTransport *t = pen__engine_transport(j->engine);
    uint64_t bytes = t->class_->progress(j->transfer);
    t->class_->cancel(j->transfer);
    pthread_mutex_lock(&help_mutex);
    j->reply.bytes = bytes;
    j->transfer = NULL;
    pthread_cond_broadcast(&help_cond);
    pthread_mutex_unlock(&help_mutex);
}

TEST(cancelled_in_mid_body)
{
    Job j;
    job_init(&j, engine, "http", "/behave/body_stall/1/data");
    CHECK_INT(job_post(&j), PEN_OK);
    nap(150);
    CHECK_INT(
        pen__engine_transport(engine)->class_->post(pen__engine_transport(engine), cancel_job, &j),
        PEN_OK);
    nap(150);
    pthread_mutex_lock(&help_mutex);
    bool ended = j.ended, gone = !j.transfer;
    pthread_mutex_unlock(&help_mutex);
    CHECK(!ended && gone);
    CHECK(j.into[0] == bad_server.data[FIRST]); /* half of it was there */
    CHECK(j.reply.bytes > 0 && j.reply.bytes < BYTES);
    CHECK_MEM(j.into, bad_server.data + FIRST, j.reply.bytes);
    job_free(&j);
}

static struct {
    PenTimer timers[6];
    char order[16];
    size_t n;
    PenTransport *t;
} clocks;

static void note_timer(void *ctx)
{
    pthread_mutex_lock(&help_mutex);
    clocks.order[clocks.n++] = *(const char *)ctx;
    pthread_cond_broadcast(&help_cond);
    pthread_mutex_unlock(&help_mutex);
}

static void clear_other(void *ctx)
{
    note_timer(ctx);
    clocks.t->class_->timer_clear(clocks.t, &clocks.timers[4]);
    clocks.t->class_->timer_clear(clocks.t, &clocks.timers[4]);
    /* Again, for a time that has passed: not at once for ever, and not lost. */
    clocks.t->class_->timer_set(clocks.t, &clocks.timers[5], 0, note_timer, "z");
}

static void set_timers(void *ctx)
{
    (void)ctx;
    PenTransport *t = clocks.t;
    uint64_t now = t->class_->now_ns(t);
    const PenTransportClass *c = t->class_;
    c->timer_set(t, &clocks.timers[0], now + 60 * 1000000, note_timer, "c");
    c->timer_set(t, &clocks.timers[1], now + 20 * 1000000, note_timer, "a");
    c->timer_set(t, &clocks.timers[2], now + 40 * 1000000, note_timer, "x");
    c->timer_set(t, &clocks.timers[3], now + 60 * 1000000, clear_other, "d");
    c->timer_set(t, &clocks.timers[4], now + 60 * 1000000, note_timer, "y");
    c->timer_set(t, &clocks.timers[2], now + 41 * 1000000, note_timer, "b"); /* set again */
}

TEST(timers_in_order)
{
    clocks.t = pen__engine_transport(engine);
    uint64_t start = pen__sys->now_ns();
    CHECK_INT(clocks.t->class_->post(clocks.t, set_timers, NULL), PEN_OK);
    pthread_mutex_lock(&help_mutex);
    while (clocks.n < 5 && pen__sys->now_ns() < start + 5 * SECOND)
        pen__cond_wait(&help_cond, &help_mutex, start + 5 * SECOND);
    pthread_mutex_unlock(&help_mutex);
    CHECK_STR(clocks.order, "abcdz");
    CHECK(pen__sys->now_ns() - start >= 60 * 1000000);
    CHECK(clocks.t->class_->random(clocks.t) != clocks.t->class_->random(clocks.t));
    CHECK(clocks.t->class_->unix_ns(clocks.t) > 1700000000 * SECOND);
}

static atomic_bool spinning = true;
static atomic_uint spins;

/* A timer that is always due does not keep the loop from anything else. */
static void spin(void *ctx)
{
    spins++;
    if (spinning)
        clocks.t->class_->timer_set(clocks.t, ctx, 0, spin, ctx);
}

static void start_to_spin(void *ctx)
{
    clocks.t->class_->timer_set(clocks.t, ctx, 0, spin, ctx);
}

static void stop_spinning(void *ctx)
{
    (void)ctx;
    spinning = false;
}

TEST(timer_that_is_always_due)
{
    static PenTimer timer;
    clocks.t = pen__engine_transport(engine);
    CHECK_INT(clocks.t->class_->post(clocks.t, start_to_spin, &timer), PEN_OK);
    nap(50);
    CHECK_INT(clocks.t->class_->post(clocks.t, stop_spinning, NULL), PEN_OK);
    for (int i = 0; i < 200 && spinning; i++)
        nap(10);
    bool stopped = !spinning;
    spinning = false;
    CHECK(stopped && spins > 1);
}

static atomic_uint posted;

static void count_posted(void *ctx)
{
    (void)ctx;
    posted++;
}

static void *post_many(void *arg)
{
    PenTransport *t = arg;
    for (int i = 0; i < 1000; i++)
        t->class_->post(t, count_posted, NULL);
    return NULL;
}

TEST(posts_from_many_threads)
{
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, post_many, pen__engine_transport(engine));
    for (size_t i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 500 && posted < 8000; i++)
        nap(10);
    CHECK_INT(posted, 8000);
}

/* Connections that are kept, and then closed by the server, do not wake the loop for ever. */
TEST(idle_costs_nothing)
{
    Job jobs[8];
    for (size_t i = 0; i < PEN_LEN(jobs); i++)
        job_init(&jobs[i], engine, "http", "/behave/reset_after/1/data");
    CHECK(jobs_run(jobs, PEN_LEN(jobs), 10000));
    nap(100);
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    nap(200);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    int64_t ns = (b.tv_sec - a.tv_sec) * (int64_t)SECOND + b.tv_nsec - a.tv_nsec;
    CHECK(ns < 40000000);
    for (size_t i = 0; i < PEN_LEN(jobs); i++)
        job_free(&jobs[i]);
}

/* --- ends */

static void free_under_way(const char *path, const char *host, size_t n)
{
    PenEngine *e = NULL;
    PenEngineSettings settings = {.ca_file = bad_server.ca};
    Job *jobs = calloc(n, sizeof *jobs);
    CHECK_INT(pen__engine_new(&settings, &e, NULL), PEN_OK);
    for (size_t i = 0; i < n; i++) {
        job_init(&jobs[i], e, "http", path);
        if (host)
            snprintf(jobs[i].url, sizeof jobs[i].url, "http://%s/x", host);
        CHECK_INT(job_post(&jobs[i]), PEN_OK);
    }
    nap(200);
    uint64_t start = pen__sys->now_ns();
    pen__engine_free(&e);
    CHECK(e == NULL);
    CHECK(pen__sys->now_ns() - start < SECOND + SECOND / 2);
    for (size_t i = 0; i < n; i++) {
        CHECK(!jobs[i].ended);
        job_free(&jobs[i]);
    }
    free(jobs);
}

TEST(freed_with_transfers_under_way)
{
    free_under_way("/behave/body_stall/1/data", NULL, 50);
    free_under_way("/", "hang.test", 3);
    PenEngine *none = NULL;
    pen__engine_free(&none);
}

TEST(child_processes_stay_out)
{
    pid_t pid = fork();
    if (pid == 0) {
        PenTransport *t = pen__engine_transport(engine);
        Job j;
        PenTransfer *transfer = NULL;
        PenError err = {0};
        job_init(&j, engine, "http", "/data");
        int a = t->class_->post(t, count_posted, NULL);
        int b = t->class_->start(t, &j.request, job_done, &j, &transfer, &err);
        pen__engine_free(&engine);
        _exit(a == PEN_E_CLOSED && b == PEN_E_CLOSED && !engine ? 0 : 1);
    }
    int status = -1;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    CHECK(stat_of(engine, "requests") >= 0); /* ours still works */
}

TEST(nothing_is_left_behind)
{
    pen__engine_free(&engine);
    hang_over = true;
    nap(50);
    int threads = count_threads(), files = count_files();
    PenEngineSettings settings = {.ca_file = bad_server.ca};
    CHECK_INT(pen__engine_new(&settings, &engine, NULL), PEN_OK);
    enum { N = 40 };
    static Job jobs[N];
    for (size_t i = 0; i < N; i++)
        job_init(&jobs[i], engine, i % 2 ? "http" : "https",
                 i % 3 ? "/data" : "/behave/body_rst/1/data");
    CHECK(jobs_run(jobs, N, 20000));
    CHECK(count_threads() == threads + 1);
    pen__engine_free(&engine);
    CHECK_INT(count_threads(), threads);
    CHECK_INT(count_files(), files);
    for (size_t i = 0; i < N; i++)
        job_free(&jobs[i]);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    int r = engine_begin(&engine);
    if (r)
        return r;
    RUN(cancelled_in_mid_body);
    RUN(timers_in_order);
    RUN(timer_that_is_always_due);
    RUN(posts_from_many_threads);
    RUN(idle_costs_nothing);
    RUN(freed_with_transfers_under_way);
    RUN(child_processes_stay_out);
    RUN(nothing_is_left_behind);
    pen__engine_free(&engine);
    bad_server_stop();
    return TEST_END();
}
