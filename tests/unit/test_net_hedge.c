/* SPDX-License-Identifier: Apache-2.0 */
/* Second requests for slow ones: when, how many, and whose bytes are taken. */
#include "net/retry/policy_impl.h"

#include "test.h"

#include "base/mem.h"
#include "base/sys.h"
#include "policy_help.h"

/* As if so many answers had come, each after 20 ms, and a hedge could be paid for. */
static Bench *seasoned(const PenPolicySettings *s, const SimAnswer *script, size_t n_script)
{
    Bench *b = bench_new(s, script, n_script);
    for (int i = 0; i < PEN_TAIL_LEAST; i++)
        pen__tail_add(&b->p->tails[0], 20 * SIM_MS);
    b->p->hedge_credit = 100;
    return b;
}

TEST(the_tail)
{
    PenTail tail;
    memset(&tail, 0, sizeof tail);
    for (int i = 1; i < PEN_TAIL_LEAST; i++)
        pen__tail_add(&tail, SIM_MS);
    CHECK_INT(pen__tail_p99(&tail), 0); /* too few */
    pen__tail_add(&tail, SIM_MS);
    uint64_t p99 = pen__tail_p99(&tail);
    CHECK(p99 >= SIM_MS && p99 <= SIM_MS + SIM_MS / 7);
    /* 1, 2, ... 1,000 ms, then ten slow ones instead of the first: p99 is where they begin. */
    for (uint64_t i = 1; i <= 1000; i++)
        pen__tail_add(&tail, i * SIM_MS);
    p99 = pen__tail_p99(&tail);
    CHECK(p99 >= 990 * SIM_MS && p99 <= 1130 * SIM_MS);
    for (int i = 0; i < 990; i++)
        pen__tail_add(&tail, 3 * SIM_MS);
    CHECK(pen__tail_p99(&tail) <= 4 * SIM_MS); /* the ten that are left are the 1 % */
    pen__tail_add(&tail, UINT64_MAX / 2);
    pen__tail_add(&tail, 0);
    unsigned sum = 0;
    for (int i = 0; i < PEN_LOG_BINS; i++)
        sum += tail.count[i];
    CHECK_INT(sum, PEN_TAIL_LAST);
    CHECK(pen__tail_median(&tail) >= 3 * SIM_MS && pen__tail_median(&tail) <= 4 * SIM_MS);
    CHECK_INT(pen__tail_class(0), 0);
    CHECK_INT(pen__tail_class(65536), 0);
    CHECK_INT(pen__tail_class(65537), 1);
    CHECK_INT(pen__tail_class(SIZE_MAX), PEN_TAIL_CLASSES - 1);
}

TEST(the_hedge_wins)
{
    Bench *b = seasoned(NULL, SCRIPT({.after_ns = 4 * SIM_S}));
    Want *w = &b->w[0];
    want_start(w, b->p);
    run_s(b, 1);
    CHECK_INT(w->done, 1);
    CHECK_INT(w->r, PEN_OK);
    CHECK_INT(w->prepared, 1); /* the same request once more */
    CHECK_INT(w->judged, 1);
    CHECK_INT(b->n, 2);
    CHECK_INT(b->at_ns[1] - b->at_ns[0], 200 * SIM_MS);
    CHECK_INT(b->fresh[0], 0);
    CHECK_INT(b->fresh[1], 1);
    CHECK(simnet_body_is(w->url, w->into, sizeof w->into));
    CHECK_INT(simnet_transfers(b->t), 0); /* the slow one was cancelled */
    CHECK_INT(b->p->hedges, 1);
    CHECK_INT(b->p->hedges_won, 1);
    CHECK_INT(b->p->attempts, 2);
    CHECK_INT(b->p->retries, 0);
    memset(w->into, 0, sizeof w->into);
    run_s(b, 10); /* and it does not write any more */
    CHECK_INT(w->into[1], 0);
    bench_free(b);
}

TEST(the_hedge_loses)
{
    Bench *b = seasoned(NULL, SCRIPT({.after_ns = 300 * SIM_MS}, {.after_ns = 2 * SIM_S}));
    Want *w = &b->w[0];
    want_start(w, b->p);
    run_s(b, 1);
    CHECK_INT(w->r, PEN_OK);
    CHECK_INT(w->done, 1);
    CHECK_INT(b->n, 2);
    CHECK(simnet_body_is(w->url, w->into, sizeof w->into));
    CHECK_INT(simnet_transfers(b->t), 0);
    CHECK_INT(b->p->hedges, 1);
    CHECK_INT(b->p->hedges_won, 0);
    bench_free(b);
}

