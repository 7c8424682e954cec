/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of one kind that threads share. A thread that needs more than is left waits until others
 * have released some.
 *
 * Lock rule: the lock of lock.h guards all members. It is held for every function but init and
 * fini; pen__budget_take releases it while it waits. A thread that waits may hold bytes of another
 * budget, but none of this one. */
#ifndef PEN_LOAD_BUDGET_H
#define PEN_LOAD_BUDGET_H

#include <stdint.h>

#include "load/lock.h"

typedef struct PenBudget {
    PenLoadLock *lock;
    pthread_cond_t released;
    uint64_t limit;
    uint64_t memory; /* of the loader, for messages */
    uint64_t used, peak;
    uint32_t waiting; /* threads */
    bool over;        /* one has exceeded the limit; see below */
} PenBudget;

int pen__budget_init(PenBudget *b, PenLoadLock *lock, uint64_t limit, uint64_t memory,
                     PenError *reterr);
void pen__budget_fini(PenBudget *b);

/* PEN_END: the loader is being closed. PEN_E_LIMIT: more than the limit; `what` takes them. With
 * `ret_over` it exceeds the limit instead of waiting, if no one else does, and sets it. */
int pen__budget_take(PenBudget *b, uint64_t bytes, bool *ret_over, const char *what,
                     PenError *reterr);
/* `over` is what pen__budget_take has set. */
void pen__budget_release(PenBudget *b, uint64_t bytes, bool over);
void pen__budget_wake(PenBudget *b); /* all that wait, after the flags of the lock changed */

#endif
