/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: the queues they stand in, and their end. */
#include "net/retry/policy_impl.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define WHERE "net/policy"

/* ---- queues ---- */

void pen__op_link(PenOpList *list, PenOperation *op, int k)
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
    pen__op_link(list, op, PEN_LINK_QUEUE);
    op->queue = list;
}

/* ---- the end of an attempt ---- */

void pen__policy_set_in_flight(PenPolicy *p, uint32_t n)
{
    p->in_flight = n;
    atomic_store_explicit(&p->seen_in_flight, n, memory_order_relaxed);
    atomic_store_explicit(&p->seen_limit, p->pace.limit, memory_order_relaxed);
}

void pen__attempt_cancel(PenAttempt *a)
{
    if (!a->transfer)
        return;
    PenPolicy *p = a->op->policy;
    p->t->class_->cancel(a->transfer);
    a->transfer = NULL;
    pen__policy_set_in_flight(p, p->in_flight - 1);
}

void pen__hedge_free_spare(PenOperation *op)
{
    pen__free_large(op->spare, op->try[1].request.into_bytes);
    op->spare = NULL;
}

void pen__hedge_drop(PenOperation *op)
{
    PenTransport *t = op->policy->t;
    t->class_->timer_clear(t, &op->timer);
    pen__op_unqueue(op);
    pen__attempt_cancel(&op->try[1]);
    pen__hedge_free_spare(op);
}

/* ---- the end of an operation ---- */

void pen__op_free(PenOperation *op)
{
    PenPolicy *p = op->policy;
    pen__hedge_drop(op);
    pen__attempt_cancel(&op->try[0]);
    unlink_op(&p->all, op, PEN_LINK_ALL);
    pen__free(op);
}

/* The operation is gone before its caller hears of it, who may at once begin another. */
void pen__op_finish(PenOperation *op, int r, const PenError *err)
{
    PenOperationSpec spec = op->spec;
    if (r < 0)
        pen__policy_count(&op->policy->failures, 1);
    pen__op_free(op);
    spec.done(spec.ctx, r, r < 0 ? err : NULL);
}

void pen__op_describe(const PenOperation *op, const char *what, PenError *ret)
{
    double seconds = (double)(pen__policy_now(op->policy) - op->began_ns) / 1e9;
    const PenError *last = &op->last;
    const char *why = last->message, *name = op->spec.name;
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
    pen__op_describe(op, "given up after", &err);
    pen__op_finish(op, err.status, &err);
}
