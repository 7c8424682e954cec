/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "test.h"

#include "base/sys.h"
#include "base/thread.h"

#define MINUTE 60000000000u

static void add_one(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

TEST(runs_all)
{
    for (unsigned n = 1; n <= 8; n *= 2) {
        PenPool *pool = NULL;
        atomic_int count = 0;
        CHECK_INT(pen__pool_start(n, 5, &pool, NULL), PEN_OK);
        for (int round = 1; round <= 3; round++) {
            for (int i = 0; i < 1000; i++)
                CHECK_INT(pen__pool_submit(pool, add_one, &count, pen__deadline_after(MINUTE)), 0);
            CHECK_INT(pen__pool_wait(pool, pen__deadline_after(MINUTE)), PEN_OK);
            CHECK_INT(atomic_load(&count), 1000 * round);
        }
        pen__pool_stop(&pool);
        CHECK(pool == NULL);
    }
}

TEST(stop_finishes_jobs)
{
    PenPool *pool = NULL;
    atomic_int count = 0;
    CHECK_INT(pen__pool_start(2, 100, &pool, NULL), PEN_OK);
    for (int i = 0; i < 100; i++)
        CHECK_INT(pen__pool_submit(pool, add_one, &count, pen__deadline_after(MINUTE)), PEN_OK);
    pen__pool_stop(&pool);
    CHECK_INT(atomic_load(&count), 100);
    pen__pool_stop(&pool);
}

typedef struct Gate {
    pthread_mutex_t lock;
} Gate;

static void pass_gate(void *arg)
{
    Gate *g = arg;
    pthread_mutex_lock(&g->lock);
    pthread_mutex_unlock(&g->lock);
}

TEST(deadlines)
{
    PenPool *pool = NULL;
    Gate gate;
    pthread_mutex_init(&gate.lock, NULL);
    CHECK_INT(pen__pool_start(1, 2, &pool, NULL), PEN_OK);
    pthread_mutex_lock(&gate.lock);
    /* One job is held at the gate, two wait; there is no room for a fourth. */
    int r[3], full, waited;
    for (int i = 0; i < 3; i++)
        r[i] = pen__pool_submit(pool, pass_gate, &gate, pen__deadline_after(MINUTE));
    full = pen__pool_submit(pool, pass_gate, &gate, pen__deadline_after(1000000));
    waited = pen__pool_wait(pool, pen__deadline_after(1000000));
    pthread_mutex_unlock(&gate.lock);
    CHECK_INT(r[0] | r[1] | r[2], PEN_OK);
    CHECK_INT(full, PEN_E_TIMEOUT);
    CHECK_INT(waited, PEN_E_TIMEOUT);
    CHECK_INT(pen__pool_wait(pool, pen__deadline_after(MINUTE)), PEN_OK);
    pen__pool_stop(&pool);
    pthread_mutex_destroy(&gate.lock);
}

static void end_soon(void *arg)
{
    struct timespec t = {.tv_nsec = 10000000};
    nanosleep(&t, NULL);
    *(uint64_t *)arg = pen__sys->now_ns();
}

/* The last job wakes who waits: the best of ten, as the machine may be busy. */
TEST(wait_ends_at_once)
{
    PenPool *pool = NULL;
    uint64_t best_ns = UINT64_MAX;
    CHECK_INT(pen__pool_start(2, 4, &pool, NULL), PEN_OK);
    for (int i = 0; i < 10; i++) {
        uint64_t end_ns = 0;
        CHECK_INT(pen__pool_submit(pool, end_soon, &end_ns, 0), PEN_OK);
        CHECK_INT(pen__pool_wait(pool, pen__deadline_after(MINUTE)), PEN_OK);
        uint64_t late_ns = pen__sys->now_ns() - end_ns;
        best_ns = late_ns < best_ns ? late_ns : best_ns;
    }
    pen__pool_stop(&pool);
    CHECK(best_ns < 20000000);
}

typedef struct Chain {
    PenPool *pool;
    atomic_int left;
} Chain;

static void next_link(void *arg)
{
    Chain *c = arg;
    if (atomic_fetch_sub(&c->left, 1) > 1)
        pen__pool_submit(c->pool, next_link, c, 0);
}

TEST(jobs_hand_in_jobs)
{
    Chain c = {.left = 50};
    CHECK_INT(pen__pool_start(2, 4, &c.pool, NULL), PEN_OK);
    CHECK_INT(pen__pool_submit(c.pool, next_link, &c, 0), PEN_OK);
    CHECK_INT(pen__pool_wait(c.pool, pen__deadline_after(MINUTE)), PEN_OK);
    CHECK_INT(atomic_load(&c.left), 0);
    pen__pool_stop(&c.pool);
}

static int starts_left;
static int allocs_left;

static int refusing_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
    return starts_left-- > 0 ? pen__sys_real.thread_start(ret, run, arg) : -EAGAIN;
}

static void *failing_alloc(size_t bytes)
{
    return allocs_left-- > 0 ? malloc(bytes) : NULL;
}

TEST(thread_refused)
{
    PenSys sys = pen__sys_real;
    sys.thread_start = refusing_start;
    pen__sys = &sys;
    for (int i = 0; i < 4; i++) {
        PenPool *pool = NULL;
        PenError err = {0};
        starts_left = i;
        int r = pen__pool_start(4, 8, &pool, &err);
        bool untouched = pool == NULL;
        pen__pool_stop(&pool);
        if (r != PEN_E_LIMIT || !untouched || err.os_errno != EAGAIN)
            pen__sys = &pen__sys_real;
        CHECK_INT(r, PEN_E_LIMIT);
        CHECK(untouched);
        CHECK_INT(err.os_errno, EAGAIN);
        char expected[32];
        snprintf(expected, sizeof expected, "thread %d of 4: ", i + 1);
        CHECK_MEM(err.message, expected, strlen(expected));
    }
    pen__sys = &pen__sys_real;
}

TEST(out_of_memory)
{
    PenSys sys = pen__sys_real;
    sys.alloc = failing_alloc;
    pen__sys = &sys;
    int points = 0, r = PEN_E_NO_MEMORY;
    PenPool *pool = NULL;
    for (; r == PEN_E_NO_MEMORY && points < 100 && !pool; points++) {
        allocs_left = points;
        r = pen__pool_start(2, 4, &pool, NULL);
    }
    pen__pool_stop(&pool);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_OK);
    CHECK_INT(points, 7); /* six allocations */
}

TEST(bad_arguments)
{
    PenPool *pool = NULL;
    CHECK_INT(pen__pool_start(0, 4, &pool, NULL), PEN_E_INVALID);
    CHECK_INT(pen__pool_start(70000, 4, &pool, NULL), PEN_E_INVALID);
    CHECK_INT(pen__pool_start(1, 0, &pool, NULL), PEN_E_INVALID);
    CHECK(pool == NULL);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(runs_all);
    RUN(stop_finishes_jobs);
    RUN(deadlines);
    RUN(wait_ends_at_once);
    RUN(jobs_hand_in_jobs);
    RUN(thread_refused);
    RUN(out_of_memory);
    RUN(bad_arguments);
    return TEST_END();
}
