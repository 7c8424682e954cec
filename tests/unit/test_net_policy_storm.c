/* SPDX-License-Identifier: Apache-2.0 */
/* Many operations at once: thousands of drawn schedules of trouble with what must hold in all of
 * them, and 64 clients that must not storm a server that is down. */
#include "net/retry/policy_impl.h"

#include "test.h"

#include "policy_help.h"

/* ---- drawn schedules ---- */

#if defined(__SANITIZE_THREAD__)
#define SCHEDULES 1000 /* there are no threads here */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SCHEDULES 1000
#endif
#endif
#ifndef SCHEDULES
#define SCHEDULES 10000
#endif
enum { MOST_WANTS = 24 };

typedef struct Schedule {
    SimNet *net;
    PenTransport *t;
    PenPolicy *p;
    PenPolicySettings s;
    unsigned n;
    Want w[MOST_WANTS];
    bool cancelled[MOST_WANTS];
} Schedule;

static uint64_t between(Schedule *x, uint64_t least, uint64_t most)
{
    return least + simnet_draw(x->net, most - least + 1);
}

static void draw_server(Schedule *x)
{
    SimServer *server = simnet_server(x->net);
    unsigned *rates[] = {&server->error_permille, &server->slow_down_permille,
                         &server->mute_permille, &server->broken_permille,
                         &server->corrupt_permille};
    for (size_t i = 0; i < PEN_LEN(rates); i++)
        if (simnet_draw(x->net, 3) == 0)
            *rates[i] = (unsigned)simnet_draw(x->net, 300);
    server->latency_ns = between(x, 1, 100) * SIM_MS;
    server->tail_permille = (unsigned)simnet_draw(x->net, 200);
    server->tail_ns = between(x, 100, 8000) * SIM_MS;
    server->bytes_per_s = simnet_draw(x->net, 2) ? 0 : between(x, 1000, 1000000);
    static const SimAnswer outs[] = {{.status = 503},
                                     {.status = 429},
                                     {.status = 503, .retry_after_ms = 5000},
                                     {.failure = PEN_HTTP_CONNECT},
                                     {.failure = PEN_HTTP_BROKEN},
                                     {.mute = true}};
    if (simnet_draw(x->net, 2)) {
        server->out_from_ns = between(x, 0, 5) * SIM_S;
        server->out_to_ns = server->out_from_ns + between(x, 0, 30) * SIM_S;
        server->out = outs[simnet_draw(x->net, PEN_LEN(outs))];
    }
}

static void draw_settings(Schedule *x)
{
    PenPolicySettings *s = &x->s;
    pen__policy_settings_init(s);
    s->in_flight = (uint32_t)between(x, 1, 8);
    s->outage_ms = (uint32_t)between(x, 500, 20000);
    s->bucket = (uint32_t)between(x, 14, 100);
    s->hedge_percent = (uint32_t)between(x, 0, 100);
    s->hedge_least_ms = (uint32_t)between(x, 1, 100);
    s->limits.slow_bytes = 1000;
}

static void draw(Schedule *x, uint64_t seed)
{
    x->net = simnet_new(seed);
    x->t = simnet_client(x->net);
    draw_server(x);
    draw_settings(x);
    if (pen__policy_new(x->t, &x->s, &x->p, NULL) < 0)
        abort();
    x->p->hedge_credit = 300; /* or few runs would be long enough to have any */
    for (int i = 0; i < PEN_TAIL_LEAST; i++)
        pen__tail_add(&x->p->tails[0], 20 * SIM_MS);
    x->n = (unsigned)between(x, 1, MOST_WANTS);
    for (unsigned i = 0; i < x->n; i++) {
        Want *w = &x->w[i];
        want_init(w, x->net, i);
        w->spec.may_hedge = simnet_draw(x->net, 2) != 0;
        w->busy = simnet_draw(x->net, 4) ? 0 : (unsigned)between(x, 0, 100);
        w->refuse = simnet_draw(x->net, 20) ? 0 : PEN_E_ACCESS;
        w->n_again = simnet_draw(x->net, 4) ? 0 : (unsigned)between(x, 0, 4);
        w->n_causes = (unsigned)between(x, 0, 4);
    }
}

