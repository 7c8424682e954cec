/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests go at once: a reader that always wants more, before stores and links of every
 * kind, against the best of all fixed numbers. */
#include "net/retry/policy_impl.h"

#include "test.h"

#include "policy_help.h"

enum { BLOCK = 1000, WANTS = 400, BIN_MS = 100, MOST_S = 60, BINS = MOST_S * 1000 / BIN_MS };

typedef struct World {
    uint64_t latency_ns, tail_ns, link_bytes_per_s;
    unsigned tail_permille, slow_down_permille, per_s, most;
    unsigned fixed;                /* 0: it adapts */
    uint64_t out_from_s, out_to_s; /* told to slow down in between */
} World;

typedef struct Pen {
    struct Reader *reader;
    uint8_t into[BLOCK];
    uint64_t at_ns;
} Pen;

typedef struct Reader {
    SimNet *net;
    PenTransport *t;
    PenPolicy *p;
    World w;
    Pen pens[WANTS];
    unsigned left; /* to be asked for */
    uint64_t began_ns, last_ns, free_ns, failed;
    uint32_t came[BINS], refused[BINS];
    PenTail tail; /* of the last thousand */
} Reader;

static void want_one(Pen *pen);

static int pen_prepare(void *ctx, unsigned attempt, PenHttpRequest *ret, PenError *reterr)
{
    Pen *pen = ctx;
    (void)attempt, (void)reterr;
    pen->at_ns = simnet_now(pen->reader->net);
    ret->method = "GET";
    ret->url = "http://sim/block";
    ret->into = pen->into;
    ret->into_bytes = sizeof pen->into;
    return PEN_OK;
}

static uint32_t *bin(Reader *x, uint32_t *bins)
{
    uint64_t i = (simnet_now(x->net) - x->began_ns) / (BIN_MS * SIM_MS);
    return &bins[PEN_MIN(i, (uint64_t)BINS - 1)];
}

static PenVerdict pen_judge(void *ctx, const PenHttpReply *reply, unsigned *cause, PenError *err)
{
    Pen *pen = ctx;
    (void)cause;
    PenVerdict v = pen__policy_classify(NAME, reply, err);
    if (v == PEN_VERDICT_THROTTLE)
        ++*bin(pen->reader, pen->reader->refused);
    return v;
}

static void pen_done(void *ctx, int r, const PenError *err)
{
    Pen *pen = ctx;
    Reader *x = pen->reader;
    (void)err;
    x->failed += r != PEN_OK;
    x->last_ns = simnet_now(x->net);
    ++*bin(x, x->came);
    pen__tail_add(&x->tail, x->last_ns - pen->at_ns);
    want_one(pen);
}

static void want_one(Pen *pen)
{
    Reader *x = pen->reader;
    PenOperationSpec spec = {.prepare = pen_prepare,
                             .classify = pen_judge,
                             .done = pen_done,
                             .ctx = pen,
                             .name = NAME,
                             .may_hedge = 1};
    PenOperation *op;
    if (!x->left)
        return;
    x->left--;
    if (pen__policy_start(x->p, &spec, &op, NULL) < 0)
        abort();
}

/* A link that brings one body after another. */
static void share_link(void *ctx, uint64_t now_ns, int client, const PenHttpRequest *request,
                       const SimAnswer *answer)
{
    Reader *x = ctx;
    (void)client, (void)request, (void)answer;
    if (!x->w.link_bytes_per_s)
        return;
    uint64_t first_ns = now_ns + x->w.latency_ns;
    x->free_ns = PEN_MAX(x->free_ns, first_ns) + BLOCK * SIM_S / x->w.link_bytes_per_s;
    simnet_server(x->net)->bytes_per_s = PEN_MAX(BLOCK * SIM_S / (x->free_ns - first_ns), 1u);
}

