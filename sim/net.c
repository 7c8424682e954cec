/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/net.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "sim/net_impl.h"

#define WHERE "sim/net"
#define NEVER (UINT64_MAX / 2)

/* ---- what will become of a transfer ---------------------------------------------------------- */

/* Ends the transfer with `failure` at `at_ns`, if that is earlier than what was known. */
static void cut(PenSimTransfer *x, PenHttpFailure failure, uint64_t at_ns)
{
    if (at_ns >= x->event.at)
        return;
    x->event.at = at_ns;
    if (failure < PEN_HTTP_T_SLOW)
        x->reply.status = 0;
    x->reply.failure = failure;
    x->reply.bytes = 0;
    x->has_body = false;
}

static void plan_body(PenSimTransfer *x, const PenSimAnswer *a, uint64_t first_ns)
{
    const PenHttpRequest *q = x->request;
    uint64_t bytes = q->into_bytes;
    x->event.at = first_ns;
    if (x->reply.status >= 300 || !x->reply.status) {
        x->reply.error = a->error;
        x->reply.error_bytes = a->error ? strlen(a->error) : 0;
        return;
    }
    if (a->failure == PEN_HTTP_BROKEN)
        bytes /= 2;
    x->reply.bytes = x->reply.content_length = bytes;
    x->corrupt = a->corrupt || a->failure != PEN_HTTP_OK;
    x->has_body = x->client->link && bytes;
    if (x->client->link || !a->bytes_per_s)
        return;
    x->event.at += bytes * PEN_SIM_S / a->bytes_per_s;
    if (a->bytes_per_s * q->limits.slow_ms / 1000 < q->limits.slow_bytes)
        cut(x, PEN_HTTP_T_SLOW, first_ns + q->limits.slow_ms * PEN_SIM_MS);
}

static void plan_limits(PenSimTransfer *x, const PenSimAnswer *a, uint64_t connected,
                        uint64_t first)
{
    const PenHttpLimits *l = &x->request->limits;
    uint64_t now = x->client->net->now_ns;
    if (a->failure == PEN_HTTP_CONNECT || a->failure == PEN_HTTP_RESOLVE)
        x->event.at = connected;
    if (a->mute || first > connected + l->first_byte_ms * PEN_SIM_MS)
        cut(x, PEN_HTTP_T_FIRST_BYTE, connected + l->first_byte_ms * PEN_SIM_MS);
    if (connected - now > l->connect_ms * PEN_SIM_MS)
        cut(x, PEN_HTTP_T_CONNECT, now + l->connect_ms * PEN_SIM_MS);
    x->deadline_ns = now + l->deadline_ms * PEN_SIM_MS;
    cut(x, PEN_HTTP_T_DEADLINE, x->deadline_ns);
}

/* All that will happen is known from the start, but for a cancel and for how a link is shared. */
static void plan(PenSimTransfer *x)
{
    PenSimClient *c = x->client;
    PenSimNet *net = c->net;
    PenSimAnswer a = {0};
    PenHttpReply *reply = &x->reply;
    reply->reused = c->idle > 0 && !x->request->fresh;
    PenSimAsk ask = {.client = c->number, .request = x->request, .reused = reply->reused};
    net->server.answer(net->server.ctx, &ask, &a);
    c->idle -= reply->reused;
    uint64_t connected = net->now_ns + a.connect_ns, first = connected + a.after_ns;
    if (a.stale && reply->reused)
        a = (PenSimAnswer){.failure = PEN_HTTP_BROKEN};
    else if (!a.status && a.failure == PEN_HTTP_OK)
        a.status = 206;
    reply->failure = a.failure;
    reply->status = a.status;
    reply->retry_after_ms = a.retry_after_ms ? a.retry_after_ms : PEN_HTTP_NONE;
    x->first_ns = first;
    plan_body(x, &a, a.mute ? NEVER : first);
    plan_limits(x, &a, connected, first);
}

