/* SPDX-License-Identifier: Apache-2.0 */
/* What the oldest operation is at, asked for from another thread. Operations are the loop's alone,
 * so the loop is asked; who asks does not wait for long, and then lets go of the question. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "net/retry/policy_impl.h"

#define WAIT_NS (PEN_NS_PER_S / 5)

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
    const char *name = op->wish.name, *why = op->last.message;
    char range[64] = "";
    size_t n = strlen(name);
    if (strncmp(why, name, n) == 0 && strncmp(why + n, ": ", 2) == 0)
        why += n + 2;
    if (op->wish.bytes)
        snprintf(range, sizeof range, " offset %" PRIu64 ", %" PRIu64 " bytes", op->wish.offset,
                 op->wish.bytes);
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

void pen__policy_tell(PenPolicy *p, char *ret, size_t bytes)
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
        uint64_t until = pen__deadline_after(WAIT_NS);
        pthread_mutex_lock(&q->mutex);
        while (!q->answered && pen__cond_wait(&q->cond, &q->mutex, until) == 0)
            ;
        snprintf(ret, bytes, "%s", q->text);
        pthread_mutex_unlock(&q->mutex);
    }
    put_question(q);
}
