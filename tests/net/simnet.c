/* SPDX-License-Identifier: Apache-2.0 */
#include "net/simnet.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"

typedef struct SimPost {
    PenCall *call;
    void *ctx;
    struct SimPost *next;
} SimPost;

typedef struct SimClient {
    PenTransport transport; /* first: a transport is a client */
    SimNet *net;
    int number;
    unsigned idle; /* kept connections */
    unsigned live, peak;
    PenTimer *timers; /* in order */
    SimPost *posts, **posts_end;
} SimClient;

struct PenTransfer {
    SimClient *client;
    const PenHttpRequest *request;
    void (*done)(void *ctx, const PenHttpReply *reply);
    void *ctx;
    uint64_t at_ns, first_ns, number;
    size_t heap_at;
    PenHttpReply reply;
    bool corrupt;
};

struct SimNet {
    uint64_t now_ns, numbers;
    PenRng rng;
    SimServer server;
    SimClient **clients;
    int n_clients;
    PenTransfer **heap;
    size_t n_heap, cap_heap;
};

/* ---- a heap of transfers, by the time of their end ---- */

static bool is_before(const PenTransfer *a, const PenTransfer *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

static void heap_put(SimNet *net, size_t i, PenTransfer *x)
{
    net->heap[i] = x;
    x->heap_at = i;
}

static void heap_settle(SimNet *net, size_t i, PenTransfer *x)
{
    for (; i > 0 && is_before(x, net->heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap_put(net, i, net->heap[(i - 1) / 2]);
    for (size_t child; (child = 2 * i + 1) < net->n_heap; i = child) {
        if (child + 1 < net->n_heap && is_before(net->heap[child + 1], net->heap[child]))
            child++;
        if (!is_before(net->heap[child], x))
            break;
        heap_put(net, i, net->heap[child]);
    }
    heap_put(net, i, x);
}

static bool heap_add(SimNet *net, PenTransfer *x)
{
    if (net->n_heap == net->cap_heap) {
        size_t cap = net->cap_heap ? net->cap_heap * 2 : 64;
        PenTransfer **more = pen__resize(net->heap, cap * sizeof(PenTransfer *));
        if (!more)
            return false;
        net->heap = more;
        net->cap_heap = cap;
    }
    heap_settle(net, net->n_heap++, x);
    return true;
}

static void heap_remove(SimNet *net, PenTransfer *x)
{
    PenTransfer *last = net->heap[--net->n_heap];
    if (last != x)
        heap_settle(net, x->heap_at, last);
}

/* ---- bodies ---- */

static uint8_t body_byte(uint32_t key, size_t i)
{
    return (uint8_t)(key + i * 7 + (i >> 8));
}

static uint32_t body_key(const char *url)
{
    uint32_t key = 2166136261u;
    for (; *url; url++)
        key = (key ^ (uint8_t)*url) * 16777619u;
    return key;
}

static void fill_body(const PenTransfer *x)
{
    struct iovec one;
    const struct iovec *v;
    int n = pen__http_into(x->request, &one, &v);
    size_t bytes = (size_t)x->reply.bytes, at = 0;
    uint32_t key = body_key(x->request->url);
    for (int k = 0; k < n; k++) {
        uint8_t *into = v[k].iov_base;
        for (size_t i = 0; i < v[k].iov_len && at < bytes; i++, at++)
            into[i] = body_byte(key, at) ^ (x->corrupt && at == bytes / 2 ? 0x10 : 0);
    }
}

bool simnet_body_is(const char *url, const void *body, size_t bytes)
{
    const uint8_t *p = body;
    uint32_t key = body_key(url);
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != body_byte(key, i))
            return false;
    return true;
}

/* ---- what the server does ---- */

uint64_t simnet_draw(SimNet *net, uint64_t n)
{
    return pen__rng_below(&net->rng, n);
}

static bool by_chance(SimNet *net, unsigned permille)
{
    return permille && simnet_draw(net, 1000) < permille;
}

static const SimAnswer slow_down = {.status = 503, .error = "<Error><Code>SlowDown</Code></Error>"};

static SimAnswer choose(SimNet *net)
{
    SimServer *s = &net->server;
    uint64_t number = s->requests++;
    if (net->now_ns / SIM_S != s->second) {
        s->second = net->now_ns / SIM_S;
        s->in_second = 0;
    }
    s->in_second++;
    if (number < s->n_script)
        return s->script[number];
    if (net->now_ns >= s->out_from_ns && net->now_ns < s->out_to_ns)
        return s->out;
    if (s->per_s && s->in_second > s->per_s)
        return slow_down;
    if (by_chance(net, s->slow_down_permille))
        return slow_down;
    if (by_chance(net, s->error_permille))
        return (SimAnswer){.status = 500};
    if (by_chance(net, s->mute_permille))
        return (SimAnswer){.mute = true};
    if (by_chance(net, s->broken_permille))
        return (SimAnswer){.failure = PEN_HTTP_BROKEN, .status = 206};
    return (SimAnswer){.corrupt = by_chance(net, s->corrupt_permille)};
}

static uint64_t about(SimNet *net, uint64_t ns)
{
    return ns / 2 + simnet_draw(net, ns + 1);
}

/* Ends the transfer with `failure` at `at_ns`, if that is earlier than what was known. */
static void cut(PenTransfer *x, PenHttpFailure failure, uint64_t at_ns)
{
    if (at_ns >= x->at_ns)
        return;
    x->at_ns = at_ns;
    if (failure < PEN_HTTP_T_SLOW)
        x->reply.status = 0;
    x->reply.failure = failure;
    x->reply.bytes = 0;
}

static void plan_body(PenTransfer *x, const SimAnswer *a, uint64_t first_ns)
{
    const SimServer *s = &x->client->net->server;
    const PenHttpRequest *q = x->request;
    uint64_t bytes = q->into || q->into_v ? q->into_bytes : 0;
    x->at_ns = first_ns;
    if (x->reply.status >= 300 || !x->reply.status) {
        x->reply.error = a->error;
        x->reply.error_bytes = a->error ? strlen(a->error) : 0;
        return;
    }
    if (a->failure == PEN_HTTP_BROKEN)
        bytes /= 2;
    x->reply.bytes = x->reply.content_length = bytes;
    x->corrupt = a->corrupt || a->failure != PEN_HTTP_OK;
    if (!s->bytes_per_s)
        return;
    x->at_ns += bytes * SIM_S / s->bytes_per_s;
    if (s->bytes_per_s * q->limits.slow_ms / 1000 < q->limits.slow_bytes)
        cut(x, PEN_HTTP_T_SLOW, first_ns + q->limits.slow_ms * SIM_MS);
}

static void plan_limits(PenTransfer *x, const SimAnswer *a, uint64_t connected, uint64_t first)
{
    const PenHttpLimits *l = &x->request->limits;
    uint64_t now = x->client->net->now_ns;
    if (a->failure == PEN_HTTP_CONNECT || a->failure == PEN_HTTP_RESOLVE)
        x->at_ns = connected;
    if (a->mute || first > connected + l->first_byte_ms * SIM_MS)
        cut(x, PEN_HTTP_T_FIRST_BYTE, connected + l->first_byte_ms * SIM_MS);
    if (connected - now > l->connect_ms * SIM_MS)
        cut(x, PEN_HTTP_T_CONNECT, now + l->connect_ms * SIM_MS);
    cut(x, PEN_HTTP_T_DEADLINE, now + l->deadline_ms * SIM_MS);
}

/* All that will happen is known from the start; only a cancel can come between. */
static void plan(PenTransfer *x)
{
    SimClient *c = x->client;
    SimNet *net = c->net;
    SimServer *s = &net->server;
    SimAnswer a = choose(net);
    PenHttpReply *reply = &x->reply;
    if (s->on_request)
        s->on_request(s->on_request_ctx, net->now_ns, c->number, x->request, &a);
    reply->reused = c->idle > 0 && !x->request->fresh;
    s->reused += reply->reused;
    s->fresh += x->request->fresh;
    c->idle -= reply->reused;
    uint64_t connect_ns = reply->reused ? 0 : about(net, s->connect_ns);
    uint64_t wait_ns = about(net, by_chance(net, s->tail_permille) ? s->tail_ns : s->latency_ns);
    uint64_t connected = net->now_ns + connect_ns;
    uint64_t first = connected + (a.after_ns ? a.after_ns : wait_ns);
    if (a.stale && reply->reused)
        a = (SimAnswer){.failure = PEN_HTTP_BROKEN};
    else if (!a.status && a.failure == PEN_HTTP_OK)
        a.status = 206;
    reply->failure = a.failure;
    reply->status = a.status;
    reply->retry_after_ms = a.retry_after_ms ? a.retry_after_ms : PEN_HTTP_NONE;
    x->first_ns = first;
    plan_body(x, &a, a.mute ? UINT64_MAX / 2 : first);
    plan_limits(x, &a, connected, first);
}

/* ---- the table ---- */

static uint64_t sim_now(PenTransport *t)
{
    return ((SimClient *)t)->net->now_ns;
}

static uint64_t sim_unix(PenTransport *t)
{
    return 1700000000 * SIM_S + sim_now(t);
}

static uint64_t sim_random(PenTransport *t)
{
    return pen__rng_next(&((SimClient *)t)->net->rng);
}

static int sim_start(PenTransport *t, const PenHttpRequest *request,
                     void (*done)(void *ctx, const PenHttpReply *reply), void *ctx,
                     PenTransfer **ret, PenError *reterr)
{
    SimClient *c = (SimClient *)t;
    PenTransfer *x = pen__zalloc(sizeof *x);
    if (!x)
        return pen__fail_memory(reterr, "simnet", "transfer");
    *x = (PenTransfer){.client = c, .request = request, .done = done, .ctx = ctx};
    x->number = c->net->numbers++;
    x->reply = (PenHttpReply){.content_length = PEN_HTTP_NONE,
                              .range_first = PEN_HTTP_NONE,
                              .range_last = PEN_HTTP_NONE,
                              .range_total = PEN_HTTP_NONE,
                              .date_s = PEN_HTTP_NONE};
    snprintf(x->reply.peer, sizeof x->reply.peer, "sim:80");
    plan(x);
    if (!heap_add(c->net, x)) {
        pen__free(x);
        return pen__fail_memory(reterr, "simnet", "transfer");
    }
    c->live++;
    c->peak = PEN_MAX(c->peak, c->live);
    *ret = x;
    return PEN_OK;
}

static void sim_cancel(PenTransport *t, PenTransfer *x)
{
    SimClient *c = (SimClient *)t;
    heap_remove(c->net, x);
    c->live--;
    pen__free(x);
}

static void sim_timer_clear(PenTransport *t, PenTimer *timer)
{
    if (!timer->set)
        return;
    PenTimer **at = &((SimClient *)t)->timers;
    while (*at != timer)
        at = &(*at)->next;
    *at = timer->next;
    timer->set = 0;
}

static void sim_timer_set(PenTransport *t, PenTimer *timer, uint64_t at_ns, PenCall *call,
                          void *ctx)
{
    sim_timer_clear(t, timer);
    PenTimer **at = &((SimClient *)t)->timers;
    while (*at && (*at)->at_ns <= at_ns)
        at = &(*at)->next;
    *timer = (PenTimer){.at_ns = at_ns, .call = call, .ctx = ctx, .next = *at, .set = 1};
    *at = timer;
}

static int sim_post(PenTransport *t, PenCall *call, void *ctx)
{
    SimClient *c = (SimClient *)t;
    SimPost *post = pen__alloc(sizeof *post);
    if (!post)
        return PEN_E_NO_MEMORY;
    *post = (SimPost){.call = call, .ctx = ctx};
    *c->posts_end = post;
    c->posts_end = &post->next;
    return PEN_OK;
}

static uint64_t sim_progress(PenTransport *t, const PenTransfer *x)
{
    uint64_t now = sim_now(t);
    return now <= x->first_ns ? 0 : x->reply.bytes * (now - x->first_ns) / (x->at_ns - x->first_ns);
}

static const PenTransportClass sim_class = {
    .now_ns = sim_now,
    .unix_ns = sim_unix,
    .random = sim_random,
    .start = sim_start,
    .cancel = sim_cancel,
    .timer_set = sim_timer_set,
    .timer_clear = sim_timer_clear,
    .post = sim_post,
    .progress = sim_progress,
};

/* ---- the clock ---- */

static void end_transfer(SimNet *net, PenTransfer *x)
{
    SimClient *c = x->client;
    heap_remove(net, x);
    c->live--;
    if (x->reply.failure == PEN_HTTP_OK) {
        c->idle++;
        net->server.answered += x->reply.status < 300;
    }
    x->reply.total_ns = net->now_ns; /* of the simulation's beginning: nobody looks at it */
    fill_body(x);
    x->done(x->ctx, &x->reply);
    pen__free(x);
}

static SimClient *first_timer(const SimNet *net)
{
    SimClient *best = NULL;
    for (int i = 0; i < net->n_clients; i++) {
        SimClient *c = net->clients[i];
        if (c->timers && (!best || c->timers->at_ns < best->timers->at_ns))
            best = c;
    }
    return best;
}

static bool run_post(SimNet *net)
{
    for (int i = 0; i < net->n_clients; i++) {
        SimClient *c = net->clients[i];
        SimPost *post = c->posts;
        if (!post)
            continue;
        c->posts = post->next;
        if (!c->posts)
            c->posts_end = &c->posts;
        post->call(post->ctx);
        pen__free(post);
        return true;
    }
    return false;
}

bool simnet_step(SimNet *net, uint64_t until_ns)
{
    if (run_post(net))
        return true;
    SimClient *c = first_timer(net);
    uint64_t timer_ns = c ? c->timers->at_ns : UINT64_MAX;
    uint64_t transfer_ns = net->n_heap ? net->heap[0]->at_ns : UINT64_MAX;
    uint64_t next_ns = PEN_MIN(timer_ns, transfer_ns);
    if (next_ns > until_ns) {
        net->now_ns = PEN_MAX(net->now_ns, until_ns);
        return false;
    }
    net->now_ns = PEN_MAX(net->now_ns, next_ns);
    if (c && timer_ns <= transfer_ns) {
        PenTimer timer = *c->timers; /* its storage may be gone after the call */
        sim_timer_clear(&c->transport, c->timers);
        timer.call(timer.ctx);
    } else {
        end_transfer(net, net->heap[0]);
    }
    return true;
}

void simnet_run(SimNet *net, uint64_t until_ns)
{
    while (simnet_step(net, until_ns))
        ;
}

/* ---- life ---- */

SimNet *simnet_new(uint64_t seed)
{
    SimNet *net = pen__zalloc(sizeof *net);
    if (!net)
        return NULL;
    net->now_ns = SIM_S; /* no time is 0 */
    net->rng = pen__rng_init(seed, 0);
    net->server = (SimServer){.latency_ns = 20 * SIM_MS, .connect_ns = 5 * SIM_MS};
    return net;
}

PenTransport *simnet_client(SimNet *net)
{
    size_t n = (size_t)net->n_clients;
    SimClient **more = pen__resize(net->clients, (n + 1) * sizeof(SimClient *));
    if (more)
        net->clients = more;
    SimClient *c = more ? pen__zalloc(sizeof *c) : NULL;
    if (!c)
        return NULL;
    c->transport.class_ = &sim_class;
    c->net = net;
    c->number = net->n_clients;
    c->posts_end = &c->posts;
    net->clients[net->n_clients++] = c;
    return &c->transport;
}

static void free_client(SimClient *c)
{
    for (SimPost *post = c->posts, *next; post; post = next) {
        next = post->next;
        pen__free(post);
    }
    pen__free(c);
}

void simnet_free(SimNet **ref)
{
    SimNet *net = *ref;
    if (!net)
        return;
    for (size_t i = 0; i < net->n_heap; i++)
        pen__free(net->heap[i]);
    for (int i = 0; i < net->n_clients; i++)
        free_client(net->clients[i]);
    pen__free(net->heap);
    pen__free(net->clients);
    pen__free(net);
    *ref = NULL;
}

SimServer *simnet_server(SimNet *net)
{
    return &net->server;
}

uint64_t simnet_now(const SimNet *net)
{
    return net->now_ns;
}

unsigned simnet_transfers(const PenTransport *client)
{
    return ((const SimClient *)client)->live;
}

unsigned simnet_peak(const PenTransport *client)
{
    return ((const SimClient *)client)->peak;
}

unsigned simnet_timers(const PenTransport *client)
{
    unsigned n = 0;
    for (const PenTimer *timer = ((const SimClient *)client)->timers; timer; timer = timer->next)
        n++;
    return n;
}