static void check_now(const Schedule *x)
{
    const PenPolicy *p = x->p;
    CHECK_INT(p->in_flight, simnet_transfers(x->t));
    CHECK(p->in_flight <= x->s.in_flight);
    CHECK(p->rate.tokens <= x->s.bucket); /* one below 0 would be a large one */
    CHECK(p->pace.limit >= 1 && p->pace.limit <= x->s.in_flight);
}

static void check_end(const Schedule *x)
{
    CHECK(x->p->all.first == NULL);
    CHECK_INT(simnet_transfers(x->t), 0);
    CHECK(simnet_timers(x->t) <= 2); /* the policy's own */
    CHECK(x->p->hedges * 100 <= x->s.hedge_percent * x->p->attempts + 300);
    for (unsigned i = 0; i < x->n; i++) {
        const Want *w = &x->w[i];
        if (x->cancelled[i]) {
            CHECK_INT(w->done, 0);
            continue;
        }
        CHECK_INT(w->done, 1);
        CHECK(w->done_ns - w->began_ns <= (x->s.outage_ms + 1000) * SIM_MS);
        if (w->r == PEN_OK)
            CHECK(simnet_body_is(w->url, w->into, sizeof w->into));
        else
            CHECK(w->err.status == w->r && w->err.message[0]);
    }
}

/* Starts them over the first seconds, cancels some, and looks after every event. */
static void run_schedule(Schedule *x)
{
    for (unsigned i = 0; i < x->n; i++) {
        uint64_t until = simnet_now(x->net) + simnet_draw(x->net, SIM_S);
        while (simnet_step(x->net, until))
            check_now(x);
        want_start(&x->w[i], x->p);
        unsigned k = (unsigned)simnet_draw(x->net, x->n);
        if (simnet_draw(x->net, 8) == 0 && x->w[k].op) {
            pen__policy_cancel(x->w[k].op);
            x->w[k].op = NULL;
            x->cancelled[k] = true;
        }
        CHECK_OK_SO_FAR();
    }
    uint64_t until = simnet_now(x->net) + 60 * SIM_S;
    while (simnet_step(x->net, until))
        check_now(x);
}

TEST(drawn_schedules)
{
    uint64_t attempts = 0, retries = 0, hedges = 0, failures = 0, ops = 0, cancelled = 0;
    for (uint64_t seed = 0; seed < SCHEDULES; seed++) {
        static Schedule x;
        memset(&x, 0, sizeof x);
        draw(&x, seed);
        run_schedule(&x);
        if (seed % 10)
            check_end(&x);
        ops += x.p->ops;
        attempts += x.p->attempts;
        retries += x.p->retries;
        hedges += x.p->hedges;
        failures += x.p->failures;
        for (unsigned i = 0; i < x.n; i++)
            cancelled += x.cancelled[i];
        pen__policy_free(&x.p);
        unsigned timers = simnet_timers(x.t);
        simnet_free(&x.net);
        if (test__now.state != TEST_PASSED)
            printf("schedule %" PRIu64 "\n", seed);
        CHECK_OK_SO_FAR();
        CHECK_INT(timers, 0);
    }
    printf("%d schedules: %" PRIu64 " operations, %" PRIu64 " cancelled, %" PRIu64
           " failed, %" PRIu64 " attempts, %" PRIu64 " retries, %" PRIu64 " hedges\n",
           SCHEDULES, ops, cancelled, failures, attempts, retries, hedges);
}

/* ---- 64 clients ---- */

enum { CLIENTS = 64, PER_S = 20, WINDOW = 32, STEADY_S = 20, OUTAGE_S = 30, AFTER_S = 20 };
enum { BIN_MS = 100, BINS = (STEADY_S + OUTAGE_S + AFTER_S) * 1000 / BIN_MS };

/* Wants PER_S blocks a second but no more than WINDOW that are not there yet, as a loader does. */
typedef struct Client {
    struct Storm *storm;
    PenTransport *t;
    PenPolicy *p;
    PenTimer timer;
    unsigned out;
} Client;

typedef struct Block {
    Client *client;
    uint8_t into[16];
} Block;

typedef struct Storm {
    SimNet *net;
    uint64_t from_ns;
    Client clients[CLIENTS];
    uint64_t asked[BINS], came[BINS];
    uint64_t failed;
} Storm;

