/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated network (sim/net.h) with a server that does what a test says. A body is a
 * function of the URL, so that a test can see whether it came whole. */
#ifndef PEN_TESTS_NET_SIMNET_H
#define PEN_TESTS_NET_SIMNET_H

#include <stdbool.h>

#include "sim/net.h"

#define SIM_MS PEN_SIM_MS
#define SIM_S PEN_SIM_S

/* What the server does with a request; all 0: 206 and the body, after the time that is drawn. */
typedef PenSimAnswer SimAnswer;

typedef struct SimServer {
    uint64_t latency_ns; /* to the first byte: evenly from half of it to three halves */
    unsigned tail_permille;
    uint64_t tail_ns; /* of these answers, likewise */
    uint64_t connect_ns;
    uint64_t bytes_per_s; /* of a connection */
    /* Of a thousand requests, by chance: */
    unsigned error_permille, slow_down_permille, mute_permille, broken_permille, corrupt_permille;
    uint64_t out_from_ns, out_to_ns; /* an outage, with this answer to all */
    SimAnswer out;
    unsigned per_s;          /* more requests in a second are told to slow down; 0: no limit */
    const SimAnswer *script; /* for the first requests, in order */
    size_t n_script;
    /* Counted. */
    uint64_t requests, answered, reused, fresh;
    uint64_t second, in_second;
    void (*on_request)(void *ctx, uint64_t now_ns, int client, const PenHttpRequest *request,
                       const SimAnswer *answer);
    void *on_request_ctx;
} SimServer;

typedef struct SimNet SimNet;

SimNet *simnet_new(uint64_t seed); /* NULL: no memory */
void simnet_free(SimNet **net);    /* with all its clients */
SimServer *simnet_server(SimNet *net);
PenTransport *simnet_client(SimNet *net); /* clients are numbered from 0 */
uint64_t simnet_now(const SimNet *net);
uint64_t simnet_draw(SimNet *net, uint64_t n); /* evenly from [0, n) */
/* The next event, if it comes by then; otherwise the clock stands at `until_ns` and it is false. */
bool simnet_step(SimNet *net, uint64_t until_ns);
void simnet_run(SimNet *net, uint64_t until_ns);

unsigned simnet_transfers(const PenTransport *client); /* under way */
unsigned simnet_peak(const PenTransport *client);      /* most at once */
unsigned simnet_timers(const PenTransport *client);    /* set */
bool simnet_body_is(const char *url, const void *body, size_t bytes);

#endif
