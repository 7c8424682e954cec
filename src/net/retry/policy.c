/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the policy, and the end of an operation's time. */
#include "net/retry/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "net/retry/policy_impl.h"

#define WHERE "net/policy"

void pen__policy_settings_init(PenPolicySettings *s)
{
    *s = (PenPolicySettings){
        .limits = {.connect_ms = 3000,
                   .first_byte_ms = 5000,
                   .slow_bytes = 5 * 65536,
                   .slow_ms = 5000,
                   .deadline_ms = 30000},
        .outage_ms = 300000,
        .base_ms = 50,
        .cap_ms = 5000,
        .slow_base_ms = 1000,
        .slow_cap_ms = 20000,
        .bucket = 500,
        .in_flight = 256,
        .hedge_percent = 5,
        .hedge_least_ms = 200,
    };
}

/* ---- the end ---- */

static void clear_timer(PenPolicy *p, PenTimer *timer)
{
    p->t->class_->timer_clear(p->t, timer);
}

static void on_expiry(void *ctx)
{
    PenPolicy *p = ctx;
    uint64_t now = pen__policy_now(p);
    PenOperation *op = p->all.first;
    while (op && op->end_ns <= now) {
        if (op->try[0].transfer || op->try[1].transfer) {
            op = op->next[PEN_LINK_ALL]; /* the answer ends it; it has little time left */
            continue;
        }
        pen__op_give_up(op);
        op = p->all.first; /* its caller may have changed the list */
    }
    if (op)
        p->t->class_->timer_set(p->t, &p->expiry, op->end_ns, on_expiry, p);
}

/* ---- calls ---- */

static bool settings_hold(const PenPolicySettings *s)
{
    const PenHttpLimits *l = &s->limits;
    return l->connect_ms && l->first_byte_ms && l->slow_bytes && l->slow_ms && l->deadline_ms &&
           s->outage_ms && s->in_flight && s->bucket >= PEN_COST_TIMEOUT && s->base_ms &&
           s->slow_base_ms && s->base_ms <= s->cap_ms && s->slow_base_ms <= s->slow_cap_ms &&
           s->hedge_percent <= 100;
}

int pen__policy_new(PenTransport *t, const PenPolicySettings *settings, PenPolicy **ret,
                    PenError *reterr)
{
    PenPolicySettings s;
    pen__policy_settings_init(&s);
    if (settings)
        s = *settings;
    if (!settings_hold(&s))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "retry settings: expected limits above 0, base delays up to their caps "
                         "and a token bucket of at least %d",
                         PEN_COST_TIMEOUT);
    PenPolicy *p = pen__zalloc(sizeof *p);
    if (!p)
        return pen__fail_memory(reterr, WHERE, "retry policy");
    p->t = t;
    p->s = s;
    pen__rate_init(&p->rate, &s, pen__policy_now(p));
    pen__pace_init(&p->pace, s.in_flight, pen__policy_now(p));
    atomic_store_explicit(&p->seen_limit, p->pace.limit, memory_order_relaxed);
    *ret = p;
    return PEN_OK;
}

void pen__policy_free(PenPolicy **policy)
{
    PenPolicy *p = *policy;
    if (!p)
        return;
    while (p->all.first)
        pen__op_free(p->all.first);
    clear_timer(p, &p->pump);
    clear_timer(p, &p->expiry);
    pen__free(p);
    *policy = NULL;
}

void pen__policy_counts(PenPolicy *p, PenPolicyCounts *ret)
{
    *ret = (PenPolicyCounts){
        .ops = p->ops,
        .attempts = p->attempts,
        .retries = p->retries,
        .throttles = p->throttles,
        .hedges = p->hedges,
        .hedges_won = p->hedges_won,
        .failures = p->failures,
        .in_flight = p->seen_in_flight,
        .limit = p->seen_limit,
        .bytes = p->bytes,
    };
}

int pen__policy_start(PenPolicy *p, const PenOperationSpec *spec, PenOperation **ret,
                      PenError *reterr)
{
    PenOperation *op = pen__zalloc(sizeof *op);
    if (!op)
        return pen__fail_memory(reterr, WHERE, "operation");
    op->policy = p;
    op->spec = *spec;
    op->try[0].op = op->try[1].op = op;
    op->began_ns = pen__policy_now(p);
    op->end_ns = op->began_ns + p->s.outage_ms * PEN_NS_PER_MS;
    pen__op_link(&p->all, op, PEN_LINK_ALL);
    pen__op_queue(op, &p->wanted);
    pen__policy_count(&p->ops, 1);
    if (!p->expiry.set)
        p->t->class_->timer_set(p->t, &p->expiry, op->end_ns, on_expiry, p);
    pen__policy_pump_at(p, op->began_ns);
    *ret = op;
    return PEN_OK;
}

void pen__policy_cancel(PenOperation *op)
{
    PenPolicy *p = op->policy;
    pen__op_free(op);
    pen__policy_pump_at(p, pen__policy_now(p)); /* its place is free */
}
