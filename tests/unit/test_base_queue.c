/* SPDX-License-Identifier: Apache-2.0 */
#include "base/queue.h"

#include <stdlib.h>
#include <time.h>

#include "test.h"

#include "base/sys.h"
#include "base/thread.h"

#define SECOND 1000000000u

TEST(first_in_first_out)
{
    int a, b, c;
    void *p = NULL;
    PenQueue *q = NULL;
    CHECK_INT(pen__queue_new(2, &q, NULL), PEN_OK);
    CHECK_INT(pen__queue_pop(q, &p, 0), PEN_E_TIMEOUT);
    CHECK(p == NULL);
    for (int i = 0; i < 5; i++) { /* goes round the ring */
        CHECK_INT(pen__queue_push(q, &a, 0), PEN_OK);
        CHECK_INT(pen__queue_push(q, &b, 0), PEN_OK);
        CHECK_INT(pen__queue_push(q, &c, 0), PEN_E_TIMEOUT);
        CHECK_INT(pen__queue_pop(q, &p, 0), PEN_OK);
        CHECK(p == &a);
        CHECK_INT(pen__queue_push(q, &c, 0), PEN_OK);
        CHECK_INT(pen__queue_pop(q, &p, 0), PEN_OK);
        CHECK(p == &b);
        CHECK_INT(pen__queue_pop(q, &p, 0), PEN_OK);
        CHECK(p == &c);
    }
    pen__queue_free(&q);
    CHECK(q == NULL);
    pen__queue_free(&q);
}

TEST(close_gives_what_is_left)
{
    int a;
    void *p = NULL;
    PenQueue *q = NULL;
    CHECK_INT(pen__queue_new(2, &q, NULL), PEN_OK);
    CHECK_INT(pen__queue_push(q, &a, 0), PEN_OK);
    pen__queue_close(q);
    CHECK_INT(pen__queue_push(q, &a, UINT64_MAX), PEN_END);
    CHECK_INT(pen__queue_pop(q, &p, UINT64_MAX), PEN_OK);
    CHECK(p == &a);
    CHECK_INT(pen__queue_pop(q, &p, UINT64_MAX), PEN_END);
    pen__queue_free(&q);
}

TEST(deadline_passes)
{
    void *p;
    PenQueue *q = NULL;
    CHECK_INT(pen__queue_new(1, &q, NULL), PEN_OK);
    uint64_t start = pen__sys->now_ns();
    CHECK_INT(pen__queue_pop(q, &p, pen__deadline_after(30000000)), PEN_E_TIMEOUT);
    uint64_t spent = pen__sys->now_ns() - start;
    CHECK(spent >= 30000000);
    CHECK(spent < 5ull * SECOND);
    pen__queue_free(&q);
}

/* With a clock that stands far ahead, even an hour is over at once. */
static uint64_t turned_now_ns(void)
{
    return pen__sys_real.now_ns() + 3600ull * SECOND;
}

TEST(turned_clock)
{
    void *p;
    PenQueue *q = NULL;
    CHECK_INT(pen__queue_new(1, &q, NULL), PEN_OK);
    uint64_t deadline = pen__deadline_after(3000ull * SECOND);
    PenSys turned = pen__sys_real;
    turned.now_ns = turned_now_ns;
    pen__sys = &turned;
    int r = pen__queue_pop(q, &p, deadline);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_TIMEOUT);
    pen__queue_free(&q);
}

typedef struct Closer {
    PenQueue *q;
    uint64_t at_ns;
} Closer;

static void *close_soon(void *arg)
{
    Closer *c = arg;
    struct timespec t = {.tv_nsec = 10000000};
    nanosleep(&t, NULL);
    c->at_ns = pen__sys->now_ns();
    pen__queue_close(c->q);
    return NULL;
}

/* At once, that is: a waiter looks by itself too, but only every 50 ms. The best of ten counts, as
 * this machine may have other things to do. */
TEST(close_wakes)
{
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < 10; i++) {
        void *p;
        Closer c = {0};
        CHECK_INT(pen__queue_new(1, &c.q, NULL), PEN_OK);
        pthread_t t;
        CHECK_INT(pen__thread_start(&t, close_soon, &c, NULL), PEN_OK);
        int r = pen__queue_pop(c.q, &p, pen__deadline_after(60ull * SECOND));
        uint64_t now = pen__sys->now_ns();
        pen__thread_join(t);
        CHECK_INT(r, PEN_END);
        best_ns = now - c.at_ns < best_ns ? now - c.at_ns : best_ns;
        pen__queue_free(&c.q);
    }
    CHECK(best_ns < 20000000);
}

typedef struct Partner {
    PenQueue *q;
    bool pops; /* else pushes */
    uint64_t at_ns;
} Partner;

static void *act_soon(void *arg)
{
    static int item;
    Partner *p = arg;
    void *got;
    struct timespec t = {.tv_nsec = 10000000};
    nanosleep(&t, NULL);
    p->at_ns = pen__sys->now_ns();
    if (p->pops)
        (void)pen__queue_pop(p->q, &got, 0);
    else
        (void)pen__queue_push(p->q, &item, 0);
    return NULL;
}

/* How many of 21 waits end within 20 ms of the push or pop that they wait for. A waiter that nobody
 * wakes finds out by itself, but after 50 ms in all; on a busy machine a few may be either way. */
