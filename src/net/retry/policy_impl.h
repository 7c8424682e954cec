/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the policy share. Nobody else includes it but tests that look inside. */
#ifndef PEN_NET_RETRY_POLICY_IMPL_H
#define PEN_NET_RETRY_POLICY_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/timing/log_bins.h"
#include "net/retry/policy.h"

#define PEN_NS_PER_MS 1000000ull
#define PEN_NS_PER_S 1000000000ull

/* ---- how often it is tried again (tokens.c) ---- */

enum { PEN_COST_RETRY = 5, PEN_COST_TIMEOUT = 14, PEN_TOKENS_PER_S = 5 };

typedef struct PenRate {
    uint32_t bucket, tokens;
    uint64_t refilled_ns; /* up to here the seconds have been paid out */
    uint32_t failed;      /* attempts since the last success */
    uint64_t success_ns;
} PenRate;

void pen__rate_init(PenRate *rate, const PenPolicySettings *s, uint64_t now_ns);
bool pen__rate_take(PenRate *rate, uint32_t cost, uint64_t now_ns);
uint64_t pen__rate_when(const PenRate *rate, uint32_t cost); /* time alone will have paid for it */
/* Gives back what the attempt had paid, or 1. True when it ends an outage: others need not sleep.
 */
bool pen__rate_success(PenRate *rate, uint32_t paid, uint64_t now_ns);
void pen__rate_failure(PenRate *rate);
/* Full jitter: evenly from [0, min(cap, base * 2^n)]. */
uint64_t pen__backoff_ns(uint32_t base_ms, uint32_t cap_ms, unsigned n, uint64_t random);
/* How long to wait where the server said so; never over the cap. */
uint64_t pen__retry_after_ns(uint64_t asked_ms, uint32_t base_ms, uint32_t cap_ms, uint64_t random);

/* ---- how many at once (pace.c) ---- */

typedef enum PenPaceMode {
    PEN_PACE_FAST, /* it doubles */
    PEN_PACE_HOLD, /* it stays, and what that brings is measured */
    PEN_PACE_UP,   /* a greater number is tried */
    PEN_PACE_DOWN
} PenPaceMode;

typedef struct PenPace {
    uint32_t most, limit;   /* attempts at once */
    PenPaceMode mode, last; /* the direction that did good last */
    uint32_t from;          /* what a trial is compared with */
    double base;            /* and what that brought, bytes a second; 0: not known */
    uint32_t hold, calm;    /* rounds until the next trial; after one that fails */
    /* The round: answers that are not counted yet, that came, that said "slow down". */
    uint32_t skip, n, refused;
    uint32_t begun; /* the limit at its beginning */
    uint64_t start_ns, work;
    /* Being told to slow down. */
    uint32_t throttled;             /* how many of the last answers did, of 65,536 */
    uint32_t in_second, per_second; /* answers: in this one, in the last */
    uint64_t second_ns, throttled_ns;
    uint32_t safe;   /* below this the limit grows with each success */
    uint32_t worked; /* successes since it was last cut */
    uint64_t cut_ns; /* an attempt from before does not cut it again */
} PenPace;

void pen__pace_init(PenPace *pace, uint32_t most, uint64_t now_ns);
void pen__pace_anew(PenPace *pace); /* what was known may hold no longer */
/* `wanted`: others wait for its place. */
void pen__pace_success(PenPace *pace, uint64_t bytes, bool wanted, uint64_t now_ns);
void pen__pace_throttle(PenPace *pace, uint64_t started_ns, uint64_t now_ns);
void pen__pace_idle(PenPace *pace);               /* places are free and nobody wants them */
bool pen__pace_is_throttled(const PenPace *pace); /* to slow down, lately */

/* ---- how long answers take (hedge.c) ---- */

enum { PEN_TAIL_LAST = 1000, PEN_TAIL_LEAST = 50, PEN_TAIL_CLASSES = 12 };

/* The last answers of one class of sizes: a ring of bins, and how many fall into each. */
typedef struct PenTail {
    uint8_t ring[PEN_TAIL_LAST];
    uint16_t count[PEN_LOG_BINS];
    uint16_t n, at;
} PenTail;

unsigned pen__tail_class(size_t bytes);
void pen__tail_add(PenTail *tail, uint64_t ns);
/* 0 while too few are known. */
uint64_t pen__tail_p99(const PenTail *tail);
uint64_t pen__tail_median(const PenTail *tail);

/* ---- operations ---- */

typedef struct PenOpList {
    PenOperation *first, *last;
} PenOpList;

enum { PEN_LINK_ALL, PEN_LINK_QUEUE };

