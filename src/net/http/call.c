/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/call.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/thread.h"

#define WHERE "net/ask"

enum { MAX_HEADERS = 16, BACK_OFF_MS = 100 };

/* Held by the thread that asks, and by every call that is posted or may still come from the loop.
 * Whoever lets go last frees it. */
struct PenAskCall {
    PenTransport *t; /* for the loop alone */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    unsigned refs;
    bool ended;     /* `answer` and `r` are there */
    bool cancelled; /* nobody waits any more */
    int r;
    PenError err;
    PenAnswer answer;
    PenTransfer *transfer; /* of the loop */
    PenHttpRequest request;
    PenHttpHeader headers[MAX_HEADERS];
    struct iovec body;
    PenSecretMemory texts; /* all that `request` points to */
};

static void let_go(PenAskCall *c)
{
    pthread_mutex_lock(&c->mutex);
    bool last = --c->refs == 0;
    pthread_mutex_unlock(&c->mutex);
    if (!last)
        return;
    pen__answer_free(&c->answer);
    pen__secret_memory_free(&c->texts);
    pthread_cond_destroy(&c->cond);
    pthread_mutex_destroy(&c->mutex);
    pen__free(c);
}

static void hold(PenAskCall *c)
{
    pthread_mutex_lock(&c->mutex);
    c->refs++;
    pthread_mutex_unlock(&c->mutex);
}

static void end(PenAskCall *c, int r)
{
    pthread_mutex_lock(&c->mutex);
    c->ended = true;
    c->r = r;
    pthread_cond_signal(&c->cond);
    pthread_mutex_unlock(&c->mutex);
    let_go(c);
}

/* On the loop. */
static void done(void *ctx, const PenHttpReply *reply)
{
    PenAskCall *c = ctx;
    PenAnswer *a = &c->answer;
    c->transfer = NULL;
    a->failure = reply->failure;
    a->status = reply->status;
    a->date_s = reply->date_s;
    snprintf(a->detail, sizeof a->detail, "%s", reply->detail);
    a->body.bytes = (size_t)PEN_MIN(reply->bytes, PEN_ASK_ANSWER_BYTES);
    if (reply->error && reply->error_bytes) {
        a->body.bytes = 0;
        (void)pen__secret_memory_add(&a->body, reply->error,
                                     PEN_MIN(reply->error_bytes, PEN_ASK_ANSWER_BYTES));
    }
    end(c, PEN_OK);
}

/* On the loop. */
static void start(void *ctx)
{
    PenAskCall *c = ctx;
    pthread_mutex_lock(&c->mutex);
    bool cancelled = c->cancelled;
    pthread_mutex_unlock(&c->mutex);
    int r = cancelled ? PEN_E_CANCELLED
                      : c->t->class_->start(c->t, &c->request, done, c, &c->transfer, &c->err);
    if (r < 0)
        end(c, r);
}

/* On the loop; holds the call. */
static void cancel(void *ctx)
{
    PenAskCall *c = ctx;
    if (c->transfer) {
        c->t->class_->cancel(c->transfer);
        c->transfer = NULL;
        end(c, PEN_E_CANCELLED);
    }
    let_go(c);
}

static const char *put(PenSecretMemory *memory, const void *data, size_t bytes)
{
    char *at = memory->data + memory->bytes;
    (void)pen__secret_memory_add(memory, data, bytes);
    (void)pen__secret_memory_add(memory, "", 1);
    return at;
}

static size_t texts_bytes(const PenHttpRequest *q)
{
    size_t n = strlen(q->method) + strlen(q->url) + 16;
    for (size_t i = 0; i < q->n_headers; i++)
        n += strlen(q->headers[i].name) + strlen(q->headers[i].value) + 2;
    for (int i = 0; i < q->n_body; i++)
        n += q->body[i].iov_len + 1;
    return n;
}

static int copy_request(PenAskCall *c, const PenHttpRequest *q, PenError *reterr)
{
    int r = pen__secret_memory_new(texts_bytes(q), &c->texts, reterr);
    if (r == PEN_OK)
        r = pen__secret_memory_new(PEN_ASK_ANSWER_BYTES, &c->answer.body, reterr);
    if (r < 0)
        return r;
    c->request = *q;
    c->request.method = put(&c->texts, q->method, strlen(q->method));
    c->request.url = put(&c->texts, q->url, strlen(q->url));
    for (size_t i = 0; i < q->n_headers; i++) {
        c->headers[i].name = put(&c->texts, q->headers[i].name, strlen(q->headers[i].name));
        c->headers[i].value = put(&c->texts, q->headers[i].value, strlen(q->headers[i].value));
    }
    c->request.headers = c->headers;
    c->body.iov_base = c->texts.data + c->texts.bytes;
    for (int i = 0; i < q->n_body; i++) {
        (void)pen__secret_memory_add(&c->texts, q->body[i].iov_base, q->body[i].iov_len);
        c->body.iov_len += q->body[i].iov_len;
    }
    c->request.body = q->n_body ? &c->body : NULL;
    c->request.n_body = q->n_body ? 1 : 0;
    c->request.into = c->answer.body.data;
    c->request.into_bytes = PEN_ASK_ANSWER_BYTES;
    c->request.into_v = NULL;
    return PEN_OK;
}

