/* SPDX-License-Identifier: Apache-2.0 */
/* Decides on hedged requests: a second one for a slow one, over a connection of its own, for a few
 * requests in a hundred: later than 99 of 100 answers of its size came, or when the body has begun
 * and comes at less than a quarter of their usual speed. Whoever answers first is taken. */
#include "net/retry/policy_impl.h"

#include "base/attr.h"
#include "base/iov.h"
#include "base/mem.h"

/* Credit is had by requests and spent by hedges; no more than this is saved up, so that a calm hour
 * does not pay for a storm. */
enum { CREDIT_HEDGE = 100, CREDIT_MOST = 10 * CREDIT_HEDGE };

enum { SLOW_PART = 4 }; /* slower than the median by this is too slow */

unsigned pen__tail_class(size_t bytes)
{
    unsigned class = 0;
    while (class < PEN_TAIL_CLASSES - 1 && bytes > (size_t)65536 << class)
        class ++;
    return class;
}

void pen__tail_add(PenTail *tail, uint64_t ns)
{
    unsigned bin = pen__log_bin(ns);
    if (tail->n == PEN_TAIL_LAST)
        tail->count[tail->ring[tail->at]]--;
    else
        tail->n++;
    tail->ring[tail->at] = (uint8_t)bin;
    tail->count[bin]++;
    tail->at = (uint16_t)((tail->at + 1) % PEN_TAIL_LAST);
}

/* So many are later. */
static uint64_t tail_ns(const PenTail *tail, unsigned later)
{
    if (tail->n < PEN_TAIL_LEAST)
        return 0;
    unsigned above = 0, bin = PEN_LOG_BINS - 1;
    for (; bin > 0; bin--) {
        above += tail->count[bin];
        if (above > later)
            break;
    }
    return pen__log_bin_end_ns(bin);
}

uint64_t pen__tail_p99(const PenTail *tail)
{
    return tail_ns(tail, tail->n / 100u);
}

uint64_t pen__tail_median(const PenTail *tail)
{
    return tail_ns(tail, tail->n / 2u);
}

static PenTail *tail_of(const PenOperation *op)
{
    return &op->policy->tails[pen__tail_class(op->try[0].request.into_bytes)];
}

void pen__hedge_learn(PenAttempt *a)
{
    if (a->op->spec.may_hedge)
        pen__tail_add(tail_of(a->op), pen__policy_now(a->op->policy) - a->started_ns);
}

/* A body that has begun, and brings little. */
static bool is_slow(PenOperation *op)
{
    PenTransport *t = op->policy->t;
    if (!op->look_ns || !op->try[0].transfer)
        return false;
    uint64_t before = op->seen;
    op->seen = t->class_->progress(op->try[0].transfer);
    return before && op->seen - before < op->enough;
}

static uint64_t next_look(const PenOperation *op, uint64_t now)
{
    return op->look_ns ? PEN_MIN(op->late_ns, now + op->look_ns) : op->late_ns;
}

uint64_t pen__hedge_arm(PenOperation *op)
{
    PenPolicy *p = op->policy;
    const PenTail *tail = tail_of(op);
    uint64_t p99 = pen__tail_p99(tail), median = pen__tail_median(tail), now = pen__policy_now(p);
    if (!op->spec.may_hedge || !p->s.hedge_percent || !p99)
        return 0;
    uint64_t least = p->s.hedge_least_ms * PEN_NS_PER_MS;
    op->late_ns = now + PEN_MAX(p99, least);
    op->look_ns = p->t->class_->progress ? PEN_MAX(median, least / 2) : 0;
    op->seen = 0;
    op->enough = (uint64_t)((double)op->try[0].request.into_bytes * (double)op->look_ns /
                            ((double)median * SLOW_PART));
    return next_look(op, now);
}

bool pen__hedge_look(PenOperation *op, uint64_t *ret_next_ns)
{
    const PenPolicy *p = op->policy;
    uint64_t now = pen__policy_now(op->policy);
    bool slow = is_slow(op), due = slow || now >= op->late_ns;
    /* Who was told to slow down does not ask twice. */
    if (due && p->hedge_credit >= CREDIT_HEDGE && !pen__pace_is_throttled(&p->pace))
        return true;
    *ret_next_ns = due ? pen__hedge_arm(op) : next_look(op, now);
    return false;
}

void pen__hedge_earn(PenPolicy *p)
{
    p->hedge_credit = PEN_MIN(p->hedge_credit + p->s.hedge_percent, (uint32_t)CREDIT_MOST);
}

bool pen__hedge_prepare(PenOperation *op)
{
    PenHttpRequest *request = &op->try[1].request;
    if (op->policy->hedge_credit < CREDIT_HEDGE) /* others were first */
        return false;
    *request = op->try[0].request;
    request->fresh = 1;
    request->arrival = NULL; /* its bytes count only if they are taken */
    if (request->into || request->into_v) {
        op->spare = pen__alloc(PEN_MAX(request->into_bytes, 1u));
        if (!op->spare)
            return false; /* the first one is still under way */
        request->into = op->spare;
        request->into_v = NULL; /* in one piece, until it is known whose bytes are taken */
    }
    return true;
}

void pen__hedge_pay(PenPolicy *p)
{
    p->hedge_credit -= CREDIT_HEDGE;
    pen__policy_count(&p->hedges, 1);
}

void pen__hedge_take(PenOperation *op, uint64_t bytes)
{
    PenHttpRequest *first = &op->try[0].request;
    if (op->try[0].transfer) {
        /* So slow at least: without it the tail would look shorter than it is. */
        pen__hedge_learn(&op->try[0]);
        pen__attempt_cancel(&op->try[0]);
    }
    if (op->spare) {
        struct iovec one;
        const struct iovec *v;
        int n = pen__http_into(first, &one, &v);
        pen__arrival_tell(first->arrival, 0); /* the bytes of the first one are overwritten */
        pen__iov_put(v, n, 0, op->spare, (size_t)PEN_MIN(bytes, (uint64_t)first->into_bytes));
    }
    pen__hedge_free_spare(op);
    pen__policy_count(&op->policy->hedges_won, 1);
}
