/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/caller.h"

#include "base/error.h"
#include "base/mem.h"
#include "sim/store.h"

#define WHERE "sim/caller"

typedef struct PenSimCall {
    PenSimCaller *caller;
    PenSimRequest request;
    uint64_t start_ns;
    PenCall *done;
    void *ctx;
    struct PenSimCall *prev, *next;
} Call;

void pen__sim_fault(PenSimFault *fault, int r, const PenError *err)
{
    if (fault->r < 0)
        return;
    fault->r = r;
    fault->err = *err;
}

static int prepare(void *ctx, unsigned attempt, PenHttpRequest *ret, PenError *reterr)
{
    const Call *call = ctx;
    (void)attempt;
    (void)reterr;
    ret->method = "GET"; /* the network does not distinguish them */
    ret->url = pen__sim_store_url(call->request.prefix);
    ret->into_bytes = (size_t)call->request.bytes;
    return PEN_OK;
}

static PenVerdict classify(void *ctx, const PenHttpReply *reply, unsigned *cause, PenError *err)
{
    (void)ctx;
    (void)cause;
    return pen__policy_classify("simulated", reply, err);
}

static void end_call(Call *call)
{
    *(call->prev ? &call->prev->next : &call->caller->calls) = call->next;
    if (call->next)
        call->next->prev = call->prev;
    pen__free(call);
}

static void replied(void *ctx, int r, const PenError *err)
{
    Call *call = ctx;
    PenSimCaller *c = call->caller;
    PenCall *done = call->done;
    void *of = call->ctx;
    c->busy_ns += pen__sim_caller_now(c) - call->start_ns;
    end_call(call);
    if (r < 0)
        pen__sim_fault(c->fault, r, err);
    else if (c->fault->r == PEN_OK)
        done(of);
}

/* As late as a process connects to a store: the policy measures from its beginning on. */
static int open_policy(PenSimCaller *c, PenError *reterr)
{
    PenPolicySettings settings;
    if (c->policy)
        return PEN_OK;
    pen__policy_settings_init(&settings);
    if (c->in_flight)
        settings.in_flight = c->in_flight;
    return pen__policy_new(c->t, &settings, &c->policy, reterr);
}

void pen__sim_call(PenSimCaller *c, const PenSimRequest *request, PenCall *done, void *ctx)
{
    PenError err = {0};
    PenOperation *op = NULL;
    Call *call = pen__alloc(sizeof *call);
    if (!call) {
        pen__sim_fault(c->fault, pen__fail_memory(&err, WHERE, "request"), &err);
        return;
    }
    *call = (Call){.caller = c,
                   .request = *request,
                   .start_ns = pen__sim_caller_now(c),
                   .done = done,
                   .ctx = ctx,
                   .next = c->calls};
    if (c->calls)
        c->calls->prev = call;
    c->calls = call;
    PenOperationSpec spec = {.prepare = prepare,
                             .classify = classify,
                             .done = replied,
                             .ctx = call,
                             .name = "simulated",
                             .bytes = request->bytes,
                             .may_hedge = request->kind == PEN_SIM_SOURCE ||
                                          request->kind == PEN_SIM_GET ||
                                          request->kind == PEN_SIM_LIST};
    int r = open_policy(c, &err);
    if (r == PEN_OK)
        r = pen__policy_start(c->policy, &spec, &op, &err);
    if (r < 0)
        pen__sim_fault(c->fault, r, &err);
    else
        c->begun[request->kind]++;
}

static int caller_init(PenSimCaller *c, PenSimNet *net, PenSimLink *link, uint32_t in_flight,
                       PenSimFault *fault, PenError *reterr)
{
    *c =
        (PenSimCaller){.t = pen__sim_net_client(net, link), .in_flight = in_flight, .fault = fault};
    return c->t ? PEN_OK : pen__fail_memory(reterr, WHERE, "client");
}

static void caller_fini(PenSimCaller *c)
{
    pen__policy_free(&c->policy);
    while (c->calls)
        end_call(c->calls);
}

int pen__sim_process_init(PenSimProcess *p, PenSimNet *net, const PenSimNode *node,
                          uint32_t in_flight, PenSimFault *fault, PenError *reterr)
{
    int r = PEN_OK;
    for (unsigned i = 0; i < PEN_SIM_CALLERS && r == PEN_OK; i++)
        r = caller_init(&p->callers[i], net, i == PEN_SIM_OUT ? node->out : node->in, in_flight,
                        fault, reterr);
    return r;
}

void pen__sim_process_fini(PenSimProcess *p)
{
    for (unsigned i = 0; i < PEN_SIM_CALLERS; i++)
        caller_fini(&p->callers[i]);
}

unsigned pen__sim_caller_of(PenSimKind kind)
{
    if (kind == PEN_SIM_SOURCE)
        return PEN_SIM_OF_SOURCES;
    return kind == PEN_SIM_GET || kind == PEN_SIM_LIST ? PEN_SIM_IN : PEN_SIM_OUT;
}
