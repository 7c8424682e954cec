/* SPDX-License-Identifier: Apache-2.0 */
/* The window of a pass: which blocks are needed, in the order in which they are needed first, and
 * how far ahead of the batches they are asked for. The order is known, so nothing is guessed: a
 * block stays until its last sample has been taken, and goes then.
 *
 * No threads, no clock, no reading: the loader's threads and the simulation drive the same code.
 * Not thread-safe. */
#ifndef PEN_LOAD_AHEAD_H
#define PEN_LOAD_AHEAD_H

#include "load/epoch/order.h"

typedef enum PenAheadState {
    PEN_AHEAD_ASKED, /* given out by pen__ahead_want; on its way */
    PEN_AHEAD_HERE,
    PEN_AHEAD_FAILED
} PenAheadState;

typedef struct PenAheadBlock {
    uint64_t number;
    uint64_t bytes; /* it counts for so many; more than it has until it is here */
    uint64_t last;  /* which of the rank's samples of this pass is the last to need it */
    uint32_t uses;  /* samples the cursor has seen that need it and are not done */
    PenAheadState state;
    void *data;                 /* the caller's: what was fetched */
    void *waiting;              /* the caller's: who waits for it */
    struct PenAheadBlock *link; /* the caller's */
    struct PenAheadBlock *chain;
    struct PenAheadBlock *newer, *older; /* among those that nobody seen needs */
    uint8_t finished;                    /* in which of the two lists */
} PenAheadBlock;

typedef struct PenAheadList {
    PenAheadBlock *newest, *oldest;
} PenAheadList;

typedef struct PenAheadPlan {
    uint64_t block_samples, n_samples; /* of the pack */
    uint64_t first;                    /* sample of the pack that index 0 of the order is */
    const uint64_t *subset;            /* or a list of them; must outlive it */
    uint64_t room;                     /* bytes of blocks that are here or on their way */
    bool keeps; /* finished blocks stay while there is room: all of them fit, for the next pass */
    uint64_t (*block_bytes)(void *ctx, uint64_t number); /* at most */
    /* Its data is not needed any more. Only of blocks with data. */
    void (*drop)(void *ctx, const PenAheadBlock *b);
    void *ctx;
} PenAheadPlan;

typedef struct PenAhead {
    PenAheadPlan plan;
    PenOrder order;
    PenSplit split;
    uint64_t n;      /* samples of this rank in the pass */
    uint64_t cursor; /* samples seen: those before it have their blocks asked for */
    uint64_t done;   /* samples done */
    uint64_t bytes, peak_bytes;
    uint64_t n_blocks;
    PenAheadBlock **table;
    uint64_t mask;
    PenAheadList finished; /* not needed again in this pass */
    PenAheadList later;    /* needed again behind the cursor */
    uint64_t asked;        /* blocks given out in all passes */
} PenAhead;

int pen__ahead_init(PenAhead *a, const PenAheadPlan *plan, PenError *reterr);
void pen__ahead_fini(PenAhead *a); /* drops all that is here; a zeroed one is fine */

/* A pass begins. What is here or on its way stays, as far as there is room. */
void pen__ahead_begin(PenAhead *a, const PenOrder *order, const PenSplit *split, uint64_t steps);

/* The next block to be fetched, PEN_AHEAD_ASKED; NULL when there is no room for it yet, nothing is
 * left, or the call has looked at many samples and is to be made again (then the cursor moved). */
int pen__ahead_want(PenAhead *a, PenAheadBlock **ret, PenError *reterr);
/* What follows it in the pack and is to be fetched as well, when the cursor meets it next: for
 * joining requests. NULL when it is another. */
int pen__ahead_want_next(PenAhead *a, const PenAheadBlock *after, PenAheadBlock **ret,
                         PenError *reterr);
/* It is here, and so large; or it could not be had. */
void pen__ahead_arrived(PenAhead *a, PenAheadBlock *b, void *data, uint64_t bytes);
void pen__ahead_failed(PenAhead *a, PenAheadBlock *b);
/* Of a failed one that is needed still: it is asked for again. */
void pen__ahead_again(PenAheadBlock *b);

PenAheadBlock *pen__ahead_at(const PenAhead *a, uint64_t number); /* NULL: not asked for */
/* So few samples ahead that blocks which are needed later make room, too. */
bool pen__ahead_is_starved(const PenAhead *a);
/* A sample that needed it is done. */
void pen__ahead_used(PenAhead *a, PenAheadBlock *b);

/* Number of the pack's block that sample i of this rank lies in. */
uint64_t pen__ahead_block(const PenAhead *a, uint64_t i);

#endif
