/* SPDX-License-Identifier: Apache-2.0 */
#include "net/simnet.h"

#include <string.h>

#include "base/mem.h"
#include "sim/net.h"

struct SimNet {
    PenSimNet *net;
    SimServer server;
};

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

static void fill_body(const PenHttpRequest *request, size_t bytes, bool corrupt)
{
    struct iovec one;
    const struct iovec *v;
    int n = pen__http_into(request, &one, &v);
    uint32_t key = body_key(request->url);
    size_t at = 0;
    for (int k = 0; k < n; k++) {
        uint8_t *into = v[k].iov_base;
        for (size_t i = 0; i < v[k].iov_len && at < bytes; i++, at++)
            into[i] = body_byte(key, at) ^ (corrupt && at == bytes / 2 ? 0x10 : 0);
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
    return pen__sim_net_draw(net->net, n);
}

static bool by_chance(SimNet *net, unsigned permille)
{
    return permille && simnet_draw(net, 1000) < permille;
}

static const SimAnswer slow_down = {.status = 503, .error = "<Error><Code>SlowDown</Code></Error>"};

static SimAnswer choose(SimNet *net)
{
    SimServer *s = &net->server;
    uint64_t number = s->requests++, now_ns = simnet_now(net);
    if (now_ns / SIM_S != s->second) {
        s->second = now_ns / SIM_S;
        s->in_second = 0;
    }
    s->in_second++;
    if (number < s->n_script)
        return s->script[number];
    if (now_ns >= s->out_from_ns && now_ns < s->out_to_ns)
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

static void on_answer(void *ctx, const PenSimAsk *ask, PenSimAnswer *ret)
{
    SimNet *net = ctx;
    SimServer *s = &net->server;
    SimAnswer a = choose(net);
    if (s->on_request)
        s->on_request(s->on_request_ctx, simnet_now(net), ask->client, ask->request, &a);
    s->reused += ask->reused;
    s->fresh += ask->request->fresh;
    a.connect_ns = ask->reused ? 0 : about(net, s->connect_ns);
    uint64_t wait_ns = about(net, by_chance(net, s->tail_permille) ? s->tail_ns : s->latency_ns);
    a.after_ns = a.after_ns ? a.after_ns : wait_ns;
    a.bytes_per_s = s->bytes_per_s;
    *ret = a;
}

static void on_end(void *ctx, const PenSimAsk *ask, const PenHttpReply *reply, bool corrupt)
{
    SimNet *net = ctx;
    if (reply->failure == PEN_HTTP_OK)
        net->server.answered += reply->status < 300;
    fill_body(ask->request, (size_t)reply->bytes, corrupt);
}

/* ---- life ---- */

SimNet *simnet_new(uint64_t seed)
{
    SimNet *net = pen__zalloc(sizeof *net);
    if (!net)
        return NULL;
    PenSimServer server = {.answer = on_answer, .ended = on_end, .ctx = net};
    net->net = pen__sim_net_new(seed, &server);
    net->server = (SimServer){.latency_ns = 20 * SIM_MS, .connect_ns = 5 * SIM_MS};
    if (!net->net)
        simnet_free(&net);
    return net;
}

void simnet_free(SimNet **ref)
{
    if (*ref)
        pen__sim_net_free(&(*ref)->net);
    pen__free(*ref);
    *ref = NULL;
}

PenTransport *simnet_client(SimNet *net)
{
    return pen__sim_net_client(net->net, NULL);
}

SimServer *simnet_server(SimNet *net)
{
    return &net->server;
}

uint64_t simnet_now(const SimNet *net)
{
    return pen__sim_net_now(net->net);
}

bool simnet_step(SimNet *net, uint64_t until_ns)
{
    return pen__sim_net_step(net->net, until_ns);
}

void simnet_run(SimNet *net, uint64_t until_ns)
{
    while (simnet_step(net, until_ns))
        ;
}

unsigned simnet_transfers(const PenTransport *client)
{
    return pen__sim_client_transfers(client);
}

unsigned simnet_peak(const PenTransport *client)
{
    return pen__sim_client_peak(client);
}

unsigned simnet_timers(const PenTransport *client)
{
    return pen__sim_client_timers(client);
}