/* What the request would have put into several places comes from one, and is shared out. */
TEST(the_hedge_wins_for_several_places)
{
    for (int corrupt = 0; corrupt < 2; corrupt++) {
        Bench *b = seasoned(NULL, SCRIPT({.after_ns = 4 * SIM_S}, {.corrupt = corrupt == 1}));
        Want *w = &b->w[0];
        struct iovec v[4] = {
            {w->into, 1}, {w->into + 1, 0}, {w->into + 1, 3000}, {w->into + 3001, 1095}};
        w->v = v;
        w->n_v = 4;
        want_start(w, b->p);
        run_s(b, 2);
        CHECK_INT(w->r, PEN_OK);
        CHECK_INT(b->n, 2 + corrupt); /* a wrong byte is seen, so it was taken from there */
        CHECK_INT(b->p->hedges_won, 1);
        CHECK(simnet_body_is(w->url, w->into, sizeof w->into));
        bench_free(b);
    }
}

typedef struct Heard {
    uint64_t last; /* reported */
    unsigned calls;
} Heard;

static void hear(void *ctx, uint64_t bytes)
{
    Heard *h = ctx;
    h->last = bytes;
    h->calls++;
}

/* The bytes of the loser do not count: those of a hedge are not reported, and if they are taken,
 * what was reported of the first request is taken back. */
TEST(who_hears_of_arrivals)
{
    for (int wins = 0; wins < 2; wins++) {
        Bench *b = seasoned(NULL, SCRIPT({.after_ns = wins ? 4 * SIM_S : 300 * SIM_MS},
                                         {.after_ns = wins ? 0 : 2 * SIM_S}));
        Want *w = &b->w[0];
        Heard heard = {0};
        PenArrival arrival = {.call = hear, .ctx = &heard};
        w->arrival = &arrival;
        want_start(w, b->p);
        hear(&heard, 3000); /* a part of the first one's body, as the engine reports it */
        run_s(b, 1);
        CHECK_INT(w->r, PEN_OK);
        CHECK_INT(b->n, 2);
        CHECK_INT(b->p->hedges_won, wins);
        CHECK_INT(b->heard[0], 1);
        CHECK_INT(b->heard[1], 0);
        CHECK_INT(heard.last, wins ? 0 : 3000);
        CHECK_INT(heard.calls, 1 + wins);
        bench_free(b);
    }
}

TEST(one_of_the_two_fails)
{
    /* The first, then the hedge: the other one goes on, and nothing is prepared anew. */
    Bench *b = seasoned(
        NULL, SCRIPT({.status = 500, .after_ns = 250 * SIM_MS}, {.after_ns = 100 * SIM_MS}));
    want_start(&b->w[0], b->p);
    run_s(b, 2);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->w[0].prepared, 1);
    CHECK_INT(b->w[0].judged, 2);
    CHECK_INT(b->n, 2);
    CHECK(simnet_body_is(b->w[0].url, b->w[0].into, sizeof b->w[0].into));
    bench_free(b);
    CHECK_OK_SO_FAR();

    b = seasoned(NULL, SCRIPT({.after_ns = 900 * SIM_MS}, {.status = 429}));
    want_start(&b->w[0], b->p);
    run_s(b, 2);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->w[0].prepared, 1);
    CHECK_INT(b->n, 2);
    CHECK_INT(b->p->throttles, 1);
    bench_free(b);
}

TEST(both_fail)
{
    Bench *b = seasoned(NULL, SCRIPT({.status = 500, .after_ns = 400 * SIM_MS},
                                     {.failure = PEN_HTTP_BROKEN, .status = 206}));
    want_start(&b->w[0], b->p);
    run_s(b, 2);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->w[0].prepared, 2);
    CHECK_INT(b->n, 3);
    CHECK_INT(b->p->retries, 1);
    bench_free(b);
    CHECK_OK_SO_FAR();

    /* A final answer of one of them is final. */
    b = seasoned(NULL, SCRIPT({.after_ns = 3 * SIM_S}, {.status = 404}));
    want_start(&b->w[0], b->p);
    run_s(b, 1);
    CHECK_INT(b->w[0].r, PEN_E_NOT_FOUND);
    CHECK_INT(simnet_transfers(b->t), 0);
    bench_free(b);
}

