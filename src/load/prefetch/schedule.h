/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a pass: what a rank fetches, in the order of its first use, and how much of it
 * fits in memory. The order of the samples is known, so nothing is guessed. Samples of one block
 * that are needed within `horizon` samples come together: as an entire block, or as the runs of it
 * that hold them. They stay until the last of them is done and are dropped then. Memory decides the
 * horizon, and never the order.
 *
 * No threads, no clock, no reading: the threads of a loader and the simulation use the same code.
 *
 * Lock rule: it has no lock. The caller serialises all calls. */
#ifndef PEN_LOAD_PREFETCH_SCHEDULE_H
#define PEN_LOAD_PREFETCH_SCHEDULE_H

#include "load/epoch/split.h"

typedef enum PenFetchState {
    PEN_FETCH_PLANNED,
    PEN_FETCH_REQUESTED, /* returned by pen__schedule_next; on its way */
    PEN_FETCH_ARRIVED,
    PEN_FETCH_FAILED
} PenFetchState;

typedef struct PenBlockNeeds PenBlockNeeds;

/* Samples of a block that come with one request. */
typedef struct PenBlockPart {
    PenBlockNeeds *of;
    uint64_t block;
    uint32_t first, n;   /* of the block's samples */
    bool is_block;       /* all of it, which is read and checked at once */
    bool is_resident;    /* an entire block that stays for the next pass */
    uint64_t bytes;      /* that it counts for; an estimate until it has arrived */
    uint32_t uses;       /* samples before the cursor that need it and are not done */
    uint32_t uses_ahead; /* samples behind it that will */
    PenFetchState state;
    void *data;                         /* the caller's: what was fetched */
    void *waiting;                      /* the caller's: who waits for it */
    struct PenBlockPart *link;          /* the caller's */
    struct PenBlockPart *next, *before; /* among all parts */
    struct PenBlockPart *newer, *older; /* in this list: */
    struct PenBlockPartList *list;
} PenBlockPart;

typedef struct PenBlockPartList {
    PenBlockPart *newest, *oldest;
} PenBlockPartList;

/* Where a sample of the order lies. */
typedef struct PenSampleSpot {
    uint64_t block;
    uint32_t sample, n_samples; /* in the block, and of it */
} PenSampleSpot;

typedef struct PenSchedulePlan {
    uint64_t horizon;        /* samples of this rank, 1 or more */
    bool begins_apart;       /* a pass begins with what the first batch needs alone */
    uint64_t limit_bytes;    /* of parts that have arrived or are on their way */
    uint64_t resident_bytes; /* entire blocks up to so many bytes stay once they were fetched */
    /* The spot of an index of the order. */
    PenSampleSpot (*spot)(const void *of, uint64_t epoch, uint64_t index);
    const void *of;
    /* What n samples of a block have, about; of all of them an upper bound. */
    uint64_t (*bytes)(void *ctx, uint64_t block, uint32_t n, bool all);
    /* Frees a part's data. Called only for parts with data. */
    void (*drop)(void *ctx, const PenBlockPart *part);
    void *ctx;
} PenSchedulePlan;

typedef struct PenNeed PenNeed;

typedef struct PenSchedule {
    PenSchedulePlan plan;
    PenOrder order;
    PenSplit split;
    uint64_t n;           /* samples of this rank in the pass */
    uint64_t first_batch; /* and in its first batch */
    uint64_t taken;       /* samples whose parts the caller knows */
    uint64_t cursor;      /* samples scheduled: the parts of those before it have been requested */
    uint64_t seen;        /* samples whose spots are known */
    uint64_t done;        /* samples done */
    uint64_t next_step;   /* of the pass, behind the one that is being scanned */
    uint32_t next_index;  /* in that one */
    PenPassStep step;
    PenNeed *needs; /* of the samples from `taken` to `seen`, at their number & needs_mask */
    uint64_t needs_mask;
    PenBlockNeeds **table, *unused; /* by block */
    uint64_t mask;
    uint64_t *sorted; /* the needs of one block */
    uint64_t n_parts, bytes, peak_bytes, resident_bytes;
    PenBlockPart *parts;       /* all */
    PenBlockPartList finished; /* resident, and not needed now */
    PenBlockPartList later;    /* needed by samples behind the cursor */
    uint64_t requested;        /* parts */
} PenSchedule;

int pen__schedule_init(PenSchedule *s, const PenSchedulePlan *plan, PenError *reterr);
void pen__schedule_fini(PenSchedule *s); /* drops all parts; a zeroed one is fine */

/* Begins a pass. Resident blocks stay. */
void pen__schedule_begin(PenSchedule *s, const PenOrder *order, const PenSplit *split,
                         uint64_t steps);

/* Forgets the samples of the pass that have not been scheduled. */
void pen__schedule_end(PenSchedule *s);

/* The next part to fetch, PEN_FETCH_REQUESTED. NULL when it does not fit yet, when nothing is left,
 * or when the call has stepped over many samples: if pen__schedule_progress has changed, call it
 * again. */
int pen__schedule_next(PenSchedule *s, PenBlockPart **ret, PenError *reterr);
static inline uint64_t pen__schedule_progress(const PenSchedule *s)
{
    return s->cursor + s->seen;
}
/* The block that follows the block `after` in the pack, if all of it is the next part to fetch;
 * else NULL. Both can be fetched with one request. */
int pen__schedule_next_adjacent(PenSchedule *s, const PenBlockPart *after, PenBlockPart **ret,
                                PenError *reterr);
/* The part has arrived and has `bytes`; or its fetch has failed. */
void pen__schedule_arrived(PenSchedule *s, PenBlockPart *part, void *data, uint64_t bytes);
void pen__schedule_failed(PenSchedule *s, PenBlockPart *part);
/* A failed part that is still needed is requested again. */
void pen__schedule_retry(PenBlockPart *part);

bool pen__schedule_has_first_batch(const PenSchedule *s); /* its parts have been requested */
/* So few samples are scheduled that parts which are needed later are dropped, too. */
bool pen__schedule_is_starved(const PenSchedule *s);
/* So many samples were seen and not taken that no further ones can be. */
bool pen__schedule_is_full(const PenSchedule *s);
/* The part of the next sample, which is scheduled. */
PenBlockPart *pen__schedule_take(PenSchedule *s);
/* A sample that needed the part is done. */
void pen__schedule_sample_done(PenSchedule *s, PenBlockPart *part);

#endif
