/* SPDX-License-Identifier: Apache-2.0 */
/* A network on a clock that only events turn: one server, any number of clients, and links that
 * clients share. The same seed and the same calls give the same run. One thread.
 *
 * Every client is a PenTransport; its time limits and kept connections are as a real one's. What
 * the server does with a request is said by its owner, at the moment the request comes. */
#ifndef PEN_SIM_NET_H
#define PEN_SIM_NET_H

#include <stdbool.h>

#include "net/http/transport.h"

#define PEN_SIM_MS 1000000ull
#define PEN_SIM_S 1000000000ull

/* All 0: 206 and all bytes, at once. */
typedef struct PenSimAnswer {
    PenHttpFailure failure;
    int status;
    uint64_t connect_ns;  /* until there is a connection */
    uint64_t after_ns;    /* from there to the first byte */
    uint64_t bytes_per_s; /* of this connection; 0: no limit. Of a client with a link that has one,
                             the link says */
    uint64_t retry_after_ms; /* 0: none */
    const char *error;       /* body of the error */
    bool mute;               /* no answer at all */
    bool stale;   /* the connection, if it was kept, turns out to be closed; otherwise 206 */
    bool corrupt; /* a body with a wrong byte */
} PenSimAnswer;

typedef struct PenSimAsk {
    int client;
    const PenHttpRequest *request;
    bool reused; /* comes over a kept connection */
} PenSimAsk;

typedef struct PenSimServer {
    void (*answer)(void *ctx, const PenSimAsk *ask, PenSimAnswer *ret);
    /* Before the client hears of it; may be NULL. */
    void (*ended)(void *ctx, const PenSimAsk *ask, const PenHttpReply *reply, bool corrupt);
    void *ctx;
} PenSimServer;

/* All transfers of a link's clients share it evenly, none faster than a connection is. */
typedef struct PenSimLink PenSimLink;
typedef struct PenSimLinkCounts {
    uint64_t bytes;       /* that came */
    uint64_t most_in_a_s; /* in any second, counted from the beginning */
} PenSimLinkCounts;

typedef struct PenSimNet PenSimNet;

PenSimNet *pen__sim_net_new(uint64_t seed, const PenSimServer *server); /* NULL: no memory */
void pen__sim_net_free(PenSimNet **ret); /* with all its links and clients */
/* 0: no limit. NULL: no memory. */
PenSimLink *pen__sim_net_link(PenSimNet *net, uint64_t bytes_per_s,
                              uint64_t connection_bytes_per_s);
/* All links together bring no more than this: each then gets the same part of what it could. Looked
 * at 100 times a second. 0: no limit. */
int pen__sim_net_limit(PenSimNet *net, uint64_t bytes_per_s);
/* Clients are numbered from 0; link NULL: all connections by themselves. NULL: no memory. */
PenTransport *pen__sim_net_client(PenSimNet *net, PenSimLink *link);
uint64_t pen__sim_net_now(const PenSimNet *net); /* begins with 1 s: no time is 0 */
uint64_t pen__sim_net_random(PenSimNet *net);
uint64_t pen__sim_net_draw(PenSimNet *net, uint64_t n); /* evenly from [0, n) */
/* The next event, if it comes by then; otherwise the clock stands at `until_ns` and it is false. */
bool pen__sim_net_step(PenSimNet *net, uint64_t until_ns);

void pen__sim_link_counts(PenSimLink *link, PenSimLinkCounts *ret);
unsigned pen__sim_client_transfers(const PenTransport *client); /* under way */
unsigned pen__sim_client_peak(const PenTransport *client);      /* most at once */
unsigned pen__sim_client_timers(const PenTransport *client);    /* set */

#endif
