/* SPDX-License-Identifier: Apache-2.0 */
/* The retry policy on a simulated network: what each answer leads to, and when. */
#include "net/retry/policy.h"

#include "test.h"

#include "base/attr.h"
#include "base/mem.h"
#include "policy_help.h"

TEST(one_request)
{
    Bench *b = bench_new(NULL, NULL, 0);
    Want *w = &b->w[0];
    CHECK_INT(want_start(w, b->p), PEN_OK);
    CHECK(w->op != NULL);
    CHECK_INT(w->prepared, 0); /* nothing from within the call */
    run_s(b, 1);
    CHECK_INT(w->done, 1);
    CHECK_INT(w->r, PEN_OK);
    CHECK(simnet_body_is(w->url, w->into, sizeof w->into));
    PenPolicyCounts n;
    pen__policy_counts(b->p, &n);
    CHECK_INT(n.ops, 1);
    CHECK_INT(n.attempts, 1);
    CHECK_INT(n.retries + n.hedges + n.failures + n.throttles + n.in_flight, 0);
    CHECK_INT(n.limit, 24);
    CHECK_INT(n.bytes, sizeof w->into);
    bench_free(b);
}

TEST(transient_errors_are_retried)
{
    Bench *b = bench_new(NULL, SCRIPT({.status = 500}, {.failure = PEN_HTTP_BROKEN, .status = 206},
                                      {.failure = PEN_HTTP_CONNECT}, {.mute = true}));
    Want *w = &b->w[0];
    want_start(w, b->p);
    while (w->prepared < 4)
        simnet_step(b->net, UINT64_MAX);
    CHECK(simnet_now(b->net) < w->began_ns + SIM_S);
    CHECK(b->p->rate.tokens >= 500 - 15 && b->p->rate.tokens < 500 - 10); /* three at 5 */
    while (w->prepared < 5)
        simnet_step(b->net, UINT64_MAX);
    CHECK(b->p->rate.tokens <= 500 - 14); /* one after a time-out */
    run_s(b, 1);
    CHECK_INT(w->done, 1);
    CHECK_INT(w->r, PEN_OK);
    CHECK_INT(w->attempt, 4);
    CHECK_INT(b->p->retries, 4);
    CHECK(simnet_body_is(w->url, w->into, sizeof w->into));
    bench_free(b);
}

TEST(final_answers)
{
    static const struct {
        int status, r;
    } cases[] = {{401, PEN_E_ACCESS},  {403, PEN_E_ACCESS},  {404, PEN_E_NOT_FOUND},
                 {412, PEN_E_CHANGED}, {416, PEN_E_CORRUPT}, {400, PEN_E_IO},
                 {301, PEN_E_IO},      {501, PEN_E_IO},      {410, PEN_E_NOT_FOUND}};
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        Bench *b = bench_new(NULL, SCRIPT({.status = cases[i].status}));
        Want *w = &b->w[0];
        want_start(w, b->p);
        run_s(b, 1);
        CHECK_INT(w->done, 1);
        CHECK_INT(w->r, cases[i].r);
        CHECK_INT(w->err.status, cases[i].r);
        CHECK(strstr(w->err.message, NAME) != NULL);
        CHECK_INT(b->n, 1);
        CHECK_INT(b->p->failures, 1);
        bench_free(b);
        CHECK_OK_SO_FAR();
    }
}