static void count_quick(bool pops, int *ret_n)
{
    int a = 0;
    for (int i = 0; i < 21; i++) {
        void *p;
        Partner other = {.pops = pops};
        CHECK_INT(pen__queue_new(1, &other.q, NULL), PEN_OK);
        if (pops)
            CHECK_INT(pen__queue_push(other.q, &a, 0), PEN_OK);
        pthread_t t;
        CHECK_INT(pen__thread_start(&t, act_soon, &other, NULL), PEN_OK);
        uint64_t deadline = pen__deadline_after(60ull * SECOND);
        int r =
            pops ? pen__queue_push(other.q, &a, deadline) : pen__queue_pop(other.q, &p, deadline);
        uint64_t now = pen__sys->now_ns();
        pen__thread_join(t);
        CHECK_INT(r, PEN_OK);
        *ret_n += now - other.at_ns < 20000000;
        pen__queue_free(&other.q);
    }
}

TEST(push_wakes_pop)
{
    int n = 0;
    count_quick(false, &n);
    CHECK(n > 10);
}

TEST(pop_wakes_push)
{
    int n = 0;
    count_quick(true, &n);
    CHECK(n > 10);
}

/* The same for a push that waits for room. */
TEST(close_wakes_push)
{
    int a, n = 0;
    for (int i = 0; i < 21; i++) {
        Closer c = {0};
        CHECK_INT(pen__queue_new(1, &c.q, NULL), PEN_OK);
        CHECK_INT(pen__queue_push(c.q, &a, 0), PEN_OK);
        pthread_t t;
        CHECK_INT(pen__thread_start(&t, close_soon, &c, NULL), PEN_OK);
        int r = pen__queue_push(c.q, &a, pen__deadline_after(60ull * SECOND));
        uint64_t now = pen__sys->now_ns();
        pen__thread_join(t);
        CHECK_INT(r, PEN_END);
        n += now - c.at_ns < 20000000;
        pen__queue_free(&c.q);
    }
    CHECK(n > 10);
}

enum { N_SIDES = 4, N_EACH = 5000 };

typedef struct Side {
    PenQueue *q;
    uint64_t sum;
    int n, bad;
} Side;

static unsigned char numbers[N_EACH + 1];

static void *produce(void *arg)
{
    Side *s = arg;
    for (int i = 1; i <= N_EACH; i++)
        s->bad += pen__queue_push(s->q, &numbers[i], pen__deadline_after(60ull * SECOND)) != 0;
    return NULL;
}

static void *consume(void *arg)
{
    Side *s = arg;
    void *p;
    while (pen__queue_pop(s->q, &p, pen__deadline_after(60ull * SECOND)) == PEN_OK) {
        s->sum += (uint64_t)((unsigned char *)p - numbers);
        s->n++;
    }
    return NULL;
}

TEST(many_threads)
{
    PenQueue *q = NULL;
    CHECK_INT(pen__queue_new(7, &q, NULL), PEN_OK);
    pthread_t t[2 * N_SIDES];
    Side sides[2 * N_SIDES];
    for (int i = 0; i < 2 * N_SIDES; i++) {
        sides[i] = (Side){.q = q};
        CHECK_INT(pen__thread_start(&t[i], i < N_SIDES ? produce : consume, &sides[i], NULL), 0);
    }
    for (int i = 0; i < N_SIDES; i++)
        pen__thread_join(t[i]);
    pen__queue_close(q);
    Side all = {0};
    for (int i = 0; i < 2 * N_SIDES; i++) {
        if (i >= N_SIDES)
            pen__thread_join(t[i]);
        all.sum += sides[i].sum;
        all.n += sides[i].n;
        all.bad += sides[i].bad;
    }
    pen__queue_free(&q);
    CHECK_INT(all.bad, 0);
    CHECK_INT(all.n, N_SIDES * N_EACH);
    CHECK_INT(all.sum, (uint64_t)N_SIDES * N_EACH * (N_EACH + 1) / 2);
}

static int allocs_left;

static void *failing_alloc(size_t bytes)
{
    return allocs_left-- > 0 ? malloc(bytes) : NULL;
}

TEST(out_of_memory)
{
    PenSys sys = pen__sys_real;
    sys.alloc = failing_alloc;
    pen__sys = &sys;
    PenQueue *q = NULL;
    PenError err;
    int r[3];
    for (int i = 0; i < 3; i++) {
        allocs_left = i;
        r[i] = pen__queue_new(4, &q, &err);
    }
    pen__sys = &pen__sys_real;
    CHECK_INT(r[0], PEN_E_NO_MEMORY);
    CHECK_INT(r[1], PEN_E_NO_MEMORY);
    CHECK_INT(r[2], PEN_OK);
    pen__queue_free(&q);
    CHECK_INT(pen__queue_new(0, &q, &err), PEN_E_INVALID);
    CHECK_INT(pen__queue_new(SIZE_MAX / 4, &q, &err), PEN_E_NO_MEMORY);
    CHECK(q == NULL);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(first_in_first_out);
    RUN(close_gives_what_is_left);
    RUN(deadline_passes);
    RUN(turned_clock);
    RUN(close_wakes);
    RUN(push_wakes_pop);
    RUN(pop_wakes_push);
    RUN(close_wakes_push);
    RUN(many_threads);
    RUN(out_of_memory);
    return TEST_END();
}