/* ---- the table ------------------------------------------------------------------------------- */

static uint64_t sim_now(PenTransport *t)
{
    return ((PenSimClient *)t)->net->now_ns;
}

static uint64_t sim_unix(PenTransport *t)
{
    return 1700000000 * PEN_SIM_S + sim_now(t);
}

static uint64_t sim_random(PenTransport *t)
{
    return pen__rng_next(&((PenSimClient *)t)->net->rng);
}

static int sim_start(PenTransport *t, const PenHttpRequest *request,
                     void (*done)(void *ctx, const PenHttpReply *reply), void *ctx,
                     PenTransfer **ret, PenError *reterr)
{
    PenSimClient *c = (PenSimClient *)t;
    PenSimNet *net = c->net;
    PenSimTransfer *x = pen__zalloc(sizeof *x);
    size_t most = (size_t)net->n_clients + net->n_links + net->n_transfers + 2;
    if (!x || !pen__sim_heap_reserve(&net->heap, most)) {
        pen__free(x);
        return pen__fail_memory(reterr, WHERE, "transfer");
    }
    x->base.transport = t;
    x->client = c;
    x->request = request;
    x->done = done;
    x->ctx = ctx;
    x->event.order = PEN_SIM_ORDER(PEN_SIM_TRANSFER, net->numbers++);
    x->reply.content_length = x->reply.range_first = x->reply.range_last = PEN_HTTP_NONE;
    x->reply.range_total = x->reply.date_s = PEN_HTTP_NONE;
    memcpy(x->reply.peer, "sim:80", sizeof "sim:80");
    plan(x);
    net->n_transfers++;
    pen__sim_heap_put(&net->heap, &x->event);
    c->live++;
    c->peak = PEN_MAX(c->peak, c->live);
    *ret = &x->base;
    return PEN_OK;
}

/* Out of all that knows of it. */
static void forget(PenSimTransfer *x)
{
    PenSimClient *c = x->client;
    if (x->on_link)
        pen__sim_link_leave(c->link, x);
    else
        pen__sim_heap_take(&c->net->heap, &x->event);
    c->live--;
    c->net->n_transfers--;
}

static PenSimTransfer *sim_transfer(const PenTransfer *base)
{
    return (PenSimTransfer *)(void *)((char *)base - offsetof(PenSimTransfer, base));
}

static void sim_cancel(PenTransfer *transfer)
{
    PenSimTransfer *x = sim_transfer(transfer);
    forget(x);
    pen__free(x);
}

/* The first timer of a client stands for all of them. */
static void arrange_timers(PenSimClient *c)
{
    if (!c->timers) {
        pen__sim_heap_take(&c->net->heap, &c->event);
        return;
    }
    if (c->event.place && c->event.at == c->timers->at_ns)
        return;
    c->event.at = c->timers->at_ns;
    pen__sim_heap_put(&c->net->heap, &c->event);
}

static void unlink_timer(PenSimClient *c, PenTimer *timer)
{
    PenTimer **at = &c->timers;
    if (!timer->set)
        return;
    while (*at != timer)
        at = &(*at)->next;
    *at = timer->next;
    timer->set = 0;
}

static void sim_timer_clear(PenTransport *t, PenTimer *timer)
{
    unlink_timer((PenSimClient *)t, timer);
    arrange_timers((PenSimClient *)t);
}

static void sim_timer_set(PenTransport *t, PenTimer *timer, uint64_t at_ns, PenCall *call,
                          void *ctx)
{
    PenSimClient *c = (PenSimClient *)t;
    unlink_timer(c, timer);
    PenTimer **at = &c->timers;
    while (*at && (*at)->at_ns <= at_ns)
        at = &(*at)->next;
    *timer = (PenTimer){.at_ns = at_ns, .call = call, .ctx = ctx, .next = *at, .set = 1};
    *at = timer;
    arrange_timers(c);
}