TEST(what_answers_mean)
{
    static const struct {
        PenHttpFailure failure;
        int status;
        const char *error;
        PenVerdict verdict;
        int r;
    } cases[] = {
        {PEN_HTTP_OK, 200, NULL, PEN_VERDICT_DONE, 0},
        {PEN_HTTP_OK, 206, NULL, PEN_VERDICT_DONE, 0},
        {PEN_HTTP_OK, 408, NULL, PEN_VERDICT_RETRY, PEN_E_TIMEOUT},
        {PEN_HTTP_OK, 429, NULL, PEN_VERDICT_THROTTLE, PEN_E_IO},
        {PEN_HTTP_OK, 500, NULL, PEN_VERDICT_RETRY, PEN_E_IO},
        {PEN_HTTP_OK, 502, NULL, PEN_VERDICT_RETRY, PEN_E_IO},
        {PEN_HTTP_OK, 503, NULL, PEN_VERDICT_RETRY, PEN_E_IO},
        {PEN_HTTP_OK, 503, "<Code>SlowDown</Code>", PEN_VERDICT_THROTTLE, PEN_E_IO},
        {PEN_HTTP_OK, 504, NULL, PEN_VERDICT_RETRY, PEN_E_TIMEOUT},
        {PEN_HTTP_RESOLVE, 0, NULL, PEN_VERDICT_RETRY, PEN_E_IO},
        {PEN_HTTP_CONNECT, 0, NULL, PEN_VERDICT_RETRY, PEN_E_IO},
        {PEN_HTTP_TLS, 0, NULL, PEN_VERDICT_FAIL, PEN_E_IO},
        {PEN_HTTP_BROKEN, 0, NULL, PEN_VERDICT_RETRY, PEN_E_IO},
        {PEN_HTTP_BROKEN, 200, NULL, PEN_VERDICT_RETRY, PEN_E_IO},
        {PEN_HTTP_GARBLED, 0, NULL, PEN_VERDICT_RETRY, PEN_E_IO},
        {PEN_HTTP_TOO_LONG, 200, NULL, PEN_VERDICT_RETRY, PEN_E_IO},
        {PEN_HTTP_ENCODED, 200, NULL, PEN_VERDICT_FAIL, PEN_E_IO},
        {PEN_HTTP_T_CONNECT, 0, NULL, PEN_VERDICT_RETRY, PEN_E_TIMEOUT},
        {PEN_HTTP_T_FIRST_BYTE, 0, NULL, PEN_VERDICT_RETRY, PEN_E_TIMEOUT},
        {PEN_HTTP_T_SLOW, 206, NULL, PEN_VERDICT_RETRY, PEN_E_TIMEOUT},
        {PEN_HTTP_T_DEADLINE, 206, NULL, PEN_VERDICT_RETRY, PEN_E_TIMEOUT},
        {PEN_HTTP_NO_MEMORY, 0, NULL, PEN_VERDICT_FAIL, PEN_E_NO_MEMORY},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenHttpReply reply = {.failure = cases[i].failure,
                              .status = cases[i].status,
                              .error = cases[i].error,
                              .error_bytes = cases[i].error ? strlen(cases[i].error) : 0,
                              .retry_after_ms = PEN_HTTP_NONE,
                              .peer = "127.0.0.1:80",
                              .request_id = "ab\ncd"};
        PenError err = {.status = 0};
        CHECK_INT(pen__policy_classify(NAME, &reply, &err), cases[i].verdict);
        CHECK_INT(err.status, cases[i].r);
        if (cases[i].verdict != PEN_VERDICT_DONE)
            CHECK(strstr(err.message, NAME) && !strchr(err.message, '\n'));
    }
    PenHttpReply asked = {.status = 503, .retry_after_ms = 1000};
    PenError err;
    CHECK_INT(pen__policy_classify(NAME, &asked, &err), PEN_VERDICT_THROTTLE);
}

TEST(a_kept_connection_that_was_closed)
{
    /* The first makes a connection that is kept; the second finds it closed, goes over a fresh one
     * at once and pays nothing. */
    Bench *b = bench_new(NULL, SCRIPT({0}, {.stale = true}));
    want_start(&b->w[0], b->p);
    run_s(b, 1);
    want_start(&b->w[1], b->p);
    uint64_t start = simnet_now(b->net);
    run_s(b, 1);
    CHECK_INT(b->w[1].r, PEN_OK);
    CHECK_INT(b->n, 3);
    CHECK_INT(b->fresh[1], 0);
    CHECK_INT(b->fresh[2], 1);
    CHECK(b->at_ns[2] - start <= 30 * SIM_MS); /* one latency, no back-off */
    CHECK_INT(b->p->rate.tokens, 500);
    CHECK_INT(b->p->rate.failed, 0);
    bench_free(b);

    /* Only once: the next time it is a failure like any other. */
    b = bench_new(NULL, SCRIPT({0}, {0}, {.stale = true}, {.status = 500}, {.stale = true}));
    want_start(&b->w[0], b->p);
    want_start(&b->w[1], b->p);
    run_s(b, 1); /* two connections are kept */
    want_start(&b->w[2], b->p);
    run_s(b, 1);
    CHECK_INT(b->w[2].r, PEN_OK);
    CHECK_INT(b->n, 6);
    CHECK_INT(b->p->rate.tokens, 500 - PEN_COST_RETRY);
    bench_free(b);
}

