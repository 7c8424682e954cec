/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and their life: wanted, under way (perhaps twice at once), asleep, wanted again,
 * ended.
 *
 * Whatever happens ends in pen__policy_pump, which alone begins attempts. An operation stands in at
 * most one queue, and has its timer set only while it sleeps or may be hedged. */
#include "net/retry/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "net/retry/policy_impl.h"

#define WHERE "net/policy"

#define WAKE_NS (1000 * PEN_NS_PER_MS) /* over which those who sleep are woken after an outage */

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
        .in_flight = 64,
        .hedge_percent = 5,
        .hedge_least_ms = 200,
    };
}

/* ---- lists ---- */

static void link_op(PenOpList *list, PenOperation *op, int k)
{
    op->prev[k] = list->last;
    op->next[k] = NULL;
    *(list->last ? &list->last->next[k] : &list->first) = op;
    list->last = op;
}

static void unlink_op(PenOpList *list, PenOperation *op, int k)
{
    *(op->prev[k] ? &op->prev[k]->next[k] : &list->first) = op->next[k];
    *(op->next[k] ? &op->next[k]->prev[k] : &list->last) = op->prev[k];
}

void pen__op_unqueue(PenOperation *op)
{
    if (op->queue)
        unlink_op(op->queue, op, PEN_LINK_QUEUE);
    op->queue = NULL;
}

void pen__op_queue(PenOperation *op, PenOpList *list)
{
    pen__op_unqueue(op);
    link_op(list, op, PEN_LINK_QUEUE);
    op->queue = list;
}

/* ---- the end ---- */

static void clear_timer(PenPolicy *p, PenTimer *timer)
{
    p->t->class_->timer_clear(p->t, timer);
}

static void on_pump(void *ctx)
{
    pen__policy_pump(ctx);
}

void pen__policy_pump_at(PenPolicy *p, uint64_t at_ns)
{
    if (p->pump.set && p->pump.at_ns <= at_ns)
        return;
    clear_timer(p, &p->pump);
    p->t->class_->timer_set(p->t, &p->pump, at_ns, on_pump, p);
}

static void free_op(PenOperation *op)
{
    PenPolicy *p = op->policy;
    pen__hedge_drop(op);
    pen__attempt_cancel(&op->try[0]);
    unlink_op(&p->all, op, PEN_LINK_ALL);
    pen__free(op);
}

/* The operation is gone before its wisher hears of it, who may at once begin another. */
void pen__op_finish(PenOperation *op, int r, const PenError *err)
{
    PenWish wish = op->wish;
    if (r < 0)
        pen__policy_count(&op->policy->failures, 1);
    free_op(op);
    wish.done(wish.ctx, r, r < 0 ? err : NULL);
}

void pen__op_tell(const PenOperation *op, const char *what, PenError *ret)
{
    double seconds = (double)(pen__policy_now(op->policy) - op->began_ns) / 1e9;
    const PenError *last = &op->last;
    const char *why = last->message, *name = op->wish.name;
    size_t n = strlen(name);
    if (strncmp(why, name, n) == 0 && strncmp(why + n, ": ", 2) == 0)
        why += n + 2; /* said already */
    if (op->attempts)
        pen__fail(
            ret, last->status ? last->status : PEN_E_TIMEOUT, WHERE,
            "%.160s: %s %u attempt%s over %.1f s; last: %.180s; check the server, or allow more "
            "time (Python: outage)",
            name, what, op->attempts, op->attempts == 1 ? "" : "s", seconds,
            last->status ? why : "no response yet");
    else if (last->status)
        pen__fail(ret, PEN_E_TIMEOUT, WHERE, "%.160s: %s 0 attempts in %.1f s; not ready: %.200s",
                  name, what, seconds, why);
    else
        pen__fail(ret, PEN_E_TIMEOUT, WHERE,
                  "%.160s: %s 0 attempts in %.1f s: all %u request slots were in use; make fewer "
                  "requests at once",
                  name, what, seconds, op->policy->pace.limit);
    ret->os_errno = last->os_errno;
}

void pen__op_give_up(PenOperation *op)
{
    PenError err;
    pen__op_tell(op, "given up after", &err);
    pen__op_finish(op, err.status, &err);
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
        op = p->all.first; /* its wisher may have changed the list */
    }
    if (op)
        p->t->class_->timer_set(p->t, &p->expiry, op->end_ns, on_expiry, p);
}

/* ---- sleep ---- */

static void on_awake(void *ctx)
{
    PenOperation *op = ctx;
    PenPolicy *p = op->policy;
    op->busy = false;
    if (op->attempts)
        pen__op_queue(op, op->cost ? &p->again : &p->at_once);
    else
        pen__op_queue(op, &p->wanted);
    pen__policy_pump(p);
}

void pen__op_sleep(PenOperation *op, uint64_t at_ns)
{
    PenPolicy *p = op->policy;
    pen__op_queue(op, &p->asleep);
    clear_timer(p, &op->timer);
    p->t->class_->timer_set(p->t, &op->timer, at_ns, on_awake, op);
}

/* The server is back: nobody needs to sleep off what it did before, but they come one by one. */
void pen__policy_wake(PenPolicy *p)
{
    uint64_t now = pen__policy_now(p);
    PenOperation *last = p->asleep.last, *next;
    for (PenOperation *op = p->asleep.first; op; op = op == last ? NULL : next) {
        next = op->next[PEN_LINK_QUEUE];
        uint64_t at = PEN_MAX(now + pen__policy_random(p) % WAKE_NS, op->not_before_ns);
        if (!op->busy && at < op->timer.at_ns)
            pen__op_sleep(op, at);
    }
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
        free_op(p->all.first);
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

int pen__policy_start(PenPolicy *p, const PenWish *wish, PenOperation **ret, PenError *reterr)
{
    PenOperation *op = pen__zalloc(sizeof *op);
    if (!op)
        return pen__fail_memory(reterr, WHERE, "operation");
    op->policy = p;
    op->wish = *wish;
    op->try[0].op = op->try[1].op = op;
    op->began_ns = pen__policy_now(p);
    op->end_ns = op->began_ns + p->s.outage_ms * PEN_NS_PER_MS;
    link_op(&p->all, op, PEN_LINK_ALL);
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
    free_op(op);
    pen__policy_pump_at(p, pen__policy_now(p)); /* its place is free */
}
