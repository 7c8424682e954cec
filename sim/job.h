/* SPDX-License-Identifier: Apache-2.0 */
/* A job that is simulated: what its parts share. */
#ifndef PEN_SIM_JOB_H
#define PEN_SIM_JOB_H

#include "net/retry/policy.h"
#include "sim/part.h"
#include "sim/store.h"

typedef struct PenSimJob {
    const PenSimSettings *s;
    PenSimPack pack;
    PenSimStore store;
    PenSimNet *net;
    PenSimCachePlan cache;
    PenOrderPlan plan;
    PenOrder order; /* of the epoch that is simulated */
    PenShares shares;
    uint64_t ring_bytes; /* that there would be with enough memory */
    PenFetchPlan fetch;
    uint32_t in_flight;     /* requests of a rank */
    uint64_t steps;         /* batches of a rank */
    double request_samples; /* that are needed of what one request has; mean */
    uint64_t start_ns;
    struct PenSimRank *ranks;
    PenSimLink **links; /* of the nodes: */
    PenSimCache *caches;
    uint32_t world;            /* ranks of all nodes */
    uint32_t followed;         /* nodes that are simulated */
    double weight;             /* for so many each of them stands */
    uint64_t n_ranks, n_built; /* of those nodes */
    int r;                     /* of the first thing that went wrong */
    PenError err;
} PenSimJob;

#endif