TEST(a_wrong_body_is_fetched_over_a_fresh_connection)
{
    Bench *b = bench_new(NULL, SCRIPT({.corrupt = true}));
    want_start(&b->w[0], b->p);
    run_s(b, 1);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->n, 2);
    CHECK_INT(b->fresh[1], 1);
    CHECK(simnet_body_is(b->w[0].url, b->w[0].into, sizeof b->w[0].into));
    bench_free(b);
}

TEST(again_once_for_each_cause)
{
    Bench *b = bench_new(NULL, NULL, 0);
    b->w[0].n_again = 3;
    b->w[0].n_causes = 3;
    b->w[1].n_again = 2; /* of one cause */
    b->w[2].n_again = 1;
    b->w[2].n_causes = 9;
    for (int i = 0; i < 3; i++)
        want_start(&b->w[i], b->p);
    run_s(b, 1);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->w[0].prepared, 4);
    CHECK(b->w[0].done_ns - b->w[0].began_ns < 200 * SIM_MS); /* at once */
    CHECK_INT(b->w[1].r, PEN_E_ACCESS);
    CHECK_INT(b->w[1].prepared, 2);
    CHECK_STR(b->w[1].err.message, NAME ": token expired");
    CHECK_INT(b->w[2].r, PEN_OK);
    CHECK_INT(b->p->rate.tokens, 500);
    bench_free(b);
}

TEST(prepare_may_ask_for_time)
{
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    s.outage_ms = 5000;
    Bench *b = bench_new(&s, NULL, 0);
    b->w[0].busy = 10;
    b->w[1].busy = UINT32_MAX;
    want_start(&b->w[0], b->p);
    want_start(&b->w[1], b->p);
    run_s(b, 1);
    CHECK_INT(b->w[0].r, PEN_OK);
    CHECK_INT(b->w[0].prepared, 11);
    CHECK_INT(b->w[0].attempt, 0); /* none of it was counted */
    CHECK_INT(b->p->attempts, 1);
    run_s(b, 9);
    CHECK_INT(b->w[1].done, 1);
    CHECK_INT(b->w[1].r, PEN_E_TIMEOUT);
    CHECK_INT(b->w[1].done_ns - b->w[1].began_ns, 5 * SIM_S);
    CHECK(strstr(b->w[1].err.message, "credentials are being fetched") != NULL);
    bench_free(b);
}

TEST(prepare_may_fail)
{
    Bench *b = bench_new(NULL, NULL, 0);
    b->w[0].refuse = PEN_E_ACCESS;
    CHECK_INT(want_start(&b->w[0], b->p), PEN_OK);
    CHECK_INT(b->w[0].done, 0);
    run_s(b, 1);
    CHECK_INT(b->w[0].done, 1);
    CHECK_INT(b->w[0].r, PEN_E_ACCESS);
    CHECK_STR(b->w[0].err.message, "no credentials");
    CHECK_INT(b->n, 0);
    bench_free(b);
}

TEST(an_outage_ends_with_the_budget)
{
    Bench *b = bench_new(NULL, NULL, 0);
    SimServer *server = simnet_server(b->net);
    server->out_to_ns = 600 * SIM_S;
    server->out = (SimAnswer){.failure = PEN_HTTP_CONNECT};
    want_start(&b->w[0], b->p);
    run_s(b, 299);
    CHECK_INT(b->w[0].done, 0);
    run_s(b, 10);
    CHECK_INT(b->w[0].done, 1);
    CHECK_INT(b->w[0].r, PEN_E_IO);
    uint64_t took = b->w[0].done_ns - b->w[0].began_ns;
    CHECK(took >= 300 * SIM_S && took <= 301 * SIM_S);
    char expected[128];
    snprintf(expected, sizeof expected,
             NAME ": given up after %u attempts over 300.0 s; last: ", b->n);
    CHECK(strncmp(b->w[0].err.message, expected, strlen(expected)) == 0);
    CHECK(strstr(b->w[0].err.message, "cannot connect") != NULL);
    CHECK(strstr(b->w[0].err.message, "check the server, or allow more time (Python: outage)") !=
          NULL);
    CHECK(b->n > 60 && b->n < 200); /* full jitter under a cap of 5 s */
    bench_free(b);
}

