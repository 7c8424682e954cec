/* SPDX-License-Identifier: Apache-2.0 */
/* The window of a far pack at work: blocks are fetched by many threads as the plan (ahead.h) asks
 * for them, and arrive in any order; samples whose block is not here yet wait as tickets, so that
 * those whose block is go first. All but init and run with the core's lock held. */
#ifndef PEN_LOAD_WINDOW_H
#define PEN_LOAD_WINDOW_H

#include <pthread.h>
#include <stdbool.h>

#include "load/ahead.h"
#include "load/task.h"

struct PenCore;

/* A sample that has its place in a batch, and waits for its block or for a reader. */
typedef struct PenTicket {
    struct PenTicket *next;
    struct PenSlot *slot;
    uint32_t index; /* in the batch */
    uint32_t ordinal;
    uint64_t sample;
    PenAheadBlock *from;
} PenTicket;

typedef struct PenWindow {
    PenAhead ahead;       /* data of its blocks: PenBlock, or PenError of failed ones */
    PenAheadBlock *again; /* failed and needed still */
    /* Until the first batch of a pass has its blocks, requests are sent in the order of need: */
    bool warm;              /* it has */
    uint64_t turns, turn;   /* given out, and whose it is */
    uint64_t turns_before;  /* given out in passes before */
    uint64_t first, landed; /* blocks of the first batch (0: not all asked for), and come */
    pthread_cond_t for_turn;
    pthread_cond_t for_blocks;
    PenTicket *tickets; /* all of them */
    PenTicket *free_tickets;
    PenTicket *arrived, **arrived_end; /* their blocks are here, or have failed */
} PenWindow;

int pen__window_new(struct PenCore *c, PenWindow **ret, PenError *reterr);
void pen__window_free(PenWindow **window); /* when nobody fetches any more; accepts NULL */
void pen__window_begin(struct PenCore *c); /* the pass has begun */
void pen__window_quiet(struct PenCore *c); /* takes back all tickets */
void pen__window_stop(PenWindow *w);       /* wakes all who fetch; accepts NULL */

/* Is there something to do for a reader: a sample to be given a ticket; one whose block is here? */
bool pen__window_can_give(const struct PenCore *c);
void pen__window_give(struct PenCore *c, const PenTicket *what); /* `from` is found */
bool pen__window_has_arrived(const PenWindow *w);
/* Makes a task of the next one whose block is here; *ret_from is to be given to
 * pen__window_used when it is read. False: it was none, look again. */
bool pen__window_take(struct PenCore *c, PenTask *t, PenAheadBlock **ret_from);
void pen__window_used(struct PenCore *c, PenAheadBlock *from);

void *pen__fetcher_run(void *thread);

#endif
