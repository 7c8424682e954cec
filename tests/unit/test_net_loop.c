/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's loop: cancelling, timers, calls from other threads, and how it ends. */
#include "net/http/engine.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

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

/* Cancels it after so many milliseconds; false when it does not go away. */
static bool cancel_after(Job *j, unsigned ms)
{
    PenTransport *t = pen__engine_transport(engine);
    bool gone = false;
    job_init(j, engine, "http", "/behave/body_stall/1/data");
    j->started = 1; /* 0 when it has been */
    if (job_post(j) != PEN_OK)
        return false;
    nap(ms);
    if (t->class_->post(t, cancel_job, j) != PEN_OK)
        return false;
    for (int i = 0; i < 2000 && !gone; i++) {
        nap(10);
        pthread_mutex_lock(&help_mutex);
        gone = j->started == PEN_OK && !j->transfer;
        pthread_mutex_unlock(&help_mutex);
    }
    return gone;
}

/* The body may come late on a busy machine; then once more, with more time. */
TEST(cancelled_in_mid_body)
{
    Job j;
    CHECK(cancel_after(&j, 150));
    for (unsigned ms = 1000; !j.reply.bytes && ms < 10000; ms *= 3) {
        job_free(&j);
        CHECK(cancel_after(&j, ms));
    }
    nap(50);
    pthread_mutex_lock(&help_mutex);
    bool ended = j.ended;
    pthread_mutex_unlock(&help_mutex);
    CHECK(!ended);
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
    while (clocks.n < 5 && pen__sys->now_ns() < start + 60 * SECOND)
        pen__cond_wait(&help_cond, &help_mutex, start + 60 * SECOND);
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
    for (int i = 0; i < 3000 && spinning; i++)
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
    for (int i = 0; i < 5000 && posted < 8000; i++)
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
    CHECK(pen__sys->now_ns() - start < 10 * SECOND);
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

static int threads_at_start;

TEST(nothing_is_left_behind)
{
    pen__engine_free(&engine);
    hang_over = true;
    for (int i = 0; i < 200 && count_threads() > threads_at_start; i++)
        nap(10); /* until threads that looked for a name have ended */
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

/* ---- many answers at once ---- */

enum { CROWD = 20, BODY = 1000 };

/* Answers that lie ready when the loop goes on, and what was reported of their arrival. */
typedef struct Crowd {
    Job jobs[CROWD];
    PenArrival arrivals[CROWD];
    uint64_t heard[CROWD];
    int fds[CROWD];
    bool held, released; /* under help_mutex */
} Crowd;

static void hear(void *ctx, uint64_t bytes)
{
    *(uint64_t *)ctx += bytes;
}

static void hold_loop(void *ctx)
{
    Crowd *c = ctx;
    pthread_mutex_lock(&help_mutex);
    c->held = true;
    pthread_cond_broadcast(&help_cond);
    while (!c->released)
        pthread_cond_wait(&help_cond, &help_mutex);
    pthread_mutex_unlock(&help_mutex);
}

static int listen_here(int *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    /* Those that are accepted have it, too. */
    const struct timeval limit = {.tv_sec = 30};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0 ||
        bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, CROWD) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        abort();
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static bool takes_request(int fd)
{
    char text[4096] = "";
    size_t n = 0;
    while (!strstr(text, "\r\n\r\n") && n < sizeof text - 1) {
        ssize_t got = recv(fd, text + n, sizeof text - 1 - n, 0);
        if (got <= 0)
            return false;
        n += (size_t)got;
    }
    return true;
}

/* True when the other side has all of it. */
static bool answers(int fd)
{
    char text[BODY + 100];
    int n = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BODY);
    int left = 1;
    memset(text + n, 'x', BODY);
    if (send(fd, text, (size_t)n + BODY, 0) != n + BODY)
        return false;
    while (ioctl(fd, SIOCOUTQ, &left) == 0 && left)
        nap(1);
    return left == 0;
}

static void answer_all(Crowd *c, int n)
{
    PenTransport *t = pen__engine_transport(engine);
    CHECK_INT(t->class_->post(t, hold_loop, c), PEN_OK);
    pthread_mutex_lock(&help_mutex);
    while (!c->held)
        pthread_cond_wait(&help_cond, &help_mutex);
    pthread_mutex_unlock(&help_mutex);
    for (int i = 0; i < n; i++)
        CHECK(answers(c->fds[i]));
    pthread_mutex_lock(&help_mutex);
    c->released = true;
    pthread_cond_broadcast(&help_cond);
    for (int i = 0; i < n; i++)
        while (!c->jobs[i].ended)
            pthread_cond_wait(&help_cond, &help_mutex);
    pthread_mutex_unlock(&help_mutex);
}

static void run_crowd(int n, uint64_t expected)
{
    static Crowd crowd;
    int port, listener = listen_here(&port);
    crowd = (Crowd){0};
    for (int i = 0; i < n; i++) {
        Job *j = &crowd.jobs[i];
        job_init(j, engine, "http", "/");
        snprintf(j->url, sizeof j->url, "http://127.0.0.1:%d/", port);
        crowd.arrivals[i] = (PenArrival){.call = hear, .ctx = &crowd.heard[i]};
        j->request.arrival = &crowd.arrivals[i];
        CHECK_INT(job_post(j), PEN_OK);
    }
    for (int i = 0; i < n; i++) {
        crowd.fds[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        CHECK(crowd.fds[i] >= 0 && takes_request(crowd.fds[i]));
    }
    answer_all(&crowd, n);
    for (int i = 0; i < n; i++) {
        Job *j = &crowd.jobs[i];
        CHECK_INT(j->reply.failure, PEN_HTTP_OK);
        CHECK_INT(j->reply.bytes, BODY);
        CHECK(j->into[0] == 'x' && j->into[BODY - 1] == 'x' && j->into[BODY] == 0xee);
        CHECK_INT(crowd.heard[i], expected);
        close(crowd.fds[i]);
        job_free(j);
    }
    close(listener);
}

/* Their bytes are in place either way; with many, receiving comes first and nobody hears of it. */
TEST(arrivals_of_few_and_of_many)
{
    run_crowd(4, BODY);
    run_crowd(CROWD, 0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    threads_at_start = count_threads();
    int r = engine_begin(&engine);
    if (r)
        return r;
    RUN(cancelled_in_mid_body);
    RUN(timers_in_order);
    RUN(timer_that_is_always_due);
    RUN(posts_from_many_threads);
    RUN(arrivals_of_few_and_of_many);
    RUN(idle_costs_nothing);
    RUN(freed_with_transfers_under_way);
    RUN(child_processes_stay_out);
    RUN(nothing_is_left_behind);
    pen__engine_free(&engine);
    bad_server_stop();
    return TEST_END();
}