TEST(a_mute_server_is_a_timeout)
{
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    s.outage_ms = 2000; /* shorter than an attempt: it is cut */
    Bench *b = bench_new(&s, NULL, 0);
    simnet_server(b->net)->mute_permille = 1000;
    want_start(&b->w[0], b->p);
    run_s(b, 10);
    CHECK_INT(b->w[0].r, PEN_E_TIMEOUT);
    CHECK(b->w[0].done_ns - b->w[0].began_ns <= 3 * SIM_S);
    bench_free(b);
}

TEST(waiting_for_a_place_counts)
{
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    s.in_flight = 1;
    s.limits = (PenHttpLimits){600000, 600000, 1, 600000, 600000};
    Bench *b = bench_new(&s, NULL, 0);
    simnet_server(b->net)->mute_permille = 1000;
    want_start(&b->w[0], b->p);
    run_s(b, 10);
    want_start(&b->w[1], b->p);
    run_s(b, 400);
    CHECK_INT(b->w[0].r, PEN_E_TIMEOUT);
    CHECK_INT(b->w[1].r, PEN_E_TIMEOUT);
    CHECK(b->w[1].done_ns - b->w[1].began_ns <= 301 * SIM_S);
    b->p->in_flight = 1; /* a place that is never given back */
    want_start(&b->w[2], b->p);
    run_s(b, 400);
    b->p->in_flight = 0;
    CHECK_INT(b->w[2].r, PEN_E_TIMEOUT);
    CHECK_INT(b->w[2].done_ns - b->w[2].began_ns, 300 * SIM_S);
    CHECK_INT(b->w[2].prepared, 0);
    CHECK(strstr(b->w[2].err.message, "0 attempts in 300.0 s") != NULL);
    bench_free(b);
}

TEST(back_off_is_full_jitter)
{
    SimNet *net = simnet_new(3);
    PenTransport *t = simnet_client(net);
    for (unsigned n = 0; n < 40; n++) {
        uint64_t most = n < 7 ? 50 * SIM_MS << n : 5000 * SIM_MS, low = UINT64_MAX, high = 0,
                 sum = 0;
        for (int i = 0; i < 1000; i++) {
            uint64_t ns = pen__backoff_ns(50, 5000, n, t->class_->random(t));
            low = PEN_MIN(low, ns);
            high = PEN_MAX(high, ns);
            sum += ns / 1000;
        }
        CHECK(high <= most && high > most - most / 50);
        CHECK(low < most / 50);
        CHECK(sum > most / 1000 * 470 && sum < most / 1000 * 530);
    }
    for (int i = 0; i < 1000; i++) {
        uint64_t ns = pen__retry_after_ns(3000, 1000, 20000, t->class_->random(t));
        CHECK(ns >= 3 * SIM_S && ns <= 4 * SIM_S);
        ns = pen__retry_after_ns(3600000, 1000, 20000, t->class_->random(t));
        CHECK(ns >= 15 * SIM_S && ns <= 20 * SIM_S);
        ns = pen__retry_after_ns(19900, 1000, 20000, t->class_->random(t));
        CHECK(ns >= 19900 * SIM_MS && ns <= 20 * SIM_S);
    }
    simnet_free(&net);
}

TEST(attempts_are_spaced_as_the_answer_says)
{
    /* Waits between requests of one operation, least and most, for each kind of trouble. */
    static const struct {
        SimAnswer out;
        uint64_t caps_ms[6], least_ms;
    } cases[] = {
        {{.status = 500}, {50, 100, 200, 400, 800, 1600}, 0},
        {{.status = 429}, {1000, 2000, 4000, 8000, 16000, 20000}, 0},
        {{.status = 503, .retry_after_ms = 3600000},
         {20000, 20000, 20000, 20000, 20000, 20000},
         15000},
        {{.status = 503, .retry_after_ms = 2000}, {3000, 3000, 3000, 3000, 3000, 3000}, 2000},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        Bench *b = bench_new(NULL, NULL, 0);
        SimServer *server = simnet_server(b->net);
        server->out_to_ns = UINT64_MAX;
        server->out = cases[i].out;
        want_start(&b->w[0], b->p);
        run_s(b, 299);
        CHECK_INT(b->w[0].done, 0);
        CHECK(b->n > 6);
        for (int k = 0; k < 6; k++) {
            uint64_t gap = b->at_ns[k + 1] - b->at_ns[k];
            CHECK(gap >= cases[i].least_ms * SIM_MS);
            CHECK(gap <= (cases[i].caps_ms[k] + 40) * SIM_MS); /* and the answer's own time */
        }
        bench_free(b);
        CHECK_OK_SO_FAR();
    }
}

