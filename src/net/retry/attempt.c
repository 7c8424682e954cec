/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts: how they begin, and what follows from their answers. Whatever happens ends in
 * pump(), which alone begins them. An operation stands in at most one queue, and has its timer set
 * only while it sleeps or may be hedged. */
#include "net/retry/policy_impl.h"

#include "base/attr.h"
#include "base/error.h"

#define WHERE "net/policy"

#define BUSY_NS (20 * PEN_NS_PER_MS)   /* until prepare is asked again */
#define AWAY_NS (5 * PEN_NS_PER_S)     /* after so long a server may be another one */
#define WAKE_NS (1000 * PEN_NS_PER_MS) /* over which those who sleep are woken after an outage */
#define LAST_NS PEN_NS_PER_S           /* an attempt may go on after the outage budget's end */

static void pump(PenPolicy *p);

/* ---- waiting ---- */

static void on_pump(void *ctx)
{
    pump(ctx);
}

void pen__policy_pump_at(PenPolicy *p, uint64_t at_ns)
{
    if (p->pump.set && p->pump.at_ns <= at_ns)
        return;
    p->t->class_->timer_clear(p->t, &p->pump);
    p->t->class_->timer_set(p->t, &p->pump, at_ns, on_pump, p);
}

static void on_awake(void *ctx)
{
    PenOperation *op = ctx;
    PenPolicy *p = op->policy;
    op->busy = false;
    if (op->attempts)
        pen__op_queue(op, op->cost ? &p->again : &p->at_once);
    else
        pen__op_queue(op, &p->wanted);
    pump(p);
}

static void sleep_until(PenOperation *op, uint64_t at_ns)
{
    PenPolicy *p = op->policy;
    pen__op_queue(op, &p->asleep);
    p->t->class_->timer_clear(p->t, &op->timer);
    p->t->class_->timer_set(p->t, &op->timer, at_ns, on_awake, op);
}

/* The server is back: nobody needs to sleep off what it did before, but they come one by one. */
static void wake_all(PenPolicy *p)
{
    uint64_t now = pen__policy_now(p);
    PenOperation *last = p->asleep.last, *next;
    for (PenOperation *op = p->asleep.first; op; op = op == last ? NULL : next) {
        next = op->next[PEN_LINK_QUEUE];
        uint64_t at = PEN_MAX(now + pen__policy_random(p) % WAKE_NS, op->not_before_ns);
        if (!op->busy && at < op->timer.at_ns)
            sleep_until(op, at);
    }
}

/* ---- answers ---- */

static void back_off(PenOperation *op, PenVerdict verdict, const PenHttpReply *reply)
{
    PenPolicy *p = op->policy;
    const PenPolicySettings *s = &p->s;
    uint64_t now = pen__policy_now(p), random = pen__policy_random(p), wait;
    bool slow = verdict == PEN_VERDICT_THROTTLE;
    op->not_before_ns = 0;
    if (reply->retry_after_ms != PEN_HTTP_NONE) {
        wait = pen__retry_after_ns(reply->retry_after_ms, s->slow_base_ms, s->slow_cap_ms, random);
        op->not_before_ns = now + wait;
    } else {
        wait = pen__backoff_ns(slow ? s->slow_base_ms : s->base_ms,
                               slow ? s->slow_cap_ms : s->cap_ms, op->failed, random);
    }
    op->failed++;
    sleep_until(op, now + wait);
}

static bool is_timeout(const PenHttpReply *reply)
{
    return reply->failure >= PEN_HTTP_T_CONNECT && reply->failure <= PEN_HTTP_T_DEADLINE;
}

static bool is_2xx(const PenHttpReply *reply)
{
    return reply->failure == PEN_HTTP_OK && reply->status >= 200 && reply->status < 300;
}

/* The timer of the budget's end has passed it by while an attempt was under way. */
static bool is_late(const PenOperation *op)
{
    return pen__policy_now(op->policy) >= op->end_ns;
}

/* At once and for nothing: it was no failure of the server's. */
static void go_again(PenOperation *op)
{
    op->cost = 0;
    pen__op_queue(op, &op->policy->at_once);
}

/* Is a place worth something? */
static bool is_wanted(const PenPolicy *p)
{
    return p->at_once.first || p->again.first || p->wanted.first;
}

