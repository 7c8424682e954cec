/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetched blocks of a remote pack, or runs of them. The schedule says which parts to fetch; they
 * arrive in any order. A sample that is assigned to a batch waits as a ticket for its part, so that
 * samples whose parts have arrived go first.
 *
 * Lock rule: the lock of lock.h guards all members, and the pass that the schedule follows. It is
 * held for every function but new and free. The data of a part that has arrived is read without the
 * lock, by threads whose samples are in it: it stays until pen__blocks_sample_done. */
#ifndef PEN_LOAD_PREFETCH_BLOCKS_H
#define PEN_LOAD_PREFETCH_BLOCKS_H

#include "load/epoch/pass.h"
#include "load/lock.h"
#include "load/prefetch/schedule.h"
#include "load/prefetch/turns.h"
#include "load/task.h"

/* A sample that has its place in a batch, and waits for its part or for a reader. */
typedef struct PenTicket {
    struct PenTicket *next;
    PenAssignment to;
    PenBlockPart *from;
} PenTicket;

typedef struct PenBlocks {
    PenLoadLock *lock;
    const PenLoadPlan *plan;
    PenEpochPass *pass;
    PenSchedule schedule; /* data of its parts: PenBlock, or PenError of failed ones */
    PenBlockPart *failed; /* and still needed: to be fetched again */
    PenTurns turns;
    pthread_cond_t fetchers; /* wait for a part to fetch */
    PenTicket *tickets;      /* all of them */
    PenTicket *free_tickets;
    PenTicket *arrived, **arrived_end; /* their parts have arrived, or have failed */
} PenBlocks;

int pen__blocks_new(const PenLoadPlan *plan, PenLoadLock *lock, PenEpochPass *pass, PenBlocks **ret,
                    PenError *reterr);
void pen__blocks_free(PenBlocks **blocks); /* when no thread uses it; accepts NULL */
void pen__blocks_end(PenBlocks *b);        /* no more samples of this pass are scheduled */
void pen__blocks_begin(PenBlocks *b);      /* the pass has begun */
void pen__blocks_clear(PenBlocks *b);      /* frees all tickets */
void pen__blocks_wake(PenBlocks *b);       /* all fetchers, after the flags of the lock changed */

/* ---- for readers ---- */

bool pen__blocks_can_assign(const PenBlocks *b); /* the next sample of the pass? */
void pen__blocks_assign(PenBlocks *b, const PenAssignment *what);
bool pen__blocks_have_arrived(const PenBlocks *b); /* for any ticket */
/* Fills in a task for the next ticket whose part has arrived. False: it is fetched again;
 * the task is unchanged. */
bool pen__blocks_take(PenBlocks *b, PenTask *task, PenBlockPart **ret_from);
void pen__blocks_sample_done(PenBlocks *b, PenBlockPart *from); /* the task has its bytes */

/* ---- for fetchers ---- */

/* Where a block of the schedule lies. */
typedef struct PenBlockPlace {
    PenPack *pack;
    uint64_t number;        /* in the pack */
    uint64_t block_samples; /* of the pack */
} PenBlockPlace;
PenBlockPlace pen__blocks_place(const PenLoadPlan *plan, uint64_t number);

PenBlockPart *pen__blocks_next(PenBlocks *b); /* to fetch; NULL: none now */
/* The fetch of a part has ended, with `block` or with an error. */
void pen__blocks_fetched(PenBlocks *b, PenBlockPart *which, int status, PenBlock *block,
                         const PenError *error);

#endif
