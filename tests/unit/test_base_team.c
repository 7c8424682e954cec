/* SPDX-License-Identifier: Apache-2.0 */
#include "base/team.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test.h"

#include "base/sys.h"
#include "base/thread.h"

#define MINUTE 60000000000u
#define MILLISECOND 1000000u

enum { MOST = 64 };

static void pause_ms(long ms)
{
    struct timespec t = {.tv_nsec = ms * 1000000};
    nanosleep(&t, NULL);
}

typedef struct Shared {
    atomic_int seen[MOST];   /* how often a number has run */
    char name[16];           /* of thread 0 */
    pthread_mutex_t gate;    /* threads pass it before they end */
    atomic_int ticks, ended; /* `ended`: threads that were behind the gate at the last tick */
    atomic_int passed;
    uint64_t end_ns;
} Shared;

static void count(void *ctx, unsigned number)
{
    Shared *s = ctx;
    atomic_fetch_add(&s->seen[number], 1);
    if (number == 0)
        pthread_getname_np(pthread_self(), s->name, sizeof s->name);
}

static void pass_gate(void *ctx, unsigned number)
{
    Shared *s = ctx;
    count(ctx, number);
    pthread_mutex_lock(&s->gate);
    pthread_mutex_unlock(&s->gate);
    atomic_fetch_add(&s->passed, 1);
}

static void end_soon(void *ctx, unsigned number)
{
    Shared *s = ctx;
    (void)number;
    pause_ms(10);
    s->end_ns = pen__sys->now_ns();
}

static void count_tick(void *ctx)
{
    Shared *s = ctx;
    atomic_fetch_add(&s->ticks, 1);
}

static void open_gate_at_second_tick(void *ctx)
{
    Shared *s = ctx;
    if (atomic_fetch_add(&s->ticks, 1) == 1)
        pthread_mutex_unlock(&s->gate);
    atomic_store(&s->ended, atomic_load(&s->passed));
}

TEST(each_number_runs_once)
{
    for (unsigned n = 1; n <= MOST; n *= 4) {
        Shared s = {0};
        PenTeamWork work = {.name = "pen-some", .run = count, .ctx = &s};
        CHECK_INT(pen__team_run(&work, n, NULL), PEN_OK);
        for (unsigned i = 0; i < MOST; i++)
            CHECK_INT(atomic_load(&s.seen[i]), i < n);
        CHECK_STR(s.name, "pen-some");
    }
}

/* The threads end because the second tick lets them, and the last tick finds them all at the end.
 */
TEST(ticks_while_threads_run_and_at_the_end)
{
    Shared s = {0};
    PenTeamWork work = {"pen-some", pass_gate, open_gate_at_second_tick, &s};
    pthread_mutex_init(&s.gate, NULL);
    pthread_mutex_lock(&s.gate);
    CHECK_INT(pen__team_run(&work, 3, NULL), PEN_OK);
    CHECK(atomic_load(&s.ticks) >= 3);
    CHECK_INT(atomic_load(&s.ended), 3);
    pthread_mutex_destroy(&s.gate);
}

TEST(wait_has_a_deadline)
{
    Shared s = {0};
    PenTeamWork work = {.name = "pen-some", .run = pass_gate, .ctx = &s};
    PenTeam *team = NULL;
    pthread_mutex_init(&s.gate, NULL);
    pthread_mutex_lock(&s.gate);
    int started = pen__team_start(&work, 2, &team, NULL);
    int early = pen__team_wait(team, pen__deadline_after(MILLISECOND));
    pthread_mutex_unlock(&s.gate);
    int late = pen__team_wait(team, pen__deadline_after(MINUTE));
    int passed = atomic_load(&s.passed);
    int again = pen__team_wait(team, 0);
    pen__team_join(&team);
    CHECK_INT(started, PEN_OK);
    CHECK_INT(early, PEN_E_TIMEOUT);
    CHECK_INT(late, PEN_OK);
    CHECK_INT(passed, 2);
    CHECK_INT(again, PEN_OK);
    CHECK(team == NULL);
    pen__team_join(&team);
    pthread_mutex_destroy(&s.gate);
}

