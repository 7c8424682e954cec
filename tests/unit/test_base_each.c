/* SPDX-License-Identifier: Apache-2.0 */
#include "base/team.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "test.h"

#include "base/attr.h"
#include "base/error.h"

enum { MOST = 100 };

typedef struct Shared {
    atomic_int done[MOST];
    atomic_int at_once, most_at_once, stops;
    int ticks, end_at; /* the tick that ends it; 0: none */
    uint64_t fails[2]; /* steps */
} Shared;

static void pause_ms(long ms)
{
    struct timespec t = {.tv_nsec = ms * 1000000};
    nanosleep(&t, NULL);
}

static int step(void *ctx, uint64_t number, PenError *reterr)
{
    Shared *s = ctx;
    int now = atomic_fetch_add(&s->at_once, 1) + 1;
    if (now > atomic_load(&s->most_at_once))
        atomic_store(&s->most_at_once, now);
    pause_ms(number == s->fails[0] ? 20 : 2); /* the lower one fails later */
    atomic_fetch_add(&s->done[number], 1);
    atomic_fetch_sub(&s->at_once, 1);
    if (number == s->fails[0] || number == s->fails[1])
        return pen__fail(reterr, PEN_E_IO, "test", "step %d", (int)number);
    return 1; /* as good as 0 */
}

static int tick(void *ctx, PenError *reterr)
{
    Shared *s = ctx;
    s->ticks++;
    return s->ticks == s->end_at ? pen__fail(reterr, PEN_E_CANCELLED, "test", "enough") : PEN_OK;
}

static void stop(void *ctx, int on)
{
    Shared *s = ctx;
    atomic_fetch_add(&s->stops, on ? 1 : 100);
}

static int run(Shared *s, uint64_t n, unsigned threads, PenError *err)
{
    PenEach each = {.name = "test",
                    .n = n,
                    .threads = threads,
                    .step = step,
                    .tick = tick,
                    .stop = stop,
                    .ctx = s};
    *err = (PenError){0};
    return pen__each(&each, err);
}

static int sum(Shared *s)
{
    int n = 0;
    for (int i = 0; i < MOST; i++)
        n += atomic_load(&s->done[i]);
    return n;
}

TEST(every_step_is_done_once)
{
    PenError err;
    for (unsigned threads = 0; threads <= 8; threads += 4) {
        Shared s = {.fails = {MOST, MOST}};
        CHECK_INT(run(&s, MOST, threads, &err), PEN_OK);
        for (int i = 0; i < MOST; i++)
            CHECK_INT(atomic_load(&s.done[i]), 1);
        CHECK(s.ticks > 0);
        CHECK_INT(atomic_load(&s.stops), 0);
        CHECK(atomic_load(&s.most_at_once) <= (int)PEN_MAX(threads, 1u));
        CHECK(threads < 2 || atomic_load(&s.most_at_once) > 1);
    }
    Shared s = {.fails = {MOST, MOST}};
    CHECK_INT(run(&s, 0, 8, &err), PEN_OK);
    CHECK_INT(sum(&s), 0);
}

TEST(the_lowest_error_counts)
{
    PenError err;
    for (unsigned threads = 1; threads <= 8; threads += 7) {
        Shared s = {.fails = {10, 12}};
        CHECK_INT(run(&s, MOST, threads, &err), PEN_E_IO);
        CHECK(strstr(err.message, "step 10"));
        CHECK(sum(&s) < 40);
    }
}

TEST(the_tick_ends_it)
{
    PenError err;
    for (unsigned threads = 1; threads <= 8; threads += 7) {
        Shared s = {.fails = {MOST, MOST}, .end_at = 1};
        CHECK_INT(run(&s, MOST, threads, &err), PEN_E_CANCELLED);
        CHECK(sum(&s) < MOST);
        CHECK_INT(atomic_load(&s.stops), threads > 1 ? 101 : 0);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(every_step_is_done_once);
    RUN(the_lowest_error_counts);
    RUN(the_tick_ends_it);
    return TEST_END();
}
