/* SPDX-License-Identifier: Apache-2.0 */
/* What carries requests and keeps the time, as a table: the policy above it runs the same over
 * libcurl and over a simulated network on a clock that tests turn.
 *
 * A transport has one loop. All calls but `post` and `now_ns` are made on the loop, and all
 * callbacks come from it, so that what is driven by it needs no lock. */
#ifndef PEN_NET_HTTP_TRANSPORT_H
#define PEN_NET_HTTP_TRANSPORT_H

#include <penstock/error.h>

#include "net/http/message.h"

typedef struct PenTransport PenTransport;

/* A request under way. Each transport has a type of its own that begins with or holds it. */
typedef struct PenTransfer {
    PenTransport *transport;
} PenTransfer;

typedef void PenCall(void *ctx);

/* Storage is the caller's; zero-initialised is unset. */
typedef struct PenTimer {
    uint64_t at_ns;
    PenCall *call;
    void *ctx;
    struct PenTimer *next;
    uint8_t set;
} PenTimer;

typedef struct PenTransportClass {
    uint64_t (*now_ns)(PenTransport *t);
    uint64_t (*unix_ns)(PenTransport *t); /* wall clock, for signatures and expiry */
    uint64_t (*random)(PenTransport *t);

    /* `done` is called exactly once, later and never from within start; then the transfer is gone.
     * A failure to start (memory) returns < 0 and calls nothing. */
    int (*start)(PenTransport *t, const PenHttpRequest *request,
                 void (*done)(void *ctx, const PenHttpReply *reply), void *ctx, PenTransfer **ret,
                 PenError *reterr);
    void (*cancel)(PenTransfer *transfer); /* `done` is not called any more */

    void (*timer_set)(PenTransport *t, PenTimer *timer, uint64_t at_ns, PenCall *call, void *ctx);
    void (*timer_clear)(PenTransport *t, PenTimer *timer); /* accepts an unset one */

    /* From any thread: has `call` made on the loop, soon. PEN_E_CLOSED when the loop has ended,
     * PEN_E_NO_MEMORY. */
    int (*post)(PenTransport *t, PenCall *call, void *ctx);

    /* Bytes of the body that have come so far. NULL: not known. */
    uint64_t (*progress)(const PenTransfer *transfer);
} PenTransportClass;

struct PenTransport {
    const PenTransportClass *class_;
};

#endif
