/* SPDX-License-Identifier: Apache-2.0 */
/* What is done when a server is slow, busy or broken: attempts, back-off, budgets, deadlines. Runs
 * on a transport's loop alone, over its table, so that it can be tried on a simulated network.
 *
 * An operation is one task ("these bytes of that object") that may take several attempts. The
 * caller tells how a request is made (signed anew each time) and what an answer means. */
#ifndef PEN_NET_RETRY_POLICY_H
#define PEN_NET_RETRY_POLICY_H

#include "net/http/transport.h"

typedef struct PenPolicySettings {
    PenHttpLimits limits;               /* of an attempt: 3 s, 5 s, 64 KiB/s over 5 s, 30 s */
    uint32_t outage_ms;                 /* how long an operation may go without success: 300,000 */
    uint32_t base_ms, cap_ms;           /* full jitter after a transient failure: 50, 5,000 */
    uint32_t slow_base_ms, slow_cap_ms; /* after being told to slow down: 1,000, 20,000 */
    uint32_t bucket;    /* retry tokens of this endpoint: 500; a retry costs 5, after a time-out 14;
                           a success gives back what its retry cost, or 1, and every second gives 5.
                           Empty: retries wait, they do not fail */
    uint32_t in_flight; /* attempts at once, at most: 256; how many there are is found out */
    uint32_t hedge_percent;  /* second requests for slow GETs, of all requests: 5; 0: none */
    uint32_t hedge_least_ms; /* never before: 200 */
} PenPolicySettings;

void pen__policy_settings_init(PenPolicySettings *s);

typedef enum PenVerdict {
    PEN_VERDICT_DONE,
    PEN_VERDICT_RETRY,    /* transient */
    PEN_VERDICT_THROTTLE, /* told to slow down: waits longer, and fewer go at once */
    PEN_VERDICT_AGAIN,    /* something was put right (credentials, clock, region): at once, once for
                             each cause */
    PEN_VERDICT_FAIL      /* final; the caller has filled in the error */
} PenVerdict;

typedef struct PenOperationSpec {
    /* Fills in the request of attempt n (0, 1, ...), which comes cleared but for the limits; what
     * it points to lives until the next call or the end. PEN_E_BUSY: not yet (credentials are being
     * fetched), asked again shortly and not counted. Another failure is final. A second request for
     * a slow one is the same request once more, and asks for nothing. */
    int (*prepare)(void *ctx, unsigned attempt, PenHttpRequest *ret, PenError *reterr);
    /* What an answer means; a 2xx answer's body lies where the request wanted it. Fills in `err`
     * for all but DONE: it is the message if the outage budget ends, or if AGAIN did not help. For
     * AGAIN, `cause` (0-7) says what was put right. RETRY of a 2xx answer (a checksum that does not
     * fit) goes over a fresh connection. */
    PenVerdict (*classify)(void *ctx, const PenHttpReply *reply, unsigned *cause, PenError *err);
    /* Once, on the loop. `r` is PEN_OK or the status in `err`. The operation is gone after it. */
    void (*done)(void *ctx, int r, const PenError *err);
    /* Asked by a thread in pen__policy_wait, now and then: not 0 ends the wait with
     * PEN_E_CANCELLED. May be NULL. */
    int (*interrupted)(void *ctx);
    void *ctx;
    const char *name;       /* for messages: "s3://bucket/key" */
    uint64_t offset, bytes; /* of what is asked for, where that is known; for messages */
    uint8_t may_hedge;      /* a second attempt at the same time does no harm: a GET */
} PenOperationSpec;

typedef struct PenPolicy PenPolicy;
typedef struct PenOperation PenOperation;

typedef struct PenPolicyCounts {
    uint64_t ops;              /* begun */
    uint64_t attempts;         /* all requests made: first ones, retries and hedges */
    uint64_t retries, hedges;  /* of these */
    uint64_t hedges_won;       /* second requests that answered first */
    uint64_t throttles;        /* answers that told us to slow down */
    uint64_t failures;         /* operations that ended with an error */
    uint64_t in_flight, limit; /* now */
    uint64_t bytes;            /* of answers taken */
} PenPolicyCounts;

/* One for each endpoint; the transport outlives it. settings NULL: as initialised. */
int pen__policy_new(PenTransport *t, const PenPolicySettings *settings, PenPolicy **ret,
                    PenError *reterr);
/* On the loop but not from a callback, or when the loop has ended; accepts NULL. Operations
 * are cancelled. Nobody may be in pen__policy_wait. */
void pen__policy_free(PenPolicy **policy);
void pen__policy_counts(PenPolicy *policy, PenPolicyCounts *ret); /* any thread */

/* From any thread: what the operation that was begun first is at, as one line: its name, place,
 * attempts and last error. "" when there is none, or the loop does not say so shortly. */
void pen__policy_progress(PenPolicy *policy, char *ret, size_t bytes);

/* On the loop; callbacks of other operations may start and cancel. No call is made from within
 * start. */
int pen__policy_start(PenPolicy *policy, const PenOperationSpec *spec, PenOperation **ret,
                      PenError *reterr);
void pen__policy_cancel(PenOperation *op); /* done is not called any more */

/* From any other thread: starts it and waits; `spec->done` is not called. PEN_E_TIMEOUT after
 * `deadline_ns` (then it is cancelled), PEN_E_CANCELLED when interrupted, PEN_E_CLOSED when the
 * loop has ended. On return nothing uses the spec any more. */
int pen__policy_wait(PenPolicy *policy, const PenOperationSpec *spec, uint64_t deadline_ns,
                     PenError *reterr);

/* What every plain server's answer means: 2xx done; 408, 500, 502, 503, 504, time-outs, names not
 * resolved and broken, garbled or too long answers are retried; 429 and a 503 that says SlowDown or
 * Retry-After throttle; 401, 403 PEN_E_ACCESS; 404, 410 PEN_E_NOT_FOUND; 412 PEN_E_CHANGED; 416
 * PEN_E_CORRUPT; a certificate that does not hold and the rest PEN_E_IO. `name` goes into the
 * message, never a URL with its query. */
PenVerdict pen__policy_classify(const char *name, const PenHttpReply *reply, PenError *err);

#endif
