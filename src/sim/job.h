/* SPDX-License-Identifier: Apache-2.0 */
/* A job that is simulated: what its parts share. */
#ifndef PEN_SIM_JOB_H
#define PEN_SIM_JOB_H

#include "load/prefetch/schedule.h"
#include "net/retry/policy.h"
#include "sim/store.h"

/* Which blocks a node has in its cache when the second epoch begins: those it fetched first. */
typedef struct PenSimCache {
    uint64_t blocks; /* that fit; 0: there is none */
    PenOrder first;  /* the order of the first epoch */
    uint32_t nodes, ranks;
} PenSimCache;

bool pen__sim_cache_has(const PenSimCache *c, uint64_t block, uint32_t node);

typedef struct PenSimJob {
    const PenSimSettings *s;
    PenSimPack pack;
    PenSimStore store;
    PenSimNet *net;
    PenSimCache cache;
    PenOrder order; /* of the epoch that is simulated */
    uint64_t steps; /* batches of a rank */
    uint64_t window_bytes;
    uint64_t start_ns;
    struct PenSimRank *ranks;
    PenSimLink **links;        /* of the nodes */
    uint32_t world;            /* ranks of all nodes */
    uint32_t followed;         /* nodes that are simulated */
    double weight;             /* for so many each of them stands */
    uint64_t n_ranks, n_built; /* of those nodes */
    int r;                     /* of the first thing that went wrong */
    PenError err;
} PenSimJob;

int pen__sim_check(const PenSimSettings *s, PenError *reterr); /* are they in their ranges? */
/* PEN_E_INVALID: this setting is not. */
int pen__sim_refuse(PenError *reterr, const char *what, double found, const char *expected);

#endif