static Reader *reader_new(const World *w, uint64_t seed, unsigned n)
{
    Reader *x = calloc(1, sizeof *x);
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    s.limits.slow_bytes = 1;
    s.in_flight = w->most ? w->most : s.in_flight;
    x->w = *w;
    x->left = n;
    x->net = simnet_new(seed);
    x->t = simnet_client(x->net);
    x->began_ns = simnet_now(x->net);
    SimServer *server = simnet_server(x->net);
    *server = (SimServer){.latency_ns = w->latency_ns,
                          .connect_ns = 5 * SIM_MS,
                          .tail_permille = w->tail_permille,
                          .tail_ns = w->tail_ns,
                          .slow_down_permille = w->slow_down_permille,
                          .per_s = w->per_s,
                          .out_from_ns = x->began_ns + w->out_from_s * SIM_S,
                          .out_to_ns = x->began_ns + w->out_to_s * SIM_S,
                          .out = {.status = 429},
                          .on_request = share_link,
                          .on_request_ctx = x};
    if (!w->out_to_s)
        server->out_from_ns = server->out_to_ns = 0;
    if (pen__policy_new(x->t, &s, &x->p, NULL) < 0)
        abort();
    if (w->fixed) {
        x->p->pace.limit = w->fixed;
        x->p->pace.mode = PEN_PACE_HOLD;
        x->p->pace.hold = UINT32_MAX;
    }
    for (int i = 0; i < WANTS; i++) {
        x->pens[i].reader = x;
        want_one(&x->pens[i]);
    }
    return x;
}

static void reader_free(Reader *x)
{
    x->left = 0;
    pen__policy_free(&x->p);
    simnet_free(&x->net);
    free(x);
}

static uint64_t sum(const uint32_t *bins, int from_ms, int to_ms)
{
    uint64_t n = 0;
    for (int i = from_ms / BIN_MS; i < to_ms / BIN_MS; i++)
        n += bins[i];
    return n;
}

typedef struct Result {
    double per_s, refused_per_s, p99_ms;
    unsigned limit;
} Result;

/* fixed 0: it adapts */
static Result run_world(World w, uint64_t seed, unsigned fixed, int from_s, int to_s)
{
    w.fixed = fixed;
    Reader *x = reader_new(&w, seed, UINT32_MAX);
    simnet_run(x->net, x->began_ns + (unsigned)to_s * SIM_S - 1);
    Result r = {(double)sum(x->came, from_s * 1000, to_s * 1000) / (to_s - from_s),
                (double)sum(x->refused, from_s * 1000, to_s * 1000) / (to_s - from_s),
                (double)pen__tail_p99(&x->tail) / 1e6, x->p->pace.limit};
    reader_free(x);
    return r;
}

/* ---- against fixed numbers ---- */

/* Where only more at once helps: the most, and soon. */
TEST(a_far_store)
{
    for (unsigned most = 64; most <= 256; most *= 4) {
        World w = {.latency_ns = 110 * SIM_MS, .most = most};
        Result best = run_world(w, 1, most, 2, 4);
        for (uint64_t seed = 1; seed <= 4; seed++) {
            Result r = run_world(w, seed, 0, 2, 4);
            printf("110 ms, at most %u: %.0f/s from the third second on, best %.0f/s\n", most,
                   r.per_s, best.per_s);
            CHECK(r.per_s >= 0.95 * best.per_s);
        }
    }
}

/* One answer in a hundred takes 30 times as long; that is not a queue. */
TEST(a_store_with_a_tail)
{
    World w = {.latency_ns = 30 * SIM_MS, .tail_ns = SIM_S, .tail_permille = 10};
    Result best = run_world(w, 1, 64, 5, 15), r = run_world(w, 2, 0, 5, 15);
    printf("30 ms, 1 %% of them 1 s: %.0f/s, best %.0f/s\n", r.per_s, best.per_s);
    CHECK(r.per_s >= 0.9 * best.per_s);
}

/* Where more at once only waits longer: so many that it is full, and no queue. */
TEST(a_full_link)
{
    static const World worlds[] = {
        {.latency_ns = 30 * SIM_MS, .link_bytes_per_s = 300 * BLOCK},
        {.latency_ns = 110 * SIM_MS, .link_bytes_per_s = 300 * BLOCK},
        {.latency_ns = 30 * SIM_MS, .link_bytes_per_s = 300 * BLOCK, .most = 256},
    };
    for (size_t i = 0; i < PEN_LEN(worlds); i++) {
        unsigned most = worlds[i].most ? worlds[i].most : 64;
        Result all = run_world(worlds[i], 1, most, 10, 30), few = run_world(worlds[i], 1, 4, 1, 20);
        Result r = run_world(worlds[i], 2, 0, 10, 30);
        printf("a link of 300/s: %.0f/s with %u at once, p99 %.0f ms; 4: %.0f ms; %u: %.0f ms\n",
               r.per_s, r.limit, r.p99_ms, few.p99_ms, most, all.p99_ms);
        CHECK(r.per_s >= 0.88 * 300);
        CHECK(r.p99_ms <= 2 * few.p99_ms);
        CHECK(r.limit < most);
    }
    /* A link that one alone fills: no fewer than four all the same. */
    Result r =
        run_world((World){.latency_ns = SIM_MS, .link_bytes_per_s = 100 * BLOCK}, 1, 0, 5, 50);
    CHECK(r.limit >= 4 && r.limit <= 6);
    CHECK(r.per_s >= 97);
}

