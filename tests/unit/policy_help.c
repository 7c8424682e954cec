/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_help.h"

static int want_prepare(void *ctx, unsigned attempt, PenHttpRequest *ret, PenError *reterr)
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
    ret->arrival = w->arrival;
    return PEN_OK;
}

static PenVerdict want_judge(void *ctx, const PenHttpReply *reply, unsigned *cause, PenError *err)
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
    PenVerdict verdict = pen__policy_classify(w->spec.name, reply, err);
    if (verdict == PEN_VERDICT_DONE && !simnet_body_is(w->url, w->into, reply->bytes)) {
        err->status = PEN_E_CORRUPT;
        snprintf(err->message, sizeof err->message, NAME ": checksum");
        return PEN_VERDICT_RETRY;
    }
    return verdict;
}

static void want_done(void *ctx, int r, const PenError *err)
{
    Want *w = ctx;
    w->done++;
    w->r = r;
    w->op = NULL;
    w->done_ns = simnet_now(w->net);
    if (err)
        w->err = *err;
}

void want_init(Want *w, SimNet *net, unsigned number)
{
    memset(w, 0, sizeof *w);
    w->net = net;
    snprintf(w->url, sizeof w->url, "http://sim/%u", number);
    w->spec = (PenOperationSpec){.prepare = want_prepare,
                                 .classify = want_judge,
                                 .done = want_done,
                                 .ctx = w,
                                 .name = NAME,
                                 .may_hedge = 1};
}

int want_start(Want *w, PenPolicy *p)
{
    w->began_ns = simnet_now(w->net);
    return pen__policy_start(p, &w->spec, &w->op, NULL);
}

void on_request(void *ctx, uint64_t now_ns, int client, const PenHttpRequest *request,
                const SimAnswer *answer)
{
    Bench *b = ctx;
    (void)client, (void)answer;
    if (b->n < PEN_LEN(b->at_ns)) {
        b->at_ns[b->n] = now_ns;
        b->fresh[b->n] = request->fresh;
        b->heard[b->n] = request->arrival != NULL;
    }
    b->n++;
}

Bench *bench_new(const PenPolicySettings *s, const SimAnswer *script, size_t n_script)
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

void bench_free(Bench *b)
{
    pen__policy_free(&b->p);
    unsigned transfers = simnet_transfers(b->t), timers = simnet_timers(b->t);
    simnet_free(&b->net);
    free(b);
    CHECK_INT(transfers, 0);
    CHECK_INT(timers, 0);
}

void run_s(Bench *b, uint64_t seconds)
{
    simnet_run(b->net, simnet_now(b->net) + seconds * SIM_S);
}