static uint64_t *bin(Storm *x, uint64_t *bins)
{
    uint64_t i = (simnet_now(x->net) - x->from_ns) / (BIN_MS * SIM_MS);
    return &bins[PEN_MIN(i, (uint64_t)BINS - 1)];
}

static int block_prepare(void *ctx, unsigned attempt, PenHttpRequest *ret, PenError *reterr)
{
    Block *b = ctx;
    (void)attempt, (void)reterr;
    ret->method = "GET";
    ret->url = "http://sim/block";
    ret->into = b->into;
    ret->into_bytes = sizeof b->into;
    return PEN_OK;
}

static PenVerdict block_judge(void *ctx, const PenHttpReply *reply, unsigned *cause, PenError *err)
{
    (void)ctx, (void)cause;
    return pen__policy_classify(NAME, reply, err);
}

static void block_done(void *ctx, int r, const PenError *err)
{
    Block *b = ctx;
    Storm *x = b->client->storm;
    (void)err;
    b->client->out--;
    if (r == PEN_OK)
        ++*bin(x, x->came);
    else
        x->failed++;
    free(b);
}

static void on_tick(void *ctx)
{
    Client *c = ctx;
    uint64_t each = SIM_S / PER_S;
    c->t->class_->timer_set(c->t, &c->timer, simnet_now(c->storm->net) + each, on_tick, c);
    if (c->out >= WINDOW)
        return;
    Block *b = calloc(1, sizeof *b);
    b->client = c;
    PenOperationSpec spec = {.prepare = block_prepare,
                             .classify = block_judge,
                             .done = block_done,
                             .ctx = b,
                             .name = NAME,
                             .may_hedge = 1};
    PenOperation *op;
    if (pen__policy_start(c->p, &spec, &op, NULL) == PEN_OK)
        c->out++;
}

static void on_asked(void *ctx, uint64_t now_ns, int client, const PenHttpRequest *request,
                     const SimAnswer *answer)
{
    Storm *x = ctx;
    (void)now_ns, (void)client, (void)request, (void)answer;
    ++*bin(x, x->asked);
}

static PenPolicyCounts sum_counts(const Storm *x)
{
    PenPolicyCounts sum = {0};
    for (int i = 0; i < CLIENTS; i++) {
        PenPolicyCounts n;
        pen__policy_counts(x->clients[i].p, &n);
        sum.ops += n.ops;
        sum.attempts += n.attempts;
        sum.retries += n.retries;
        sum.hedges += n.hedges;
    }
    return sum;
}

static uint64_t sum_bins(const uint64_t *bins, int from_ms, int to_ms)
{
    uint64_t sum = 0;
    for (int i = from_ms / BIN_MS; i < to_ms / BIN_MS; i++)
        sum += bins[i];
    return sum;
}

static void storm_begin(Storm *x, const SimAnswer *out, unsigned capacity_per_s)
{
    memset(x, 0, sizeof *x);
    x->net = simnet_new(64);
    x->from_ns = simnet_now(x->net);
    SimServer *server = simnet_server(x->net);
    *server = (SimServer){.latency_ns = 30 * SIM_MS,
                          .connect_ns = 5 * SIM_MS,
                          .tail_permille = 10,
                          .tail_ns = SIM_S,
                          .error_permille = 10,
                          .per_s = capacity_per_s,
                          .out_from_ns = x->from_ns + STEADY_S * SIM_S,
                          .out_to_ns = x->from_ns + (STEADY_S + OUTAGE_S) * SIM_S,
                          .out = *out,
                          .on_request = on_asked,
                          .on_request_ctx = x};
    for (int i = 0; i < CLIENTS; i++) {
        Client *c = &x->clients[i];
        c->storm = x;
        c->t = simnet_client(x->net);
        if (pen__policy_new(c->t, NULL, &c->p, NULL) < 0)
            abort();
        uint64_t at = x->from_ns + simnet_draw(x->net, SIM_S / PER_S);
        c->t->class_->timer_set(c->t, &c->timer, at, on_tick, c);
    }
}