static int sim_post(PenTransport *t, PenCall *call, void *ctx)
{
    PenSimNet *net = ((PenSimClient *)t)->net;
    PenSimPost *post = pen__alloc(sizeof *post);
    if (!post)
        return PEN_E_NO_MEMORY;
    *post = (PenSimPost){.call = call, .ctx = ctx};
    *net->posts_end = post;
    net->posts_end = &post->next;
    return PEN_OK;
}

static uint64_t sim_progress(const PenTransfer *transfer)
{
    const PenSimTransfer *x = sim_transfer(transfer);
    uint64_t now = sim_now(transfer->transport);
    if (x->on_link)
        return pen__sim_link_progress(x->client->link, x);
    if (x->has_body || now <= x->first_ns)
        return 0;
    return x->reply.bytes * (now - x->first_ns) / (x->event.at - x->first_ns);
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

/* ---- the clock ------------------------------------------------------------------------------- */

static void end_transfer(PenSimTransfer *x)
{
    PenSimClient *c = x->client;
    PenSimNet *net = c->net;
    PenSimAsk ask = {.client = c->number, .request = x->request, .reused = x->reply.reused};
    forget(x);
    if (x->reply.failure == PEN_HTTP_OK)
        c->idle++;
    if (net->server.ended)
        net->server.ended(net->server.ctx, &ask, &x->reply, x->corrupt);
    x->done(x->ctx, &x->reply);
    pen__free(x);
}

/* The first byte has come, or all there is. */
static void fire_transfer(PenSimTransfer *x)
{
    PenSimClient *c = x->client;
    if (!x->has_body) {
        end_transfer(x);
        return;
    }
    pen__sim_heap_take(&c->net->heap, &x->event);
    x->has_body = false;
    x->on_link = pen__sim_link_join(c->link, x);
    if (!x->on_link) {
        x->reply.failure = PEN_HTTP_NO_MEMORY;
        end_transfer(x);
    }
}

static void fire_timer(PenSimClient *c)
{
    PenTimer timer = *c->timers; /* its storage may be gone after the call */
    sim_timer_clear(&c->transport, c->timers);
    timer.call(timer.ctx);
}

static bool run_post(PenSimNet *net)
{
    PenSimPost *post = net->posts;
    if (!post)
        return false;
    net->posts = post->next;
    if (!net->posts)
        net->posts_end = &net->posts;
    post->call(post->ctx);
    pen__free(post);
    return true;
}

static void fire(PenSimNet *net, PenSimEvent *e)
{
    switch (e->order >> 60) {
    case PEN_SIM_TIMERS:
        fire_timer((PenSimClient *)((char *)e - offsetof(PenSimClient, event)));
        break;
    case PEN_SIM_LINK:
        end_transfer(pen__sim_link_next((PenSimLink *)e));
        break;
    case PEN_SIM_TRANSFER:
        fire_transfer((PenSimTransfer *)e);
        break;
    default:
        pen__sim_link_tick(net);
        break;
    }
}

bool pen__sim_net_step(PenSimNet *net, uint64_t until_ns)
{
    if (run_post(net))
        return true;
    PenSimEvent *e = pen__sim_heap_first(&net->heap);
    if (!e || e->at > until_ns) {
        net->now_ns = PEN_MAX(net->now_ns, until_ns);
        return false;
    }
    net->now_ns = PEN_MAX(net->now_ns, e->at);
    fire(net, e);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

PenSimNet *pen__sim_net_new(uint64_t seed, const PenSimServer *server)
{
    PenSimNet *net = pen__zalloc(sizeof *net);
    if (!net)
        return NULL;
    net->now_ns = PEN_SIM_S;
    net->rng = pen__rng_init(seed, 0);
    net->server = *server;
    net->posts_end = &net->posts;
    net->tick.order = PEN_SIM_ORDER(PEN_SIM_TICK, 0);
    return net;
}

/* Room for one more in a list of pointers, and for its event. */
static void *grow_list(PenSimNet *net, void *list, size_t n)
{
    size_t most = (size_t)net->n_clients + net->n_links + net->n_transfers + 2;
    if (!pen__sim_heap_reserve(&net->heap, most))
        return NULL;
    return pen__resize(list, (n + 1) * sizeof(void *));
}

PenSimLink *pen__sim_net_link(PenSimNet *net, uint64_t bytes_per_s, uint64_t connection_bytes_per_s)
{
    PenSimLink **more = grow_list(net, net->links, net->n_links);
    if (more)
        net->links = more;
    PenSimLink *link = more ? pen__zalloc(sizeof *link) : NULL;
    if (!link)
        return NULL;
    *link = (PenSimLink){.net = net,
                         .number = net->n_links,
                         .event.order = PEN_SIM_ORDER(PEN_SIM_LINK, net->n_links),
                         .bytes_per_s = bytes_per_s ? bytes_per_s : UINT64_C(1) << 50,
                         .connection_bytes_per_s = connection_bytes_per_s,
                         .had_ns = net->now_ns};
    net->links[net->n_links++] = link;
    return link;
}

int pen__sim_net_limit(PenSimNet *net, uint64_t bytes_per_s)
{
    pen__sim_heap_take(&net->heap, &net->tick);
    net->bytes_per_s = bytes_per_s;
    if (!bytes_per_s)
        return PEN_OK;
    if (!pen__sim_heap_reserve(&net->heap, net->heap.n + 1))
        return PEN_E_NO_MEMORY;
    net->tick.at = net->now_ns;
    pen__sim_heap_put(&net->heap, &net->tick);
    return PEN_OK;
}

PenTransport *pen__sim_net_client(PenSimNet *net, PenSimLink *link)
{
    PenSimClient **more = grow_list(net, net->clients, (size_t)net->n_clients);
    if (more)
        net->clients = more;
    PenSimClient *c = more ? pen__zalloc(sizeof *c) : NULL;
    if (!c)
        return NULL;
    c->transport.class_ = &sim_class;
    c->net = net;
    c->link = link;
    c->number = net->n_clients;
    c->event.order = PEN_SIM_ORDER(PEN_SIM_TIMERS, c->number);
    net->clients[net->n_clients++] = c;
    return &c->transport;
}

void pen__sim_net_free(PenSimNet **ret)
{
    PenSimNet *net = *ret;
    if (!net)
        return;
    for (size_t i = 0; i < net->heap.n; i++)
        if (net->heap.events[i]->order >> 60 == PEN_SIM_TRANSFER)
            pen__free(net->heap.events[i]);
    for (size_t i = 0; i < net->n_links; i++)
        pen__sim_link_free(net->links[i]);
    for (int i = 0; i < net->n_clients; i++)
        pen__free(net->clients[i]);
    for (PenSimPost *post = net->posts, *next; post; post = next) {
        next = post->next;
        pen__free(post);
    }
    pen__sim_heap_fini(&net->heap);
    pen__free(net->links);
    pen__free(net->clients);
    pen__free(net);
    *ret = NULL;
}

uint64_t pen__sim_net_now(const PenSimNet *net)
{
    return net->now_ns;
}

uint64_t pen__sim_net_random(PenSimNet *net)
{
    return pen__rng_next(&net->rng);
}

uint64_t pen__sim_net_draw(PenSimNet *net, uint64_t n)
{
    return pen__rng_below(&net->rng, n);
}

unsigned pen__sim_client_transfers(const PenTransport *client)
{
    return ((const PenSimClient *)client)->live;
}

unsigned pen__sim_client_peak(const PenTransport *client)
{
    return ((const PenSimClient *)client)->peak;
}

unsigned pen__sim_client_timers(const PenTransport *client)
{
    unsigned n = 0;
    for (const PenTimer *timer = ((const PenSimClient *)client)->timers; timer; timer = timer->next)
        n++;
    return n;
}