/* A store that takes so many requests in a second: nearly all of them, and few for nothing. */
TEST(a_store_that_counts)
{
    static const World worlds[] = {{.latency_ns = 110 * SIM_MS, .per_s = 300},
                                   {.latency_ns = 30 * SIM_MS, .per_s = 500},
                                   {.latency_ns = 30 * SIM_MS, .per_s = 100}};
    for (size_t i = 0; i < PEN_LEN(worlds); i++)
        for (uint64_t seed = 1; seed <= 2; seed++) {
            Result r = run_world(worlds[i], seed, 0, 10, 40);
            printf("a store for %u/s: %.0f/s, %.1f %% refused, %u at once\n", worlds[i].per_s,
                   r.per_s, 100 * r.refused_per_s / (r.per_s + r.refused_per_s), r.limit);
            /* Of 100/s three at once are fewer, and four are more. */
            CHECK(r.per_s >= (worlds[i].per_s == 100 ? 0.75 : 0.9) * worlds[i].per_s);
            CHECK(r.refused_per_s <= 0.1 * worlds[i].per_s);
        }
}

/* A store that refuses one in twenty, whatever it is asked. */
TEST(a_store_that_refuses_by_chance)
{
    World w = {.latency_ns = 110 * SIM_MS}, odd = w;
    odd.slow_down_permille = 50;
    Result clean = run_world(w, 1, 64, 5, 25);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        Result r = run_world(odd, seed, 0, 5, 25);
        printf("5 %% refused by chance: %.0f/s, %.0f/s without\n", r.per_s, clean.per_s);
        CHECK(r.per_s >= 0.7 * clean.per_s);
    }
}

/* ---- beginnings and ends ---- */

/* What is wanted before the first batch comes does not take many times the way. */
TEST(the_first_window)
{
    Reader *x = reader_new(&(World){.latency_ns = 110 * SIM_MS}, 3, 40);
    simnet_run(x->net, x->began_ns + 5 * SIM_S);
    double ways = (double)(x->last_ns - x->began_ns) / (1.5 * 110 * SIM_MS);
    printf("40 blocks after %.1f times the longest way\n", ways);
    CHECK_INT(sum(x->came, 0, 5000), 40);
    CHECK(ways <= 2.2);
    reader_free(x);
}

TEST(after_an_outage)
{
    World w = {.latency_ns = 110 * SIM_MS, .out_from_s = 10, .out_to_s = 20, .most = 64};
    for (uint64_t seed = 1; seed <= 3; seed++) {
        Reader *x = reader_new(&w, seed, UINT32_MAX);
        simnet_run(x->net, x->began_ns + 19 * SIM_S);
        unsigned least = x->p->pace.limit;
        simnet_run(x->net, x->began_ns + 30 * SIM_S);
        uint64_t before = sum(x->came, 5000, 10000), after = sum(x->came, 25000, 30000);
        printf("%" PRIu64 " in 5 s before it, %" PRIu64 " in the sixth to tenth second after it\n",
               before, after);
        CHECK(least <= 16);
        CHECK(after * 10 >= before * 9);
        CHECK_INT(x->failed, 0);
        reader_free(x);
    }
}

/* Nobody waits for a place: nothing is known, and nothing is changed. */
TEST(little_is_wanted)
{
    Reader *x = reader_new(&(World){.latency_ns = 30 * SIM_MS, .most = 64}, 3, 0);
    x->left = UINT32_MAX;
    for (int i = 0; i < 12; i++)
        want_one(&x->pens[i]);
    simnet_run(x->net, x->began_ns + 20 * SIM_S);
    CHECK(sum(x->came, 0, 20000) > 5000);
    CHECK_INT(x->p->pace.limit, 24);
    CHECK_INT(x->p->pace.mode, PEN_PACE_FAST);
    /* Then much is. */
    for (int i = 12; i < WANTS; i++)
        want_one(&x->pens[i]);
    simnet_run(x->net, x->began_ns + 23 * SIM_S);
    CHECK_INT(x->p->pace.limit, 64);
    reader_free(x);
}

