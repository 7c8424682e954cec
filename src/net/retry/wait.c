/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for an operation from another thread. What the loop is given lies on the waiting thread's
 * stack, so the wait ends only when the loop has let go of it, or has itself ended. */
#include "net/retry/policy_impl.h"

#include <pthread.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/thread.h"

#define WHERE "net/policy"

/* So often it is looked whether the loop is still there: one that ends calls nobody. */
#define LOOK_NS (PEN_NS_PER_S / 4)

typedef struct Waiter {
    PenPolicy *policy;
    const PenWish *wish;
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
    return w->wish->prepare(w->wish->ctx, attempt, ret, reterr);
}

static PenVerdict judge(void *ctx, const PenHttpReply *reply, unsigned *cause, PenError *err)
{
    Waiter *w = ctx;
    return w->wish->classify(w->wish->ctx, reply, cause, err);
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
    PenWish wish = *w->wish;
    wish.prepare = prepare;
    wish.classify = judge;
    wish.done = done;
    wish.ctx = w;
    PenError err;
    int r = pen__policy_start(w->policy, &wish, &w->op, &err);
    if (r < 0)
        end(w, r, &err);
}

/* Runs even if the operation ends first: only after it is the waiter's stack its own again. */
static void cancel_on_loop(void *ctx)
{
    Waiter *w = ctx;
    PenError err = {.status = PEN_OK};
    if (w->op) {
        pen__op_tell(w->op, w->interrupted ? "interrupted after" : "timed out after",
                     &err);
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
    return w->wish->interrupted && w->wish->interrupted(w->wish->ctx);
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

int pen__policy_wait(PenPolicy *policy, const PenWish *wish, uint64_t deadline_ns, PenError *reterr)
{
    Waiter w = {.policy = policy, .wish = wish};
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
                  wish->name);
    else if (w.r < 0 && reterr)
        *reterr = w.err;
    pthread_cond_destroy(&w.cond);
    pthread_mutex_destroy(&w.mutex);
    return r < 0 ? r : w.r;
}