TEST(tokens_set_the_rate)
{
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    s.bucket = 50;
    Bench *b = bench_new(&s, NULL, 0);
    SimServer *server = simnet_server(b->net);
    server->out_to_ns = simnet_now(b->net) + 100 * SIM_S;
    server->out = (SimAnswer){.status = 500};
    for (int i = 0; i < 200; i++)
        want_start(&b->w[i], b->p);
    run_s(b, 100);
    /* 200 first ones, 10 from the bucket, one a second. */
    CHECK(b->n >= 300 && b->n <= 312);
    run_s(b, 6); /* and nobody has failed for want of tokens */
    CHECK_INT(b->p->failures, 0);
    for (int i = 0; i < 200; i++)
        CHECK_INT(b->w[i].done, 1);
    bench_free(b);
}

TEST(what_is_free_does_not_wait_for_tokens)
{
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    s.bucket = 14;
    Bench *b = bench_new(&s, NULL, 0);
    simnet_server(b->net)->out_to_ns = simnet_now(b->net) + 60 * SIM_S;
    simnet_server(b->net)->out = (SimAnswer){.status = 500};
    for (int i = 0; i < 50; i++)
        want_start(&b->w[i], b->p);
    run_s(b, 10);
    CHECK(b->p->again.first != NULL);
    simnet_server(b->net)->out_to_ns = 0;
    b->w[100].n_again = 1;
    want_start(&b->w[100], b->p);
    run_s(b, 1);
    CHECK_INT(b->w[100].r, PEN_OK);
    CHECK(b->w[100].done && b->w[100].done_ns - b->w[100].began_ns <= 100 * SIM_MS);
    run_s(b, 60);
    bench_free(b);
}

TEST(throttling_halves_and_recovers)
{
    Bench *b = bench_new(NULL, NULL, 0);
    SimServer *server = simnet_server(b->net);
    server->out_to_ns = simnet_now(b->net) + 60 * SIM_MS;
    server->out = (SimAnswer){.status = 429};
    for (int i = 0; i < 200; i++)
        want_start(&b->w[i], b->p);
    while (b->p->pace.limit == 24)
        simnet_step(b->net, UINT64_MAX);
    unsigned first = b->p->pace.limit;
    CHECK(first >= 12 && first <= 18);
    CHECK_INT(b->p->pace.safe, 12);
    while (simnet_now(b->net) < server->out_to_ns)
        simnet_step(b->net, UINT64_MAX);
    CHECK(b->p->pace.limit < first);
    run_s(b, 30);
    CHECK(b->p->pace.limit >= 8);
    CHECK_INT(b->p->ops - b->p->failures, 200);
    for (int i = 0; i < 200; i++)
        CHECK_INT(b->w[i].done, 1);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 200; i++) {
            want_init(&b->w[i], b->net, (unsigned)i);
            want_start(&b->w[i], b->p);
        }
        run_s(b, 5);
    }
    CHECK(b->p->pace.limit >= 12);
    bench_free(b);
}

TEST(the_end_of_an_outage_wakes_those_who_sleep)
{
    for (int asked = 0; asked < 2; asked++) {
        Bench *b = bench_new(NULL, NULL, 0);
        SimServer *server = simnet_server(b->net);
        server->out_to_ns = simnet_now(b->net) + 15 * SIM_S;
        server->out = (SimAnswer){.status = 429, .retry_after_ms = asked ? 12000 : 0};
        for (int i = 0; i < 10; i++)
            want_start(&b->w[i], b->p);
        run_s(b, 15);
        uint64_t up = simnet_now(b->net), last = 0;
        want_start(&b->w[10], b->p); /* it finds the server well */
        run_s(b, 60);
        for (int i = 0; i < 11; i++) {
            CHECK_INT(b->w[i].r, PEN_OK);
            last = PEN_MAX(last, b->w[i].done_ns - up);
        }
        /* Most would have slept for up to 16 s; but what the server asked for is kept to. */
        if (asked)
            CHECK(last > 8 * SIM_S);
        else
            CHECK(last < 1200 * SIM_MS);
        bench_free(b);
        CHECK_OK_SO_FAR();
    }
}

