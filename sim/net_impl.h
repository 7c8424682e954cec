/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the simulated network share. */
#ifndef PEN_SIM_NET_IMPL_H
#define PEN_SIM_NET_IMPL_H

#include "base/rng.h"
#include "sim/heap.h"
#include "sim/net.h"

/* At the same moment: timers, then links, then transfers; each by number. */
enum { PEN_SIM_TIMERS, PEN_SIM_LINK, PEN_SIM_TRANSFER, PEN_SIM_TICK };
#define PEN_SIM_ORDER(kind, number) ((uint64_t)(kind) << 60 | (uint64_t)(number))

typedef struct PenSimPost {
    PenCall *call;
    void *ctx;
    struct PenSimPost *next;
} PenSimPost;

typedef struct PenSimClient {
    PenTransport transport; /* first: a transport is a client */
    PenSimEvent event;      /* its first timer */
    PenSimNet *net;
    PenSimLink *link;
    int number;
    unsigned idle; /* kept connections */
    unsigned live, peak;
    PenTimer *timers; /* in order */
} PenSimClient;

typedef struct PenSimTransfer {
    PenSimEvent event; /* before the body, or where there is no link; then in its link's heap */
    PenTransfer base;
    PenSimClient *client;
    const PenHttpRequest *request;
    void (*done)(void *ctx, const PenHttpReply *reply);
    void *ctx;
    uint64_t first_ns, deadline_ns;     /* of its body's first byte */
    struct PenSimTransfer *prev, *next; /* of a link, in the order of their beginning */
    PenHttpReply reply;
    bool corrupt;
    bool has_body; /* that is still to come over the link */
    bool on_link;  /* is coming */
} PenSimTransfer;

/* Bytes are counted in 256ths, so that shares of a nanosecond are not lost. */
#define PEN_SIM_FINE 256

struct PenSimLink {
    PenSimEvent event; /* the next of its transfers that ends */
    PenSimNet *net;
    uint64_t number, bytes_per_s, connection_bytes_per_s;
    PenSimHeap active; /* by what each transfer has to have had since the beginning */
    PenSimTransfer *first, *last;
    uint64_t had;    /* by each transfer since the beginning, in 256ths of a byte */
    uint64_t had_ns; /* up to here */
    double could;    /* bytes a second that it would bring, but for the limit of all links */
    double per_ns;   /* of each transfer, in 256ths */
    uint64_t bytes, second, in_second, most_in_a_s;
};

struct PenSimNet {
    uint64_t now_ns, numbers;
    PenRng rng;
    PenSimServer server;
    PenSimClient **clients;
    int n_clients;
    PenSimLink **links;
    size_t n_links;
    PenSimHeap heap;
    size_t n_transfers;
    PenSimEvent tick;
    uint64_t bytes_per_s;
    double could; /* of all links */
    PenSimPost *posts, **posts_end;
};

/* link.c */
bool pen__sim_link_join(PenSimLink *link, PenSimTransfer *x); /* false: no memory */
void pen__sim_link_leave(PenSimLink *link, PenSimTransfer *x);
PenSimTransfer *pen__sim_link_next(PenSimLink *link); /* whose end, or time limit, has come */
uint64_t pen__sim_link_progress(PenSimLink *link, const PenSimTransfer *x); /* bytes that came */
void pen__sim_link_tick(PenSimNet *net);
void pen__sim_link_free(PenSimLink *link);

#endif