static int new_call(PenTransport *t, const PenHttpRequest *request, PenAskCall **ret,
                    PenError *reterr)
{
    if (request->n_headers > MAX_HEADERS)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "request: more than %d headers", MAX_HEADERS);
    PenAskCall *c = pen__zalloc(sizeof *c);
    if (!c || pen__cond_init(&c->cond) < 0) {
        pen__free(c);
        return pen__fail_memory(reterr, WHERE, "request");
    }
    pthread_mutex_init(&c->mutex, NULL);
    c->t = t;
    c->refs = 1;
    int r = copy_request(c, request, reterr);
    if (r < 0)
        let_go(c);
    else
        *ret = c;
    return r;
}

/* Posts while the transport is sure to be there. */
static int post(PenAsk *ask, PenCall *what, PenAskCall *c)
{
    hold(c);
    int r = ask->closed ? PEN_E_CLOSED : ask->t->class_->post(ask->t, what, c);
    if (r < 0)
        let_go(c);
    return r;
}

/* PEN_OK: it has ended. */
static int wait_for_end(PenAskCall *c, uint64_t deadline_ns)
{
    int r = PEN_OK;
    pthread_mutex_lock(&c->mutex);
    while (!c->ended && !c->cancelled && r == PEN_OK)
        r = pen__cond_wait(&c->cond, &c->mutex, deadline_ns);
    if (c->ended)
        r = c->r;
    else if (c->cancelled)
        r = PEN_E_CANCELLED;
    c->cancelled = true;
    pthread_mutex_unlock(&c->mutex);
    return r;
}

static int fail_wait(int r, const PenAskCall *c, PenError *reterr)
{
    if (r == PEN_E_TIMEOUT)
        return pen__fail(reterr, r, WHERE, "no response before the deadline");
    if (r == PEN_E_CANCELLED)
        return pen__fail(reterr, r, WHERE, "cancelled: the pack or loader is being closed");
    if (reterr && c->err.status)
        *reterr = c->err;
    else
        pen__fail(reterr, r, WHERE, "the network thread has ended or is out of memory");
    return r;
}

int pen__ask(PenAsk *ask, const PenHttpRequest *request, uint64_t deadline_ns, PenAnswer *ret,
             PenError *reterr)
{
    PenAskCall *c = NULL;
    if (!ask->t)
        return pen__fail(reterr, PEN_E_CLOSED, WHERE, "the network connection is closed");
    int r = new_call(ask->t, request, &c, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&ask->mutex);
    r = post(ask, start, c);
    if (r == PEN_OK)
        ask->call = c;
    pthread_mutex_unlock(&ask->mutex);
    if (r == PEN_OK) {
        r = wait_for_end(c, deadline_ns);
        pthread_mutex_lock(&ask->mutex);
        ask->call = NULL;
        if (r == PEN_E_TIMEOUT)
            (void)post(ask, cancel, c);
        pthread_mutex_unlock(&ask->mutex);
    }
    if (r < 0) {
        fail_wait(r, c, reterr);
    } else {
        *ret = c->answer;
        c->answer.body = (PenSecretMemory){0};
    }
    let_go(c);
    return r;
}

void pen__answer_free(PenAnswer *answer)
{
    pen__secret_memory_free(&answer->body);
}

void pen__ask_init(PenAsk *ask, PenTransport *t)
{
    *ask = (PenAsk){.t = t};
    pthread_mutex_init(&ask->mutex, NULL);
}

void pen__ask_free(PenAsk *ask)
{
    pthread_mutex_destroy(&ask->mutex);
}

void pen__ask_close(PenAsk *ask)
{
    pthread_mutex_lock(&ask->mutex);
    PenAskCall *c = ask->call;
    if (c) {
        (void)post(ask, cancel, c);
        pthread_mutex_lock(&c->mutex);
        c->cancelled = true;
        pthread_cond_signal(&c->cond);
        pthread_mutex_unlock(&c->mutex);
    }
    ask->closed = true;
    pthread_mutex_unlock(&ask->mutex);
}

static bool may_change(const PenAnswer *a)
{
    if (a->failure != PEN_HTTP_OK)
        return a->failure != PEN_HTTP_TLS;
    return a->status == 408 || a->status == 429 || a->status >= 500;
}

/* 0 when it was closed meanwhile. */
static int pause_for(PenAsk *ask, uint64_t until_ns)
{
    bool closed = false;
    while (!closed && pen__sys->now_ns() < until_ns) {
        (void)pen__sys->poll(NULL, 0, 10);
        pthread_mutex_lock(&ask->mutex);
        closed = ask->closed;
        pthread_mutex_unlock(&ask->mutex);
    }
    return !closed;
}

int pen__ask_again(PenAsk *ask, const PenHttpRequest *request, unsigned tries, uint64_t deadline_ns,
                   PenAnswer *ret, PenError *reterr)
{
    for (unsigned i = 1;; i++) {
        PenAnswer answer;
        int r = pen__ask(ask, request, deadline_ns, &answer, reterr);
        uint64_t until =
            pen__deadline_after((BACK_OFF_MS * UINT64_C(1000000)) << PEN_MIN(i - 1, 4));
        if (r < 0)
            return r;
        if (i >= tries || !may_change(&answer) || until >= deadline_ns || !pause_for(ask, until)) {
            *ret = answer;
            return PEN_OK;
        }
        pen__answer_free(&answer);
    }
}