TEST(an_outage_by_itself)
{
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    PenRate rate;
    pen__rate_init(&rate, &s, SIM_S);
    for (int i = 0; i < 8; i++)
        pen__rate_failure(&rate);
    CHECK(pen__rate_success(&rate, 0, 9 * SIM_S));
    CHECK(!pen__rate_success(&rate, 0, 9 * SIM_S));
    for (int i = 0; i < 3; i++)
        pen__rate_failure(&rate);
    CHECK(!pen__rate_success(&rate, 0, 20 * SIM_S)); /* too few */
    for (int i = 0; i < 8; i++)
        pen__rate_failure(&rate);
    CHECK(!pen__rate_success(&rate, 0, 20 * SIM_S + SIM_S / 2)); /* too short */
}

TEST(cancelled_at_every_stage)
{
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    s.in_flight = 2;
    s.bucket = 14;
    /* After k events of a run with all kinds of trouble, whatever stage they are in. */
    for (int k = 0; k < 400; k++) {
        Bench *b = bench_new(&s, SCRIPT({.status = 500}, {.status = 429}, {.mute = true},
                                        {.after_ns = SIM_S}, {.status = 500}, {.corrupt = true},
                                        {.status = 500}, {.status = 500}, {.status = 500}));
        for (int i = 0; i < PEN_TAIL_LEAST; i++)
            pen__tail_add(&b->p->tails[0], 20 * SIM_MS);
        b->p->hedge_credit = 1000;
        for (int i = 0; i < 6; i++) {
            b->w[i].busy = i == 5 ? 3 : 0;
            want_start(&b->w[i], b->p);
        }
        for (int i = 0; i < k; i++)
            simnet_step(b->net, 600 * SIM_S);
        for (int i = 0; i < 6; i++)
            if (b->w[i].op)
                pen__policy_cancel(b->w[i].op);
        CHECK_INT(b->p->in_flight, 0);
        unsigned seen[6];
        for (int i = 0; i < 6; i++)
            seen[i] = b->w[i].done + b->w[i].prepared + b->w[i].judged;
        run_s(b, 400);
        for (int i = 0; i < 6; i++)
            CHECK_INT(b->w[i].done + b->w[i].prepared + b->w[i].judged, seen[i]);
        want_start(&b->w[10], b->p); /* the rest still works */
        run_s(b, 60);
        CHECK_INT(b->w[10].done, 1);
        bench_free(b);
        CHECK_OK_SO_FAR();
    }
}

TEST(settings_are_checked)
{
    SimNet *net = simnet_new(1);
    PenPolicySettings s;
    PenPolicy *p = NULL;
    PenError err;
    pen__policy_settings_init(&s);
    s.in_flight = 0;
    CHECK_INT(pen__policy_new(simnet_client(net), &s, &p, &err), PEN_E_INVALID);
    CHECK(p == NULL);
    pen__policy_free(&p);
    simnet_free(&net);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(one_request);
    RUN(transient_errors_are_retried);
    RUN(final_answers);
    RUN(what_answers_mean);
    RUN(a_kept_connection_that_was_closed);
    RUN(a_wrong_body_is_fetched_over_a_fresh_connection);
    RUN(again_once_for_each_cause);
    RUN(prepare_may_ask_for_time);
    RUN(prepare_may_fail);
    RUN(an_outage_ends_with_the_budget);
    RUN(a_mute_server_is_a_timeout);
    RUN(waiting_for_a_place_counts);
    RUN(back_off_is_full_jitter);
    RUN(attempts_are_spaced_as_the_answer_says);
    RUN(tokens_set_the_rate);
    RUN(what_is_free_does_not_wait_for_tokens);
    RUN(throttling_halves_and_recovers);
    RUN(the_end_of_an_outage_wakes_those_who_sleep);
    RUN(an_outage_by_itself);
    RUN(cancelled_at_every_stage);
    RUN(settings_are_checked);
    return TEST_END();
}
