/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes over a simulated network, and what became of them. */
#ifndef PEN_TESTS_UNIT_POLICY_HELP_H
#define PEN_TESTS_UNIT_POLICY_HELP_H

#include <stdlib.h>

#include "test.h"

#include "base/attr.h"
#include "net/retry/policy_impl.h"
#include "net/simnet.h"

#define NAME "s3://bucket/train.pen"

typedef struct Want {
    SimNet *net;
    PenWish wish;
    PenOperation *op;
    char url[64];
    uint8_t into[4096];
    const struct iovec *v; /* instead */
    int n_v;
    unsigned prepared, judged, done; /* calls */
    unsigned attempt;                /* the number that prepare was last told */
    unsigned busy;                   /* prepare says so as often */
    int refuse;                      /* prepare fails with it */
    unsigned n_again, n_causes;      /* so often AGAIN, with as many causes in turn */
    int r;
    PenError err;
    uint64_t began_ns, done_ns;
} Want;

__attribute__((unused)) static int want_prepare(void *ctx, unsigned attempt, PenHttpRequest *ret,
                                                PenError *reterr)
{
    Want *w = ctx;
    w->prepared++;
    w->attempt = attempt;
    if (w->busy) {
        w->busy--;
        reterr->status = PEN_E_BUSY;
        snprintf(reterr->message, sizeof reterr->message, "credentials are being fetched");
        return PEN_E_BUSY;
    }
    if (w->refuse) {
        reterr->status = w->refuse;
        snprintf(reterr->message, sizeof reterr->message, "no credentials");
        return w->refuse;
    }
    ret->method = "GET";
    ret->url = w->url;
    ret->into = w->into;
    ret->into_bytes = sizeof w->into;
    ret->into_v = w->v;
    ret->n_into = w->n_v;
    return PEN_OK;
}

__attribute__((unused)) static PenVerdict want_judge(void *ctx, const PenHttpReply *reply,
                                                     unsigned *cause, PenError *err)
{
    Want *w = ctx;
    w->judged++;
    if (w->n_again) {
        w->n_again--;
        *cause = w->n_causes ? w->n_again % w->n_causes : 0;
        err->status = PEN_E_ACCESS;
        snprintf(err->message, sizeof err->message, NAME ": token expired");
        return PEN_VERDICT_AGAIN;
    }
    PenVerdict verdict = pen__policy_classify(w->wish.name, reply, err);
    if (verdict == PEN_VERDICT_DONE && !simnet_body_is(w->url, w->into, reply->bytes)) {
        err->status = PEN_E_CORRUPT;
        snprintf(err->message, sizeof err->message, NAME ": checksum");
        return PEN_VERDICT_RETRY;
    }
    return verdict;
}

__attribute__((unused)) static void want_done(void *ctx, int r, const PenError *err)
{
    Want *w = ctx;
    w->done++;
    w->r = r;
    w->op = NULL;
    w->done_ns = simnet_now(w->net);
    if (err)
        w->err = *err;
}

__attribute__((unused)) static void want_init(Want *w, SimNet *net, unsigned number)
{
    memset(w, 0, sizeof *w);
    w->net = net;
    snprintf(w->url, sizeof w->url, "http://sim/%u", number);
    w->wish = (PenWish){.prepare = want_prepare,
                        .classify = want_judge,
                        .done = want_done,
                        .ctx = w,
                        .name = NAME,
                        .may_hedge = 1};
}

__attribute__((unused)) static int want_start(Want *w, PenPolicy *p)
{
    w->began_ns = simnet_now(w->net);
    return pen__policy_start(p, &w->wish, &w->op, NULL);
}

/* A network, a client and its policy, and the times of the requests. */
typedef struct Bench {
    SimNet *net;
    PenTransport *t;
    PenPolicy *p;
    uint64_t at_ns[4096]; /* of requests */
    uint8_t fresh[4096];
    unsigned n;
    Want w[256];
} Bench;

__attribute__((unused)) static void on_request(void *ctx, uint64_t now_ns, int client,
                                               const PenHttpRequest *request,
                                               const SimAnswer *answer)
{
    Bench *b = ctx;
    (void)client, (void)answer;
    if (b->n < PEN_LEN(b->at_ns)) {
        b->at_ns[b->n] = now_ns;
        b->fresh[b->n] = request->fresh;
    }
    b->n++;
}

__attribute__((unused)) static Bench *bench_new(const PenPolicySettings *s, const SimAnswer *script,
                                                size_t n_script)
{
    Bench *b = calloc(1, sizeof *b);
    b->net = simnet_new(7);
    b->t = simnet_client(b->net);
    SimServer *server = simnet_server(b->net);
    server->script = script;
    server->n_script = n_script;
    server->on_request = on_request;
    server->on_request_ctx = b;
    if (pen__policy_new(b->t, s, &b->p, NULL) < 0)
        abort();
    for (unsigned i = 0; i < PEN_LEN(b->w); i++)
        want_init(&b->w[i], b->net, i);
    return b;
}

/* Nothing may be left: no transfer, no timer of an operation. */
__attribute__((unused)) static void bench_free(Bench *b)
{
    pen__policy_free(&b->p);
    unsigned transfers = simnet_transfers(b->t), timers = simnet_timers(b->t);
    simnet_free(&b->net);
    free(b);
    CHECK_INT(transfers, 0);
    CHECK_INT(timers, 0);
}

__attribute__((unused)) static void run_s(Bench *b, uint64_t seconds)
{
    simnet_run(b->net, simnet_now(b->net) + seconds * SIM_S);
}

#define SCRIPT(...)                                                                                \
    (const SimAnswer[]){__VA_ARGS__}, sizeof((const SimAnswer[]){__VA_ARGS__}) / sizeof(SimAnswer)

#endif