static void on_done(PenOperation *op, const PenHttpReply *reply)
{
    PenPolicy *p = op->policy;
    pen__policy_count(&p->bytes, reply->bytes);
    uint64_t now = pen__policy_now(p), away_ns = now - p->rate.success_ns;
    bool is_back = pen__rate_success(&p->rate, op->paid, now);
    if (is_back && away_ns >= AWAY_NS)
        pen__pace_anew(&p->pace);
    else if (is_back)
        pen__pace_idle(&p->pace);
    pen__pace_success(&p->pace, reply->bytes, is_wanted(p), now);
    pen__op_finish(op, PEN_OK, NULL);
    if (is_back)
        wake_all(p);
}

static void on_trouble(PenOperation *op, PenAttempt *a, PenVerdict verdict,
                       const PenHttpReply *reply)
{
    PenPolicy *p = op->policy;
    bool slow = verdict == PEN_VERDICT_THROTTLE;
    /* A kept connection that the server had closed meanwhile says nothing about the server. */
    bool stale = reply->failure == PEN_HTTP_BROKEN && reply->reused;
    bool free_of_charge = stale && !reply->status && !op->was_stale;
    if (slow) {
        pen__policy_count(&p->throttles, 1);
        pen__pace_throttle(&p->pace, a->started_ns, pen__policy_now(p));
    }
    if (!free_of_charge)
        pen__rate_failure(&p->rate);
    op->fresh = op->fresh || stale || is_2xx(reply);
    if (op->try[0].transfer || op->try[1].transfer)
        return; /* the other one may still make it */
    op->cost = is_timeout(reply) ? PEN_COST_TIMEOUT : PEN_COST_RETRY;
    pen__hedge_drop(op);
    if (is_late(op)) {
        pen__op_give_up(op);
    } else if (free_of_charge) {
        op->was_stale = true;
        go_again(op);
    } else {
        back_off(op, verdict, reply);
    }
}

/* AGAIN: only the first time for each cause, or two who disagree would go on for ever. */
static void on_put_right(PenOperation *op, unsigned cause)
{
    if (cause > 7 || op->causes >> cause & 1) {
        PenError err = op->last;
        pen__op_finish(op, err.status, &err);
        return;
    }
    op->causes = (uint8_t)(op->causes | 1u << cause);
    pen__hedge_drop(op);
    pen__attempt_cancel(&op->try[0]);
    if (is_late(op))
        pen__op_give_up(op);
    else
        go_again(op);
}

static PenVerdict ask_caller(PenOperation *op, const PenHttpReply *reply, unsigned *cause)
{
    PenError err = {.status = PEN_OK, .sample = -1};
    PenVerdict verdict = op->spec.classify(op->spec.ctx, reply, cause, &err);
    if (verdict == PEN_VERDICT_DONE)
        return verdict;
    if (err.status >= 0)
        pen__policy_classify(op->spec.name, reply, &err);
    if (err.status >= 0)
        pen__fail(&err, PEN_E_IO, WHERE,
                  "%.160s: unexpected response with status %d from the server", op->spec.name,
                  reply->status);
    op->last = err;
    return verdict;
}

static void on_reply(void *ctx, const PenHttpReply *reply)
{
    PenAttempt *a = ctx;
    PenOperation *op = a->op;
    PenPolicy *p = op->policy;
    unsigned cause = 0;
    a->transfer = NULL;
    pen__policy_set_in_flight(p, p->in_flight - 1);
    if (is_2xx(reply)) {
        pen__hedge_learn(a);
        if (a == &op->try[1])
            pen__hedge_take(op, reply->bytes);
    }
    PenVerdict verdict = ask_caller(op, reply, &cause);
    PenError err = op->last;
    switch (verdict) {
    case PEN_VERDICT_DONE:
        on_done(op, reply);
        break;
    case PEN_VERDICT_RETRY:
    case PEN_VERDICT_THROTTLE:
        on_trouble(op, a, verdict, reply);
        break;
    case PEN_VERDICT_AGAIN:
        on_put_right(op, cause);
        break;
    case PEN_VERDICT_FAIL:
        pen__op_finish(op, err.status, &err);
        break;
    }
    pump(p);
}

/* ---- starting ---- */