typedef struct PenAttempt {
    PenOperation *op;
    PenTransfer *transfer; /* NULL: not under way */
    PenHttpRequest request;
    uint64_t started_ns;
} PenAttempt;

struct PenOperation {
    PenPolicy *policy;
    PenOperationSpec spec;
    PenOperation *prev[2], *next[2];
    PenOpList *queue;      /* the one it stands in, or NULL */
    PenTimer timer;        /* the end of its sleep; while an attempt is under way, a look at it */
    PenAttempt try[2];     /* the attempt and its hedge */
    void *spare;           /* what the hedge reads into */
    uint64_t late_ns;      /* from then on the attempt is */
    uint64_t look_ns;      /* from one look at it to the next; 0: only when it is late */
    uint64_t seen, enough; /* bytes that had come at the last one; that are to come until the next
                            */
    uint64_t began_ns, end_ns;
    uint64_t not_before_ns; /* as a Retry-After said */
    unsigned attempts;      /* prepared and sent, hedges apart */
    unsigned failed;        /* for the back-off */
    uint32_t cost, paid;    /* tokens: for its next attempt, for the last one that cost any */
    uint8_t causes;         /* of AGAIN, seen */
    bool busy;              /* sleeps because prepare was not ready */
    bool fresh;             /* the next attempt wants a connection of its own */
    bool was_stale;         /* once: a kept connection had been closed */
    PenError last;          /* status 0: none yet */
};

struct PenPolicy {
    PenTransport *t;
    PenPolicySettings s;
    PenRate rate;
    PenPace pace;
    PenTail tails[PEN_TAIL_CLASSES];
    uint32_t hedge_credit; /* hundredths of a hedge */
    PenOpList all;         /* in order of their beginning, so of their end */
    /* Those that wait for a slot: hedges, retries that cost nothing (more), retries, first ones. */
    PenOpList slow, at_once, again, wanted;
    PenOpList asleep;
    PenTimer pump, expiry;
    uint32_t in_flight;
    _Atomic uint64_t ops, attempts, retries, throttles, hedges, hedges_won, failures, bytes;
    _Atomic uint64_t seen_in_flight, seen_limit;
};

static inline uint64_t pen__policy_now(PenPolicy *p)
{
    return p->t->class_->now_ns(p->t);
}

static inline uint64_t pen__policy_random(PenPolicy *p)
{
    return p->t->class_->random(p->t);
}

static inline void pen__policy_count(_Atomic uint64_t *n, uint64_t more)
{
    atomic_fetch_add_explicit(n, more, memory_order_relaxed);
}

/* ---- operations (operation.c) ---- */

void pen__op_link(PenOpList *list, PenOperation *op, int k);
void pen__op_queue(PenOperation *op, PenOpList *list); /* at the end; out of any other first */
void pen__op_unqueue(PenOperation *op);
void pen__op_free(PenOperation *op); /* cancels what is under way */
/* What became of it so far, as the error of giving up: "name: <what> after ...; last: ...". */
void pen__op_describe(const PenOperation *op, const char *what, PenError *ret);
/* Both end with a call of the caller's; the operation is gone. */
void pen__op_finish(PenOperation *op, int r, const PenError *err);
void pen__op_give_up(PenOperation *op);

void pen__attempt_cancel(PenAttempt *a); /* accepts one not under way */
void pen__hedge_drop(PenOperation *op);  /* none wanted any more; one under way is cancelled */
void pen__hedge_free_spare(PenOperation *op);
void pen__policy_set_in_flight(PenPolicy *p, uint32_t n);

/* ---- attempts (attempt.c) ---- */

/* Starts what may start, later, but no later than then: what comes from a caller's call is not
 * answered from within. */
void pen__policy_pump_at(PenPolicy *p, uint64_t at_ns);

/* ---- the second request (hedge.c) ---- */

void pen__hedge_earn(PenPolicy *p); /* a request that is no hedge has been made */
/* An attempt has begun. When to look at it; 0: never. */
uint64_t pen__hedge_arm(PenOperation *op);
/* True: a hedge is wanted. Else when to look again; 0: never. */
bool pen__hedge_look(PenOperation *op, uint64_t *ret_next_ns);
/* Its turn has come, a slot is free: makes the request, and memory for its answer. */
bool pen__hedge_prepare(PenOperation *op);
void pen__hedge_pay(PenPolicy *p); /* it has been sent */
/* The hedge's answer is the one: moves its bytes. */
void pen__hedge_take(PenOperation *op, uint64_t bytes);
void pen__hedge_learn(PenAttempt *a); /* how long it took, or has taken so far */

#endif
