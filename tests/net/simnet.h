/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated network: one server and any number of clients on one clock that only events turn. The
 * same seed and the same calls give the same run. One thread.
 *
 * Every client is a PenTransport. Its time limits, kept connections and bodies are as a real one's;
 * a body is a function of the URL, so that a test can see whether it came whole. */
#ifndef PEN_TESTS_NET_SIMNET_H
#define PEN_TESTS_NET_SIMNET_H

#include <stdbool.h>

#include "net/transport.h"

#define SIM_MS 1000000ull
#define SIM_S 1000000000ull

/* What the server does with a request; all 0: 200 and the body. */
typedef struct SimAnswer {
    PenHttpFailure failure;
    int status;
    uint64_t after_ns; /* to the first byte; 0: drawn as usual */
    uint64_t retry_after_ms;
    const char *error; /* body of the error */
    bool mute;         /* no answer at all */
    bool stale;        /* the connection, if it was kept, turns out to be closed; otherwise 200 */
    bool corrupt;      /* a body with a wrong byte */
} SimAnswer;

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
