/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a pass: which blocks a rank needs, in the order of their first use, and which of
 * them fit in memory. The order of the samples is known, so nothing is guessed: a block stays until
 * its last sample is done and is dropped then.
 *
 * No threads, no clock, no reading: the threads of a loader and the simulation use the same code.
 *
 * Lock rule: it has no lock. The caller serialises all calls. */
#ifndef PEN_LOAD_PREFETCH_SCHEDULE_H
#define PEN_LOAD_PREFETCH_SCHEDULE_H

#include "load/epoch/order.h"

typedef enum PenFetchState {
    PEN_FETCH_REQUESTED, /* returned by pen__schedule_next; on its way */
    PEN_FETCH_ARRIVED,
    PEN_FETCH_FAILED
} PenFetchState;

typedef struct PenScheduledBlock {
    uint64_t number;
    uint64_t bytes; /* that it counts for; an upper bound until it has arrived */
    uint64_t last;  /* which of the rank's samples of this pass is the last that needs it */
    uint32_t uses;  /* samples before the cursor that need it and are not done */
    PenFetchState state;
    void *data;                     /* the caller's: what was fetched */
    void *waiting;                  /* the caller's: who waits for it */
    struct PenScheduledBlock *link; /* the caller's */
    struct PenScheduledBlock *chain;
    struct PenScheduledBlock *newer, *older; /* among those that no scheduled sample needs */
    uint8_t finished;                        /* in which of the two lists */
} PenScheduledBlock;

typedef struct PenScheduledList {
    PenScheduledBlock *newest, *oldest;
} PenScheduledList;

typedef struct PenSchedulePlan {
    uint64_t block_samples, n_samples; /* of the pack */
    uint64_t first;                    /* sample of the pack that index 0 of the order is */
    /* Or a function for what has no inverse: the block of an index of the order. */
    uint64_t (*block)(const void *of, uint64_t epoch, uint64_t index);
    const void *of;
    uint64_t limit_bytes; /* of blocks that have arrived or are on their way */
    bool keeps; /* all blocks fit: finished ones stay for the next pass as long as they do */
    uint64_t (*block_bytes)(void *ctx, uint64_t number); /* an upper bound */
    /* Frees a block's data. Called only for blocks with data. */
    void (*drop)(void *ctx, const PenScheduledBlock *b);
    void *ctx;
} PenSchedulePlan;

typedef struct PenSchedule {
    PenSchedulePlan plan;
    PenOrder order;
    PenSplit split;
    uint64_t n;           /* samples of this rank in the pass */
    uint64_t first_batch; /* and in its first batch */
    uint64_t cursor;      /* samples scheduled: the blocks of those before it have been requested */
    uint64_t done;        /* samples done */
    uint64_t bytes, peak_bytes;
    uint64_t n_blocks;
    PenScheduledBlock **table;
    uint64_t mask;
    PenScheduledList finished; /* not needed again in this pass */
    PenScheduledList later;    /* needed again by samples after the cursor */
    uint64_t requested;        /* blocks, in all passes */
} PenSchedule;

int pen__schedule_init(PenSchedule *s, const PenSchedulePlan *plan, PenError *reterr);
void pen__schedule_fini(PenSchedule *s); /* drops all blocks; a zeroed one is fine */

/* Begins a pass. Blocks that have arrived or are on their way stay as long as they fit. */
void pen__schedule_begin(PenSchedule *s, const PenOrder *order, const PenSplit *split,
                         uint64_t steps);

/* Forgets the samples of the pass that have not been scheduled. */
void pen__schedule_end(PenSchedule *s);

/* The next block to fetch, PEN_FETCH_REQUESTED. NULL when it does not fit yet, when nothing is
 * left, or when the call has stepped over many samples; the cursor has moved then: call it again.
 */
int pen__schedule_next(PenSchedule *s, PenScheduledBlock **ret, PenError *reterr);
/* The block that follows `after` in the pack, if it is the next one to fetch; else NULL. Both can
 * be fetched with one request. */
int pen__schedule_next_adjacent(PenSchedule *s, const PenScheduledBlock *after,
                                PenScheduledBlock **ret, PenError *reterr);
/* The block has arrived and has `bytes`; or its fetch has failed. */
void pen__schedule_arrived(PenSchedule *s, PenScheduledBlock *b, void *data, uint64_t bytes);
void pen__schedule_failed(PenSchedule *s, PenScheduledBlock *b);
/* A failed block that is still needed is requested again. */
void pen__schedule_retry(PenScheduledBlock *b);

PenScheduledBlock *pen__schedule_find(const PenSchedule *s, uint64_t number); /* NULL: none */
bool pen__schedule_has_first_batch(const PenSchedule *s); /* its blocks have been requested */
/* So few samples are scheduled that blocks which are needed later are dropped, too. */
bool pen__schedule_is_starved(const PenSchedule *s);
/* A sample that needed the block is done. */
void pen__schedule_sample_done(PenSchedule *s, PenScheduledBlock *b);

/* Number of the pack's block that holds sample i of this rank. */
uint64_t pen__schedule_block_of(const PenSchedule *s, uint64_t i);

#endif
