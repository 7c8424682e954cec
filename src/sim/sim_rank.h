/* SPDX-License-Identifier: Apache-2.0 */
/* One rank: it opens the pack, fetches blocks ahead as the window says, makes batches of them and
 * computes on them. */
#ifndef PEN_SIM_SIM_RANK_H
#define PEN_SIM_SIM_RANK_H

#include "sim/sim_job.h"

enum { PEN_SIM_SHARDS = 128 }; /* indexes that a reader keeps, by number */

typedef struct PenSimRank {
    PenSimJob *job;
    uint32_t rank, node;
    PenTransport *t;
    PenPolicy *policy;
    PenAhead ahead;
    uint32_t in_flight, fetching;
    uint32_t shards[PEN_SIM_SHARDS]; /* number + 1 */
    struct PenSimFetch *fetches;
    bool opened;
    /* A batch is made (read, decoded), waits in a slot, is computed on. */
    uint64_t made;    /* samples */
    uint64_t made_ns; /* when the last of them is, or will be, made */
    bool making, computing;
    uint64_t ready; /* batches that wait to be computed on */
    PenTimer make, compute;
    /* Counted. */
    uint64_t batches;           /* given out */
    uint64_t first_ns, last_ns; /* when */
    uint64_t waiting_ns, longest_ns, wait_from_ns;
    uint64_t hits, tails;
} PenSimRank;

int pen__sim_rank_init(PenSimRank *k, PenSimJob *job, uint32_t rank, PenSimLink *link,
                       PenError *reterr);
void pen__sim_rank_start(PenSimRank *k, uint64_t at_ns);
void pen__sim_rank_fini(PenSimRank *k); /* before the network; a zeroed one is fine */

#endif
