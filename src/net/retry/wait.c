/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from other threads: waiting for an operation, and asking what the oldest one is doing. */
#include "net/retry/policy_impl.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/thread.h"

#define WHERE "net/policy"

/* So often it is looked whether the loop is still there: one that ends calls nobody. */
#define LOOK_NS (PEN_NS_PER_S / 4)
#define ANSWER_NS (PEN_NS_PER_S / 5) /* who asks for the progress waits no longer */

/* ---- waiting ----
 *
 * What the loop is given lies on the waiting thread's stack, so the wait ends only when the loop
 * has let go of it, or has itself ended. */

typedef struct Waiter {
    PenPolicy *policy;
    const PenOperationSpec *spec;
    PenOperation *op; /* of the loop */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool ended;
    bool let_go; /* the call that cancels has run */
    bool interrupted;
    int r;
    PenError err;
} Waiter;

static void end(Waiter *w, int r, const PenError *err)
{
    pthread_mutex_lock(&w->mutex);
    w->ended = true;
    w->r = r;
    if (err)
        w->err = *err;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->mutex);
}

static int prepare(void *ctx, unsigned attempt, PenHttpRequest *ret, PenError *reterr)
{
    Waiter *w = ctx;
    return w->spec->prepare(w->spec->ctx, attempt, ret, reterr);
}

static PenVerdict classify(void *ctx, const PenHttpReply *reply, unsigned *cause, PenError *err)
{
    Waiter *w = ctx;
    return w->spec->classify(w->spec->ctx, reply, cause, err);
}

static void done(void *ctx, int r, const PenError *err)
{
    Waiter *w = ctx;
    w->op = NULL;
    end(w, r, err);
}

static void start_on_loop(void *ctx)
{
    Waiter *w = ctx;
    PenOperationSpec spec = *w->spec;
    spec.prepare = prepare;
    spec.classify = classify;
    spec.done = done;
    spec.ctx = w;
    PenError err;
    int r = pen__policy_start(w->policy, &spec, &w->op, &err);
    if (r < 0)
        end(w, r, &err);
}

/* Runs even if the operation ends first: only after it is the waiter's stack its own again. */
static void cancel_on_loop(void *ctx)
{
    Waiter *w = ctx;
    PenError err = {.status = PEN_OK};
    if (w->op) {
        pen__op_describe(w->op, w->interrupted ? "interrupted after" : "timed out after", &err);
        err.status = w->interrupted ? PEN_E_CANCELLED : PEN_E_TIMEOUT;
        pen__policy_cancel(w->op);
        w->op = NULL;
    }
    pthread_mutex_lock(&w->mutex);
    w->let_go = true;
    if (!w->ended) {
        w->ended = true;
        w->r = w->interrupted ? PEN_E_CANCELLED : PEN_E_TIMEOUT;
        w->err = err;
    }
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->mutex);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static bool is_interrupted(const Waiter *w)
{
    return w->spec->interrupted && w->spec->interrupted(w->spec->ctx);
}

static bool is_over(const Waiter *w, bool cancelled)
{
    return w->ended && (w->let_go || !cancelled);
}

/* Until it has ended. PEN_E_CLOSED: the loop has. */
static int wait_for_end(Waiter *w, uint64_t deadline_ns)
{
    PenTransport *t = w->policy->t;
    bool late = false, cancelled = false;
    int r = PEN_OK;
    pthread_mutex_lock(&w->mutex);
    while (!is_over(w, cancelled) && r != PEN_E_CLOSED) {
        uint64_t until = pen__deadline_after(LOOK_NS);
        if (!late)
            until = PEN_MIN(until, deadline_ns);
        while (!is_over(w, cancelled) && pen__cond_wait(&w->cond, &w->mutex, until) == 0)
            ;
        if (is_over(w, cancelled))
            break;
        pthread_mutex_unlock(&w->mutex);
        if (!late && is_interrupted(w))
            late = w->interrupted = true; /* the loop sees it behind the post */
        late = late || pen__sys->now_ns() >= deadline_ns;
        bool cancel = late && !cancelled;
        /* Where there is no memory for it: the next time round. */
        r = t->class_->post(t, cancel ? cancel_on_loop : nothing, cancel ? w : NULL);
        cancelled = cancelled || (cancel && r == PEN_OK);
        pthread_mutex_lock(&w->mutex);
    }
    r = w->ended ? PEN_OK : PEN_E_CLOSED;
    pthread_mutex_unlock(&w->mutex);
    return r;
}