static int start_attempt(PenAttempt *a, PenError *reterr)
{
    PenPolicy *p = a->op->policy;
    uint64_t now = pen__policy_now(p);
    uint64_t end = a->op->end_ns + LAST_NS;
    uint64_t left_ms = end > now ? (end - now) / PEN_NS_PER_MS : 0;
    uint32_t *deadline_ms = &a->request.limits.deadline_ms;
    *deadline_ms = (uint32_t)PEN_MIN(*deadline_ms, PEN_MAX(left_ms, 1u));
    int r = p->t->class_->start(p->t, &a->request, on_reply, a, &a->transfer, reterr);
    if (r < 0)
        return r;
    a->started_ns = now;
    pen__policy_count(&p->attempts, 1);
    pen__policy_set_in_flight(p, p->in_flight + 1);
    return PEN_OK;
}

static void take_limits(PenHttpLimits *l, const PenHttpLimits *standard)
{
    l->connect_ms = l->connect_ms ? l->connect_ms : standard->connect_ms;
    l->first_byte_ms = l->first_byte_ms ? l->first_byte_ms : standard->first_byte_ms;
    l->slow_bytes = l->slow_bytes ? l->slow_bytes : standard->slow_bytes;
    l->slow_ms = l->slow_ms ? l->slow_ms : standard->slow_ms;
    l->deadline_ms = l->deadline_ms ? l->deadline_ms : standard->deadline_ms;
}

static void look_at(PenOperation *op, uint64_t at_ns);

static void on_look(void *ctx)
{
    PenOperation *op = ctx;
    PenPolicy *p = op->policy;
    uint64_t next_ns = 0;
    if (pen__hedge_look(op, &next_ns)) {
        pen__op_queue(op, &p->slow);
        pump(p);
    } else {
        look_at(op, next_ns);
    }
}

/* Whether a hedge is needed; 0: never. */
static void look_at(PenOperation *op, uint64_t at_ns)
{
    PenTransport *t = op->policy->t;
    if (at_ns)
        t->class_->timer_set(t, &op->timer, at_ns, on_look, op);
}

static void launch_hedge(PenOperation *op)
{
    pen__op_unqueue(op);
    if (!pen__hedge_prepare(op))
        return;
    if (start_attempt(&op->try[1], NULL) < 0)
        pen__hedge_free_spare(op);
    else
        pen__hedge_pay(op->policy);
}

static void launch(PenOperation *op)
{
    PenPolicy *p = op->policy;
    PenHttpRequest *request = &op->try[0].request;
    PenError err = {.status = PEN_OK, .sample = -1};
    pen__op_unqueue(op);
    *request = (PenHttpRequest){.limits = p->s.limits};
    int r = op->spec.prepare(op->spec.ctx, op->attempts, request, &err);
    if (r == PEN_E_BUSY) {
        if (!op->attempts && err.status < 0)
            op->last = err;
        op->busy = true;
        sleep_until(op, pen__policy_now(p) + BUSY_NS);
        return;
    }
    if (r >= 0) {
        take_limits(&request->limits, &p->s.limits);
        request->fresh = request->fresh || op->fresh;
        r = start_attempt(&op->try[0], &err);
    }
    if (r < 0) {
        if (err.status >= 0)
            pen__fail(&err, r, WHERE, "%.160s: cannot build the request", op->spec.name);
        pen__op_finish(op, r, &err);
        return;
    }
    op->fresh = false;
    pen__policy_count(&p->retries, op->attempts ? 1 : 0);
    op->attempts++;
    pen__hedge_earn(p);
    look_at(op, pen__hedge_arm(op));
}

/* The next in turn, paid for: who has tried before goes first, if there are tokens. */
static PenOperation *next_op(PenPolicy *p)
{
    PenOperation *op = p->again.first;
    if (p->at_once.first)
        return p->at_once.first;
    if (op) {
        if (pen__rate_take(&p->rate, op->cost, pen__policy_now(p))) {
            op->paid = op->cost;
            op->cost = 0;
            return op;
        }
        pen__policy_pump_at(p, pen__rate_when(&p->rate, op->cost));
    }
    return p->wanted.first;
}

/* Starts what may start. */
static void pump(PenPolicy *p)
{
    while (p->in_flight < p->pace.limit) {
        if (p->slow.first) {
            launch_hedge(p->slow.first);
            continue;
        }
        PenOperation *op = next_op(p);
        if (!op)
            break;
        launch(op);
    }
    if (p->in_flight < p->pace.limit)
        pen__pace_idle(&p->pace);
    pen__policy_set_in_flight(p, p->in_flight);
}