/* The last thread wakes the one that waits: the best of ten, as the machine may be busy. */
TEST(wait_ends_at_once)
{
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < 10; i++) {
        Shared s = {0};
        PenTeamWork work = {.name = "pen-some", .run = end_soon, .ctx = &s};
        PenTeam *team = NULL;
        CHECK_INT(pen__team_start(&work, 1, &team, NULL), PEN_OK);
        CHECK_INT(pen__team_wait(team, pen__deadline_after(MINUTE)), PEN_OK);
        uint64_t woken_ns = pen__sys->now_ns();
        pen__team_join(&team);
        uint64_t late_ns = woken_ns - s.end_ns;
        best_ns = late_ns < best_ns ? late_ns : best_ns;
    }
    CHECK(best_ns < 20 * MILLISECOND);
}

static atomic_int releases;

static void counting_release(void *p)
{
    free(p);
    atomic_fetch_add(&releases, 1);
}

/* The threads that are left go on, and the last one frees the team. */
TEST(threads_left_behind)
{
    PenSys sys = pen__sys_real;
    Shared s = {0};
    PenTeamWork work = {.name = "pen-some", .run = pass_gate, .ctx = &s};
    PenTeam *team = NULL;
    sys.release = counting_release;
    pthread_mutex_init(&s.gate, NULL);
    pthread_mutex_lock(&s.gate);
    pen__sys = &sys;
    atomic_store(&releases, 0);
    int started = pen__team_start(&work, 4, &team, NULL);
    pen__team_leave(&team);
    bool is_left = team == NULL && atomic_load(&releases) == 0;
    pthread_mutex_unlock(&s.gate);
    uint64_t end = pen__deadline_after(MINUTE);
    while (atomic_load(&releases) == 0 && pen__sys->now_ns() < end)
        pause_ms(1);
    pen__sys = &pen__sys_real;
    CHECK_INT(started, PEN_OK);
    CHECK(is_left);
    CHECK_INT(atomic_load(&releases), 1);
    CHECK_INT(atomic_load(&s.passed), 4);
    pthread_mutex_destroy(&s.gate);
}

TEST(leaving_threads_that_have_ended_joins_them)
{
    PenSys sys = pen__sys_real;
    Shared s = {0};
    PenTeamWork work = {.name = "pen-some", .run = count, .ctx = &s};
    PenTeam *team = NULL;
    sys.release = counting_release;
    pen__sys = &sys;
    atomic_store(&releases, 0);
    int started = pen__team_start(&work, 2, &team, NULL);
    int waited = pen__team_wait(team, pen__deadline_after(MINUTE));
    pen__team_leave(&team);
    int n = atomic_load(&releases);
    pen__sys = &pen__sys_real;
    CHECK_INT(started | waited, PEN_OK);
    CHECK_INT(n, 1);
    CHECK(team == NULL);
}

static int starts_left;

static int refusing_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
    return starts_left-- > 0 ? pen__sys_real.thread_start(ret, run, arg) : -EAGAIN;
}

/* When one thread is refused, none calls the function. */
TEST(all_or_none)
{
    PenSys sys = pen__sys_real;
    sys.thread_start = refusing_start;
    for (int i = 0; i < 5; i++) {
        Shared s = {0};
        PenTeamWork work = {"pen-some", count, count_tick, &s};
        PenError err = {0};
        int ran = 0;
        starts_left = i;
        pen__sys = &sys;
        int r = pen__team_run(&work, 4, &err);
        pen__sys = &pen__sys_real;
        for (int k = 0; k < 4; k++)
            ran += atomic_load(&s.seen[k]);
        CHECK_INT(r, i < 4 ? PEN_E_LIMIT : PEN_OK);
        CHECK_INT(ran, i < 4 ? 0 : 4);
        CHECK_INT(err.os_errno, i < 4 ? EAGAIN : 0);
        CHECK_INT(atomic_load(&s.ticks) > 0, i == 4);
    }
}

static void *no_memory(size_t bytes)
{
    (void)bytes;
    return NULL;
}

TEST(out_of_memory)
{
    PenSys sys = pen__sys_real;
    Shared s = {0};
    PenTeamWork work = {.name = "pen-some", .run = count, .ctx = &s};
    PenTeam *team = NULL;
    sys.alloc = no_memory;
    pen__sys = &sys;
    int r = pen__team_start(&work, 2, &team, NULL);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_NO_MEMORY);
    CHECK(team == NULL);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(each_number_runs_once);
    RUN(ticks_while_threads_run_and_at_the_end);
    RUN(wait_has_a_deadline);
    RUN(wait_ends_at_once);
    RUN(threads_left_behind);
    RUN(leaving_threads_that_have_ended_joins_them);
    RUN(all_or_none);
    RUN(out_of_memory);
    return TEST_END();
}