int pen__policy_wait(PenPolicy *policy, const PenOperationSpec *spec, uint64_t deadline_ns,
                     PenError *reterr)
{
    Waiter w = {.policy = policy, .spec = spec};
    PenTransport *t = policy->t;
    if (pen__cond_init(&w.cond) < 0)
        return pen__fail_memory(reterr, WHERE, "condition");
    pthread_mutex_init(&w.mutex, NULL);
    int r = t->class_->post(t, start_on_loop, &w);
    if (r == PEN_OK)
        r = wait_for_end(&w, deadline_ns);
    if (r == PEN_E_NO_MEMORY)
        pen__fail_memory(reterr, WHERE, "call");
    else if (r < 0)
        pen__fail(reterr, r, WHERE, "%.160s: the network thread has ended; open it again",
                  spec->name);
    else if (w.r < 0 && reterr)
        *reterr = w.err;
    pthread_cond_destroy(&w.cond);
    pthread_mutex_destroy(&w.mutex);
    return r < 0 ? r : w.r;
}

/* ---- progress ----
 *
 * Operations are the loop's alone, so the loop is asked; who asks does not wait for long, and then
 * lets go of the question. */

typedef struct Question {
    PenPolicy *policy;
    atomic_int refs; /* who asks, and the loop */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool answered;
    char text[320];
} Question;

static void put_question(Question *q)
{
    if (atomic_fetch_sub(&q->refs, 1) != 1)
        return;
    pthread_cond_destroy(&q->cond);
    pthread_mutex_destroy(&q->mutex);
    pen__free(q);
}

static void describe(const PenOperation *op, char *ret, size_t bytes)
{
    double seconds = (double)(pen__policy_now(op->policy) - op->began_ns) / 1e9;
    const char *name = op->spec.name, *why = op->last.message;
    char range[64] = "";
    size_t n = strlen(name);
    if (strncmp(why, name, n) == 0 && strncmp(why + n, ": ", 2) == 0)
        why += n + 2;
    if (op->spec.bytes)
        snprintf(range, sizeof range, " offset %" PRIu64 ", %" PRIu64 " bytes", op->spec.offset,
                 op->spec.bytes);
    snprintf(ret, bytes, "%.160s%s: %u attempt%s in %.1f s, last: %.120s", name, range,
             op->attempts, op->attempts == 1 ? "" : "s", seconds,
             op->last.status ? why : "no response yet");
}

static void answer_on_loop(void *ctx)
{
    Question *q = ctx;
    pthread_mutex_lock(&q->mutex);
    if (q->policy->all.first)
        describe(q->policy->all.first, q->text, sizeof q->text);
    q->answered = true;
    pthread_cond_signal(&q->cond);
    pthread_mutex_unlock(&q->mutex);
    put_question(q);
}

void pen__policy_progress(PenPolicy *p, char *ret, size_t bytes)
{
    ret[0] = 0;
    Question *q = pen__zalloc(sizeof *q);
    if (!q || pen__cond_init(&q->cond) < 0) {
        pen__free(q);
        return;
    }
    pthread_mutex_init(&q->mutex, NULL);
    q->policy = p;
    atomic_init(&q->refs, 2);
    if (p->t->class_->post(p->t, answer_on_loop, q) < 0) {
        put_question(q);
    } else {
        uint64_t until = pen__deadline_after(ANSWER_NS);
        pthread_mutex_lock(&q->mutex);
        while (!q->answered && pen__cond_wait(&q->cond, &q->mutex, until) == 0)
            ;
        snprintf(ret, bytes, "%s", q->text);
        pthread_mutex_unlock(&q->mutex);
    }
    put_question(q);
}
