/* SPDX-License-Identifier: Apache-2.0 */
/* One rank: it opens the pack, fetches parts of blocks as the schedule says, makes batches of them
 * and computes on them. */
#ifndef PEN_SIM_RANK_H
#define PEN_SIM_RANK_H

#include "pack/reader/reader.h"
#include "sim/job.h"

enum { PEN_SIM_SHARDS = PEN_REMOTE_SHARDS }; /* indexes that a reader keeps, by number */

typedef struct PenSimSlot {
    uint32_t left;    /* samples that are not made */
    uint64_t made_ns; /* when its last one is */
} PenSimSlot;

typedef struct PenSimRank {
    PenSimJob *job;
    uint32_t rank;
    PenTransport *t;
    PenPolicy *policy;
    PenSchedule schedule;
    PenSimIndexes indexes;
    PenSimCache *cache;                       /* of its node */
    uint32_t fetching;                        /* parts on their way */
    uint32_t shards[PEN_SIM_SHARDS];          /* number + 1 */
    struct PenSimFetch *fetches, *last_fetch; /* in the order in which they began */
    bool opened;
    bool warm; /* the first batch has its parts: so many, and so many came */
    uint64_t first_blocks, landed;
    /* Samples are given places in batches, in order; made when their block is here, in any order;
     * batches are computed on in order. */
    uint64_t given;    /* samples */
    uint64_t released; /* batches whose slot is free again */
    uint64_t made_ns;  /* when the last sample that could be made is, or will be, made */
    bool computing;
    uint32_t n_slots;
    PenSimSlot *slots;
    uint32_t *next; /* of each place in the slots: which place waits for the same part, + 1 */
    PenTimer make, compute;
    /* Counted. */
    uint64_t batches;           /* given out */
    uint64_t first_ns, last_ns; /* when */
    uint64_t waiting_ns, longest_ns, wait_from_ns;
    uint64_t hits; /* parts from the cache */
    uint64_t blocks, block_indexes,
        tails; /* requests: for parts, for indexes of blocks, of shards */
} PenSimRank;

int pen__sim_rank_init(PenSimRank *k, PenSimJob *job, uint32_t rank, PenSimLink *link,
                       PenSimCache *cache, PenError *reterr);
void pen__sim_rank_start(PenSimRank *k, uint64_t at_ns);
void pen__sim_rank_fini(PenSimRank *k); /* before the network; a zeroed one is fine */

static inline uint64_t pen__sim_rank_now(const PenSimRank *k)
{
    return k->t->class_->now_ns(k->t);
}

/* batch.c */
int pen__sim_batch_init(PenSimRank *k, PenError *reterr);
void pen__sim_batch_fini(PenSimRank *k);
void pen__sim_batch_arrived(PenSimRank *k, PenBlockPart *b); /* for those that wait for it */
bool pen__sim_batch_place(PenSimRank *k); /* samples that the window has seen; true: some */

#endif
