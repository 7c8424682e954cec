/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulation found. */
#ifndef PEN_SIM_RESULT_H
#define PEN_SIM_RESULT_H

#include "sim/job.h"

/* Sizes are means. Counts from `ranks` to `failures` are of the simulated nodes only. */
typedef struct PenSimResult {
    /* Computed from the order, not simulated. */
    uint64_t n_samples, n_blocks, n_shards, block_samples, pack_bytes, block_bytes;
    uint64_t shuffle_buffer;      /* samples that are mixed */
    uint32_t fetch_unit;          /* what one request has: PEN_FETCH_* of loader.h */
    uint64_t memory_wanted_bytes; /* for requests of entire blocks; 0: they are, or cannot be */
    uint64_t steps;               /* batches of a rank per epoch */
    /* Requests of all nodes in the first epoch. A cache has what was fetched once. */
    uint64_t block_fetches, part_fetches, index_fetches; /* entire blocks; parts; block indexes */
    double requests_per_block; /* all of these for the samples of a block */
    double amplification;      /* bytes fetched divided by the bytes of the samples delivered */
    int32_t is_exact;          /* 0: estimated from some of the ranks, or of the batches */
    double second_epoch;       /* amplification of the second epoch with the cache; -1: no cache */
    /* Simulated. */
    double seconds;                              /* simulated time */
    uint32_t followed;                           /* nodes that were simulated */
    uint64_t ranks, batches, samples;            /* of these nodes */
    double samples_per_s;                        /* of all nodes, from their first batch on */
    double first_batch_p50_s, first_batch_max_s; /* since the start of the program */
    uint64_t late;                               /* ranks without a batch at the end */
    double stall_share, stall_share_worst; /* waiting time after the first batch: mean, worst */
    double longest_stall_s;
    double node_bytes_per_s, node_peak_bytes_per_s; /* mean of all nodes; highest in a second */
    double prefix_per_s, prefix_peak_per_s; /* requests per prefix: mean; highest in a second */
    double manifest_peak_per_s;             /* requests for the manifest: highest in a second */
    uint64_t requests;                      /* all */
    uint64_t block_requests;                /* for blocks and parts of them */
    uint64_t index_requests;                /* for block indexes */
    uint64_t tails;                         /* for shard indexes */
    uint64_t hits;                          /* blocks and parts of them from the cache */
    uint64_t retries, hedges, hedges_won, throttles, failures;
    uint64_t memory_bytes, memory_room; /* blocks of a rank: most held; limit */
    double requests_per_epoch, dollars_per_epoch, dollars_per_million;
} PenSimResult;

/* What a simulated job has come to; what was counted is in `ret` already. */
int pen__sim_result(PenSimJob *job, PenSimResult *ret, PenError *reterr);

#endif
