/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a simulated process: the real retry policy over a simulated client, counted by kind.
 */
#ifndef PEN_SIM_CALLER_H
#define PEN_SIM_CALLER_H

#include "net/retry/policy.h"
#include "sim/net.h"

typedef enum PenSimKind {
    PEN_SIM_SOURCE, /* GET of a source object */
    PEN_SIM_GET,    /* any other GET */
    PEN_SIM_HEAD,
    PEN_SIM_LIST,
    PEN_SIM_PUT,
    PEN_SIM_POST,
    PEN_SIM_DELETE,
    PEN_SIM_KINDS
} PenSimKind;

typedef struct PenSimRequest {
    PenSimKind kind;
    unsigned prefix;
    uint64_t bytes; /* of its body, or of that of the response */
} PenSimRequest;

/* The first thing that went wrong. */
typedef struct PenSimFault {
    int r;
    PenError err;
} PenSimFault;

typedef struct PenSimCaller {
    PenTransport *t;
    PenPolicy *policy; /* NULL before the first request */
    uint32_t in_flight;
    PenSimFault *fault;
    struct PenSimCall *calls;
    uint64_t begun[PEN_SIM_KINDS]; /* without retries and hedged requests */
    uint64_t busy_ns;              /* sum of the times of all its requests */
} PenSimCaller;

/* `done` is called when the response is complete, and never after a fault. */
void pen__sim_call(PenSimCaller *c, const PenSimRequest *request, PenCall *done, void *ctx);
void pen__sim_fault(PenSimFault *fault, int r, const PenError *err);

/* A process has connections of its own to the sources and to the pack. Requests whose responses are
 * large and those whose bodies are large use the two directions of its node's network. */
enum { PEN_SIM_OF_SOURCES, PEN_SIM_IN, PEN_SIM_OUT, PEN_SIM_CALLERS };

typedef struct PenSimProcess {
    PenSimCaller callers[PEN_SIM_CALLERS]; /* clients of the network, numbered in this order */
} PenSimProcess;

typedef struct PenSimNode {
    PenSimLink *in, *out;
} PenSimNode;

/* in_flight 0: as many requests of each caller as a process has by default. */
int pen__sim_process_init(PenSimProcess *p, PenSimNet *net, const PenSimNode *node,
                          uint32_t in_flight, PenSimFault *fault, PenError *reterr);
void pen__sim_process_fini(PenSimProcess *p); /* before the network; a zeroed one is fine */
unsigned pen__sim_caller_of(PenSimKind kind); /* which of them; LIST: of the pack */

static inline uint64_t pen__sim_caller_now(const PenSimCaller *c)
{
    return c->t->class_->now_ns(c->t);
}

#endif
