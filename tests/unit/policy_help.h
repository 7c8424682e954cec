/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes over a simulated network, and what became of them. */
#ifndef PEN_TESTS_UNIT_POLICY_HELP_H
#define PEN_TESTS_UNIT_POLICY_HELP_H

#include <stdlib.h>

#include "test.h"

#include "base/attr.h"
#include "net/retry/policy_impl.h"
#include "net/simnet.h"

#define NAME "s3://bucket/train.pen"

typedef struct Want {
    SimNet *net;
    PenOperationSpec spec;
    PenOperation *op;
    char url[64];
    uint8_t into[4096];
    const struct iovec *v; /* instead */
    int n_v;
    const PenArrival *arrival;
    unsigned prepared, judged, done; /* calls */
    unsigned attempt;                /* the number that prepare was last told */
    unsigned busy;                   /* prepare says so as often */
    int refuse;                      /* prepare fails with it */
    unsigned n_again, n_causes;      /* so often AGAIN, with as many causes in turn */
    int r;
    PenError err;
    uint64_t began_ns, done_ns;
} Want;

void want_init(Want *w, SimNet *net, unsigned number);
int want_start(Want *w, PenPolicy *p);

/* A network, a client and its policy, and the times of the requests. */
typedef struct Bench {
    SimNet *net;
    PenTransport *t;
    PenPolicy *p;
    uint64_t at_ns[4096]; /* of requests */
    uint8_t fresh[4096];
    uint8_t heard[4096]; /* somebody hears of the bytes that arrive */
    unsigned n;
    Want w[256];
} Bench;

void on_request(void *ctx, uint64_t now_ns, int client, const PenHttpRequest *request,
                const SimAnswer *answer);
Bench *bench_new(const PenPolicySettings *s, const SimAnswer *script, size_t n_script);

/* Nothing may be left: no transfer, no timer of an operation. */
void bench_free(Bench *b);
void run_s(Bench *b, uint64_t seconds);

#define SCRIPT(...)                                                                                \
    (const SimAnswer[]){__VA_ARGS__}, sizeof((const SimAnswer[]){__VA_ARGS__}) / sizeof(SimAnswer)

#endif