TEST(a_hedge_with_a_wrong_body)
{
    Bench *b = seasoned(NULL, SCRIPT({.after_ns = 4 * SIM_S}, {.corrupt = true}));
    want_start(&b->w[0], b->p);
    run_s(b, 2);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->n, 3);
    CHECK_INT(b->fresh[2], 1);
    CHECK(simnet_body_is(b->w[0].url, b->w[0].into, sizeof b->w[0].into));
    bench_free(b);
}

TEST(again_ends_both)
{
    Bench *b = seasoned(NULL, SCRIPT({.after_ns = 4 * SIM_S}, {.status = 403}));
    b->w[0].n_again = 1;
    want_start(&b->w[0], b->p);
    run_s(b, 1);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->w[0].prepared, 2);
    CHECK_INT(b->n, 3);
    CHECK_INT(simnet_transfers(b->t), 0);
    bench_free(b);
}

TEST(not_every_operation_and_not_when_told_to_slow_down)
{
    Bench *b = seasoned(NULL, SCRIPT({.after_ns = SIM_S}));
    b->w[0].spec.may_hedge = 0; /* a PUT */
    want_start(&b->w[0], b->p);
    run_s(b, 3);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->n, 1);
    bench_free(b);
    CHECK_OK_SO_FAR();

    b = seasoned(NULL, SCRIPT({.after_ns = SIM_S}));
    pen__pace_throttle(&b->p->pace, SIM_S, SIM_S);
    want_start(&b->w[0], b->p);
    run_s(b, 3);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->n, 1);
    bench_free(b);
    CHECK_OK_SO_FAR();

    PenPolicySettings s;
    pen__policy_settings_init(&s);
    s.hedge_percent = 0;
    b = seasoned(&s, SCRIPT({.after_ns = SIM_S}));
    want_start(&b->w[0], b->p);
    run_s(b, 3);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->n, 1);
    bench_free(b);
}

TEST(a_hedge_goes_before_new_requests)
{
    /* All places are taken: the hedge waits for one, but not behind the others. */
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    s.in_flight = 2;
    Bench *b = seasoned(&s, SCRIPT({.after_ns = 4 * SIM_S}));
    for (int i = 0; i < 100; i++)
        want_start(&b->w[i], b->p);
    run_s(b, 1);
    CHECK_INT(b->w[0].done, 1);
    CHECK(b->w[0].done_ns - b->w[0].began_ns < 300 * SIM_MS);
    CHECK(simnet_peak(b->t) <= 2);
    run_s(b, 10);
    bench_free(b);
}

/* ---- bodies that come slowly ---- */

static uint64_t first_bytes_per_s;

/* The first request's body comes as slowly as that, all others at once. */
static void slow_first(void *ctx, uint64_t now_ns, int client, const PenHttpRequest *request,
                       const SimAnswer *answer)
{
    Bench *b = ctx;
    simnet_server(b->net)->bytes_per_s = b->n ? 0 : first_bytes_per_s;
    on_request(ctx, now_ns, client, request, answer);
}

/* A body of 4,096 bytes after `first_ms`; the usual is 100 ms in all, but one in 50 takes 5 s. */
static Bench *slow_body(unsigned first_ms, unsigned body_ms)
{
    SimAnswer *script = calloc(1, sizeof *script);
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    s.limits.slow_bytes = 1;
    script->after_ns = first_ms * SIM_MS;
    first_bytes_per_s = 4096 * 1000 / body_ms;
    Bench *b = bench_new(&s, script, 1);
    simnet_server(b->net)->on_request = slow_first;
    for (int i = 0; i < 200; i++)
        pen__tail_add(&b->p->tails[0], i % 50 ? 100 * SIM_MS : 5 * SIM_S);
    b->p->hedge_credit = 100;
    want_start(&b->w[0], b->p);
    run_s(b, 9);
    free(script);
    return b;
}

static bool came(const Bench *b)
{
    const Want *w = &b->w[0];
    return w->done == 1 && w->r == PEN_OK && simnet_body_is(w->url, w->into, sizeof w->into);
}

TEST(a_body_that_comes_slowly)
{
    /* At a tenth of the usual speed: seen at the second look. */
    Bench *b = slow_body(20, 1000);
    CHECK(came(b));
    CHECK_INT(b->n, 2);
    CHECK_INT(b->fresh[1], 1);
    uint64_t at_ms = (b->at_ns[1] - b->at_ns[0]) / SIM_MS;
    CHECK(at_ms >= 200 && at_ms <= 240);
    CHECK_INT(b->p->hedges_won, 1);
    bench_free(b);
    CHECK_OK_SO_FAR();

    /* At half of it: left alone. */
    b = slow_body(20, 200);
    CHECK(came(b));
    CHECK_INT(b->n, 1);
    bench_free(b);
    CHECK_OK_SO_FAR();

    /* It has not begun: that is for the other rule, which waits for as long as 99 of 100 take. */
    b = slow_body(1500, 50);
    CHECK(came(b));
    CHECK_INT(b->n, 1);
    bench_free(b);
    CHECK_OK_SO_FAR();

    /* It begins late and then comes slowly. */
    b = slow_body(1500, 3000);
    CHECK(came(b));
    CHECK_INT(b->n, 2);
    at_ms = (b->at_ns[1] - b->at_ns[0]) / SIM_MS;
    CHECK(at_ms >= 1600 && at_ms <= 1850);
    bench_free(b);
}

