/* SPDX-License-Identifier: Apache-2.0 */
/* Links of the simulated network: who shares them, and how. */
#include <stdlib.h>

#include "test.h"

#include "sim/net.h"

#define MS PEN_SIM_MS

typedef struct Get {
    PenTransport *t;
    PenHttpRequest request;
    PenTransfer *transfer;
    uint64_t done_ns;
    PenHttpReply reply;
} Get;

static void answer(void *ctx, const PenSimAsk *ask, PenSimAnswer *ret)
{
    (void)ask;
    ret->after_ns = *(const uint64_t *)ctx;
}

static void on_done(void *ctx, const PenHttpReply *reply)
{
    Get *g = ctx;
    g->done_ns = g->t->class_->now_ns(g->t);
    g->reply = *reply;
    g->transfer = NULL;
}

static void get(Get *g, PenTransport *t, size_t bytes)
{
    *g = (Get){.t = t,
               .request = {.method = "GET",
                           .url = "x",
                           .into_bytes = bytes,
                           .limits = {3000, 5000, 65536, 5000, 30000}}};
    if (t->class_->start(t, &g->request, on_done, g, &g->transfer, NULL) < 0)
        abort();
}

static void run_ms(PenSimNet *net, uint64_t ms)
{
    uint64_t until = pen__sim_net_now(net) + ms * MS;
    while (pen__sim_net_step(net, until))
        ;
}

static PenSimNet *make_net(uint64_t *latency_ns)
{
    PenSimServer server = {.answer = answer, .ctx = latency_ns};
    PenSimNet *net = pen__sim_net_new(1, &server);
    if (!net)
        abort();
    return net;
}

static uint64_t took_ms(const Get *g)
{
    return (g->done_ns - PEN_SIM_S + MS / 2) / MS;
}

TEST(a_link_is_shared_evenly)
{
    uint64_t latency = 10 * MS;
    PenSimNet *net = make_net(&latency);
    PenSimLink *link = pen__sim_net_link(net, 1000000, 0);
    PenTransport *a = pen__sim_net_client(net, link), *b = pen__sim_net_client(net, link);
    Get one, two;
    get(&one, a, 100000);
    get(&two, b, 300000);
    run_ms(net, 2000);
    PenSimLinkCounts counts;
    pen__sim_link_counts(link, &counts);
    pen__sim_net_free(&net);
    CHECK_INT(took_ms(&one), 210); /* half of it until the first has ended */
    CHECK_INT(took_ms(&two), 410); /* then all */
    CHECK(counts.bytes > 399900 && counts.bytes <= 400100);
    CHECK(counts.most_in_a_s <= 1000000);
}

TEST(a_connection_has_a_limit_of_its_own)
{
    uint64_t latency = 0;
    PenSimNet *net = make_net(&latency);
    PenTransport *a = pen__sim_net_client(net, pen__sim_net_link(net, 1000000, 100000));
    PenTransport *b = pen__sim_net_client(net, pen__sim_net_link(net, 1000000, 0));
    Get one, two;
    get(&one, a, 100000);
    get(&two, b, 100000); /* another link: neither disturbs the other */
    run_ms(net, 2000);
    pen__sim_net_free(&net);
    CHECK_INT(took_ms(&one), 1000);
    CHECK_INT(took_ms(&two), 100);
}

TEST(all_links_share_what_the_server_has)
{
    uint64_t latency = 0;
    PenSimNet *net = make_net(&latency);
    PenTransport *a = pen__sim_net_client(net, pen__sim_net_link(net, 1000000, 0));
    PenTransport *b = pen__sim_net_client(net, pen__sim_net_link(net, 3000000, 0));
    Get one, two;
    CHECK_INT(pen__sim_net_limit(net, 2000000), PEN_OK); /* half of what both could */
    get(&one, a, 500000);
    get(&two, b, 1500000);
    run_ms(net, 3000);
    pen__sim_net_free(&net);
    /* It is looked at every 10 ms. */
    CHECK(took_ms(&one) >= 980 && took_ms(&one) <= 1000);
    CHECK(took_ms(&two) >= 980 && took_ms(&two) <= 1000);
}

TEST(a_transfer_that_is_cancelled_makes_room)
{
    uint64_t latency = 0;
    PenSimNet *net = make_net(&latency);
    PenSimLink *link = pen__sim_net_link(net, 1000000, 0);
    PenTransport *a = pen__sim_net_client(net, link);
    Get one, two;
    get(&one, a, 500000);
    get(&two, a, 500000);
    run_ms(net, 100); /* 50,000 each */
    a->class_->cancel(one.transfer);
    run_ms(net, 2000);
    unsigned left = pen__sim_client_transfers(a);
    pen__sim_net_free(&net);
    CHECK_INT(left, 0);
    CHECK_INT(one.done_ns, 0);
    CHECK_INT(took_ms(&two), 550);
    CHECK_INT(two.reply.status, 206);
    CHECK_INT(two.reply.bytes, 500000);
}

TEST(a_body_that_takes_too_long_is_cut)
{
    uint64_t latency = 0;
    PenSimNet *net = make_net(&latency);
    PenTransport *a = pen__sim_net_client(net, pen__sim_net_link(net, 1000, 0));
    Get one;
    get(&one, a, 1000000);
    run_ms(net, 60000);
    pen__sim_net_free(&net);
    CHECK_INT(took_ms(&one), 30000);
    CHECK_INT(one.reply.failure, PEN_HTTP_T_DEADLINE);
    CHECK_INT(one.reply.bytes, 0);
}

TEST(what_is_under_way_is_freed)
{
    uint64_t latency = 10 * MS;
    PenSimNet *net = make_net(&latency);
    PenTransport *a = pen__sim_net_client(net, pen__sim_net_link(net, 1000000, 0));
    Get one, two;
    get(&one, a, 1000000);
    run_ms(net, 20); /* its body is coming */
    get(&two, a, 1000000);
    CHECK_INT(pen__sim_client_transfers(a), 2);
    CHECK_INT(pen__sim_client_peak(a), 2);
    pen__sim_net_free(&net);
    CHECK(!net);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(a_link_is_shared_evenly);
    RUN(a_connection_has_a_limit_of_its_own);
    RUN(all_links_share_what_the_server_has);
    RUN(a_transfer_that_is_cancelled_makes_room);
    RUN(a_body_that_takes_too_long_is_cut);
    RUN(what_is_under_way_is_freed);
    return TEST_END();
}