/* Lets what is under way come to its end, so that nothing is left over. */
static void storm_end(Storm *x)
{
    for (int i = 0; i < CLIENTS; i++)
        x->clients[i].t->class_->timer_clear(x->clients[i].t, &x->clients[i].timer);
    simnet_run(x->net, simnet_now(x->net) + 400 * SIM_S);
    for (int i = 0; i < CLIENTS; i++)
        pen__policy_free(&x->clients[i].p);
    simnet_free(&x->net);
}

/* Milliseconds after the outage from when on every second is as full as those before it. */
static int recovery_ms(const Storm *x, uint64_t full)
{
    int end = (STEADY_S + OUTAGE_S) * 1000, ms = (AFTER_S - 1) * 1000;
    while (ms > 0 && sum_bins(x->came, end + ms - BIN_MS, end + ms - BIN_MS + 1000) >= full)
        ms -= BIN_MS;
    return ms;
}

static void run_storm(const char *what, const SimAnswer *out, unsigned capacity_per_s)
{
    static Storm x;
    const int down = STEADY_S * 1000, up = (STEADY_S + OUTAGE_S) * 1000;
    storm_begin(&x, out, capacity_per_s);
    simnet_run(x.net, x.from_ns + STEADY_S * SIM_S);
    PenPolicyCounts before = sum_counts(&x);
    simnet_run(x.net, x.from_ns + (STEADY_S + OUTAGE_S + 10) * SIM_S);
    PenPolicyCounts settled = sum_counts(&x);
    simnet_run(x.net, x.from_ns + (STEADY_S + OUTAGE_S + AFTER_S) * SIM_S - 1);
    PenPolicyCounts after = sum_counts(&x);
    uint64_t steady = sum_bins(x.came, 5000, down) / (STEADY_S - 5);
    uint64_t normal = sum_bins(x.asked, 5000, down) / (STEADY_S - 5) * OUTAGE_S;
    uint64_t asked = sum_bins(x.asked, down, up);
    int ms = recovery_ms(&x, steady * 95 / 100);
    uint64_t late_ops = after.ops - settled.ops, late_retries = after.retries - settled.retries;
    printf("%d clients, %s: %" PRIu64 "/s; retries %.1f %% (after it %.1f %%), hedges %.1f %%; in "
           "%d s of outage %" PRIu64 " requests, %.1f %% of normal; full rate after %.1f s\n",
           CLIENTS, what, steady, 100.0 * (double)before.retries / (double)before.ops,
           100.0 * (double)late_retries / (double)late_ops,
           100.0 * (double)after.hedges / (double)after.attempts, OUTAGE_S, asked,
           100.0 * (double)asked / (double)normal, ms / 1000.0);
    uint64_t failed = x.failed;
    storm_end(&x);
    CHECK(steady > CLIENTS * PER_S * 9 / 10);
    CHECK(before.retries * 10 <= before.ops);
    CHECK(late_retries * 10 <= late_ops);
    CHECK(after.hedges > 0 && after.hedges * 20 <= after.attempts);
    /* A window of first requests, a bucket of retries, and one a second. */
    CHECK(asked <= CLIENTS * (WINDOW + 500 / PEN_COST_RETRY + OUTAGE_S + 5));
    CHECK(asked * 3 <= normal);
    CHECK(ms <= 5000);
    CHECK_INT(failed, 0);
}

TEST(no_storm_when_unavailable)
{
    run_storm("503", &(SimAnswer){.status = 503}, 0);
}

TEST(no_storm_when_told_to_slow_down)
{
    run_storm("503 SlowDown",
              &(SimAnswer){.status = 503, .error = "<Error><Code>SlowDown</Code></Error>"}, 0);
}

TEST(no_storm_when_refused)
{
    run_storm("connection refused", &(SimAnswer){.failure = PEN_HTTP_CONNECT}, 0);
}

TEST(no_storm_when_mute)
{
    run_storm("mute", &(SimAnswer){.mute = true}, 0);
}

TEST(no_storm_with_little_to_spare)
{
    run_storm("503, a server for 1.3 times as much", &(SimAnswer){.status = 503},
              CLIENTS * PER_S * 13 / 10);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(drawn_schedules);
    RUN(no_storm_when_unavailable);
    RUN(no_storm_when_told_to_slow_down);
    RUN(no_storm_when_refused);
    RUN(no_storm_when_mute);
    RUN(no_storm_with_little_to_spare);
    return TEST_END();
}
