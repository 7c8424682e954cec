/* SPDX-License-Identifier: Apache-2.0 */
/* A link that transfers share evenly. As all of them have the same rate at any moment, one number
 * says how many bytes each has had since the beginning; a transfer ends when that number has grown
 * by its size. */
#include <math.h>

#include "base/attr.h"
#include "base/mem.h"
#include "sim/net_impl.h"

#define TICK_NS (10 * PEN_SIM_MS)

static void count(PenSimLink *link, uint64_t second, uint64_t bytes)
{
    if (second != link->second) {
        link->second = second;
        link->in_second = 0;
    }
    link->in_second += bytes;
    link->bytes += bytes;
    link->most_in_a_s = PEN_MAX(link->most_in_a_s, link->in_second);
}

/* Up to now, second by second. Nobody has more than the one that ends next: it would have ended. */
static void advance(PenSimLink *link)
{
    uint64_t now = link->net->now_ns;
    const PenSimEvent *first = pen__sim_heap_first(&link->active);
    uint64_t most = first ? first->at : link->had;
    while (link->had_ns < now) {
        uint64_t second = link->had_ns / PEN_SIM_S;
        uint64_t end = PEN_MIN(now, (second + 1) * PEN_SIM_S);
        uint64_t more = (uint64_t)((double)(end - link->had_ns) * link->per_ns + 0.5);
        more = PEN_MIN(more, most - link->had);
        link->had += more;
        link->had_ns = end;
        count(link, second, more * link->active.n / PEN_SIM_FINE);
    }
}

static double bytes_per_s(const PenSimLink *link)
{
    double each = (double)link->bytes_per_s / (double)PEN_MAX(link->active.n, 1u);
    if (link->connection_bytes_per_s)
        each = PEN_MIN(each, (double)link->connection_bytes_per_s);
    return each;
}

/* What all links together could bring now, against what the server can. */
static double scale(PenSimLink *link)
{
    PenSimNet *net = link->net;
    double could = bytes_per_s(link) * (double)link->active.n;
    net->could += could - link->could;
    link->could = could;
    return net->bytes_per_s && net->could > (double)net->bytes_per_s
               ? (double)net->bytes_per_s / net->could
               : 1;
}

/* After any change: when does the next one end? */
static void arrange(PenSimLink *link)
{
    PenSimNet *net = link->net;
    double part = scale(link);
    PenSimEvent *first = pen__sim_heap_first(&link->active);
    if (!first || !link->first) { /* both or neither */
        link->per_ns = 0;
        pen__sim_heap_take(&net->heap, &link->event);
        return;
    }
    link->per_ns = bytes_per_s(link) * part * PEN_SIM_FINE / 1e9;
    uint64_t left = first->at > link->had ? first->at - link->had : 0;
    double ns = ceil((double)left / link->per_ns);
    uint64_t end = ns < 1e18 ? net->now_ns + (uint64_t)ns : UINT64_MAX;
    link->event.at = PEN_MIN(end, link->first->deadline_ns);
    pen__sim_heap_put(&net->heap, &link->event);
}

bool pen__sim_link_join(PenSimLink *link, PenSimTransfer *x)
{
    if (!pen__sim_heap_reserve(&link->active, link->active.n + 1))
        return false;
    advance(link);
    x->event.at = link->had + x->reply.bytes * PEN_SIM_FINE;
    pen__sim_heap_put(&link->active, &x->event);
    x->prev = link->last;
    x->next = NULL;
    *(link->last ? &link->last->next : &link->first) = x;
    link->last = x;
    arrange(link);
    return true;
}

void pen__sim_link_leave(PenSimLink *link, PenSimTransfer *x)
{
    advance(link);
    pen__sim_heap_take(&link->active, &x->event);
    *(x->prev ? &x->prev->next : &link->first) = x->next;
    *(x->next ? &x->next->prev : &link->last) = x->prev;
    arrange(link);
}

uint64_t pen__sim_link_progress(PenSimLink *link, const PenSimTransfer *x)
{
    advance(link);
    uint64_t left = x->event.at > link->had ? (x->event.at - link->had) / PEN_SIM_FINE : 0;
    return x->reply.bytes - PEN_MIN(left, x->reply.bytes);
}

PenSimTransfer *pen__sim_link_next(PenSimLink *link)
{
    advance(link);
    PenSimTransfer *x = (PenSimTransfer *)pen__sim_heap_first(&link->active);
    if (x->event.at > link->had + PEN_SIM_FINE && link->first->deadline_ns <= link->net->now_ns) {
        x = link->first;
        x->reply.failure = PEN_HTTP_T_DEADLINE;
        x->reply.bytes = 0;
    }
    return x;
}

/* The others have changed meanwhile. */
void pen__sim_link_tick(PenSimNet *net)
{
    net->could = 0; /* anew: sums of differences drift */
    for (size_t i = 0; i < net->n_links; i++)
        net->could += net->links[i]->could;
    for (size_t i = 0; i < net->n_links; i++) {
        advance(net->links[i]);
        arrange(net->links[i]);
    }
    net->tick.at = net->now_ns + TICK_NS;
    pen__sim_heap_put(&net->heap, &net->tick);
}

void pen__sim_link_counts(PenSimLink *link, PenSimLinkCounts *ret)
{
    advance(link);
    *ret = (PenSimLinkCounts){.bytes = link->bytes, .most_in_a_s = link->most_in_a_s};
}

void pen__sim_link_free(PenSimLink *link)
{
    for (PenSimTransfer *x = link->first, *next; x; x = next) {
        next = x->next;
        pen__free(x);
    }
    pen__sim_heap_fini(&link->active);
    pen__free(link);
}
