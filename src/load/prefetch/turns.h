/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the first requests of a pass. Shards are opened in any order, and without turns the
 * first ones to be open would send all their requests before the others, needed or not. So until
 * the first batch has its blocks (the pass is warm), requests are sent in the order of need.
 *
 * Lock rule: the lock of lock.h guards all members. It is held for every function but init and
 * fini; pen__turns_wait releases it while it waits. */
#ifndef PEN_LOAD_PREFETCH_TURNS_H
#define PEN_LOAD_PREFETCH_TURNS_H

#include <stdint.h>

#include "load/lock.h"

typedef struct PenTurns {
    PenLoadLock *lock;
    pthread_cond_t changed;
    bool warm;           /* the first batch has its blocks */
    uint64_t n;          /* turns taken so far */
    uint64_t current;    /* whose turn it is */
    uint64_t n_before;   /* turns taken in passes before */
    uint64_t n_first;    /* requests for blocks of the first batch; 0: not all are made */
    uint64_t n_answered; /* requests of this pass */
} PenTurns;

int pen__turns_init(PenTurns *t, PenLoadLock *lock); /* negative: no memory */
void pen__turns_fini(PenTurns *t);
void pen__turns_begin(PenTurns *t); /* a pass */
void pen__turns_wake(PenTurns *t);  /* all that wait, after the flags of the lock changed */

bool pen__turns_are_pending(const PenTurns *t); /* not warm, and requests are under way */
uint64_t pen__turns_take(PenTurns *t);
void pen__turns_wait(PenTurns *t, uint64_t mine); /* for one's turn, which then ends */
/* A request was answered; `all_requested`: all blocks of the first batch have been requested. True:
 * threads that wait for blocks to fetch are to check again. */
bool pen__turns_answered(PenTurns *t, bool all_requested);

#endif