/* Hedges for whatever reason are paid from the same credit. */
TEST(slow_bodies_are_few_too)
{
    Bench *b = bench_new(NULL, NULL, 0);
    SimServer *server = simnet_server(b->net);
    server->bytes_per_s = 4096 * 10;
    for (int round = 0; round < 100; round++) {
        if (round == 50)
            server->bytes_per_s = 4096 * 2 / 3;
        for (int i = 0; i < 40; i++) {
            want_init(&b->w[i], b->net, (unsigned)i);
            want_start(&b->w[i], b->p);
        }
        run_s(b, 10);
        CHECK(b->p->hedges * 20 <= b->p->attempts);
    }
    CHECK(b->p->hedges > 0);
    bench_free(b);
}

TEST(hedges_are_few)
{
    /* At first none is slow, then all, then a fifth: more than may be hedged. */
    Bench *b = bench_new(NULL, NULL, 0);
    SimServer *server = simnet_server(b->net);
    for (int round = 0; round < 100; round++) {
        server->tail_permille = round < 10 ? 0 : round == 10 ? 1000 : 200;
        server->tail_ns = 2 * SIM_S;
        for (int i = 0; i < 40; i++) {
            want_init(&b->w[i], b->net, (unsigned)i);
            want_start(&b->w[i], b->p);
        }
        run_s(b, 10);
        for (int i = 0; i < 40; i++)
            CHECK_INT(b->w[i].done, 1);
        CHECK(b->p->hedges * 20 <= b->p->attempts);
        if (round ==
            10) /* 400 would have paid for 20 and these for 2, but 10 is all that is saved */
            CHECK(b->p->hedges >= 10 && b->p->hedges <= 12);
    }
    bench_free(b);
}

/* ---- without memory ---- */

static unsigned allocs_left;

static void *failing_alloc(size_t bytes)
{
    return allocs_left && --allocs_left == 0 ? NULL : pen__sys_real.alloc(bytes);
}

static void run_without_memory(unsigned nth, unsigned *ret_done)
{
    Bench *b = seasoned(NULL, SCRIPT({.after_ns = 4 * SIM_S}, {0}, {.status = 500}));
    allocs_left = nth;
    unsigned started = 0;
    for (int i = 0; i < 3; i++) {
        started += want_start(&b->w[i], b->p) == PEN_OK;
        run_s(b, 10);
    }
    *ret_done = allocs_left;
    allocs_left = 0;
    unsigned done = 0, failed = 0;
    for (int i = 0; i < 3; i++) {
        done += b->w[i].done;
        failed += b->w[i].r < 0;
        CHECK(b->w[i].r == PEN_OK || b->w[i].r == PEN_E_NO_MEMORY);
    }
    CHECK_INT(done, started);
    CHECK(failed + 3 - started <= 1);
    bench_free(b);
}

TEST(every_allocation_may_fail)
{
    PenSys sys = pen__sys_real;
    sys.alloc = failing_alloc;
    pen__sys = &sys;
    unsigned nth = 0, left = 0;
    do {
        run_without_memory(++nth, &left);
    } while (!left && test__now.state == TEST_PASSED);
    pen__sys = &pen__sys_real;
    CHECK(nth > 7);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(the_tail);
    RUN(the_hedge_wins);
    RUN(the_hedge_loses);
    RUN(the_hedge_wins_for_several_places);
    RUN(who_hears_of_arrivals);
    RUN(one_of_the_two_fails);
    RUN(both_fail);
    RUN(a_hedge_with_a_wrong_body);
    RUN(again_ends_both);
    RUN(not_every_operation_and_not_when_told_to_slow_down);
    RUN(a_hedge_goes_before_new_requests);
    RUN(hedges_are_few);
    RUN(a_body_that_comes_slowly);
    RUN(slow_bodies_are_few_too);
    RUN(every_allocation_may_fail);
    return TEST_END();
}