/* ---- by itself ---- */

static void answers(PenPace *pace, unsigned n, uint64_t *now_ns, uint64_t each_ns)
{
    for (unsigned i = 0; i < n; i++)
        pen__pace_success(pace, BLOCK, true, *now_ns += each_ns);
}

TEST(doubling)
{
    PenPace pace;
    uint64_t now = SIM_S;
    pen__pace_init(&pace, 64, now);
    CHECK_INT(pace.limit, 24);
    answers(&pace, 24, &now, SIM_MS);
    CHECK_INT(pace.limit, 24); /* the first round is no measure */
    for (int i = 0; i < 10; i++)
        pen__pace_success(&pace, BLOCK, false, now += SIM_MS / 3);
    CHECK_INT(pace.limit, 24);            /* nobody wants more */
    answers(&pace, 14, &now, SIM_MS / 3); /* three times as many in a second */
    CHECK_INT(pace.limit, 38);
    CHECK_INT(pace.mode, PEN_PACE_FAST);
    answers(&pace, 37, &now, SIM_MS / 3);
    CHECK_INT(pace.limit, 64);
    answers(&pace, 1, &now, SIM_MS / 3); /* no more than before: the number before was enough */
    CHECK_INT(pace.limit, 24);
    CHECK_INT(pace.mode, PEN_PACE_HOLD);

    pen__pace_init(&pace, 3, now);
    CHECK_INT(pace.limit, 3);
    answers(&pace, 1000, &now, SIM_MS);
    CHECK_INT(pace.limit, 3); /* there is no other number */
}

/* Requests of the first round are answered together, and connections took no time: the second
 * round, of as many, brings no more. The third one has twice as many. */
TEST(doubling_in_bursts)
{
    PenPace pace;
    uint64_t now = SIM_S;
    pen__pace_init(&pace, 64, now);
    for (unsigned n = 0; n < 3; n++) {
        unsigned most = pace.limit;
        now += 110 * SIM_MS;
        answers(&pace, most, &now, 0);
    }
    CHECK_INT(pace.limit, 64);
    CHECK_INT(pace.mode, PEN_PACE_FAST);
}

TEST(told_to_slow_down)
{
    PenPace pace;
    uint64_t now = SIM_S;
    pen__pace_init(&pace, 64, now);
    answers(&pace, 24, &now, SIM_MS);
    answers(&pace, 24, &now, SIM_MS / 2);
    answers(&pace, 48, &now, SIM_MS / 4);
    CHECK_INT(pace.limit, 64);
    pen__pace_throttle(&pace, now, now); /* one alone changes nothing */
    CHECK_INT(pace.limit, 64);
    CHECK(pen__pace_is_throttled(&pace)); /* but nobody asks twice for a while */
    uint64_t started = now;
    for (int i = 0; i < 63; i++)
        pen__pace_throttle(&pace, started, now += SIM_MS);
    CHECK_INT(pace.limit, 47); /* the first quarter of them; the others had been asked before */
    CHECK_INT(pace.safe, 32);
    for (int i = 0; i < 400; i++, now += SIM_MS)
        pen__pace_throttle(&pace, now, now);
    CHECK_INT(pace.limit, 1);
    CHECK_INT(pace.safe, 32); /* all of that was one trouble */
    answers(&pace, 31, &now, SIM_MS);
    CHECK_INT(pace.limit, 32);
    answers(&pace, 20, &now, SIM_MS);
    CHECK_INT(pace.limit, 32); /* and from here on it is tried */
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(a_far_store);
    RUN(a_store_with_a_tail);
    RUN(a_full_link);
    RUN(a_store_that_counts);
    RUN(a_store_that_refuses_by_chance);
    RUN(the_first_window);
    RUN(after_an_outage);
    RUN(little_is_wanted);
    RUN(doubling);
    RUN(doubling_in_bursts);
    RUN(told_to_slow_down);
    return TEST_END();
}
