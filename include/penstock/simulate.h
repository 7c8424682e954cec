/* SPDX-License-Identifier: Apache-2.0 */
/* What a training job of many machines would ask of an object store, simulated: the order, the
 * window and the request policy are those that training uses; network, store and training steps are
 * a model on a clock of its own. Nothing is read but, if one is given, the manifest of a pack.
 *
 * The same settings give the same result. */
#ifndef PENSTOCK_SIMULATE_H
#define PENSTOCK_SIMULATE_H

#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenSimSettings {
    uint32_t struct_size;
    /* The pack: a real one, whose sizes are taken, or numbers. */
    uint32_t block_samples; /* 32 */
    PenPack *pack;          /* NULL: the numbers */
    uint64_t n_samples;
    uint64_t sample_bytes;
    uint64_t shard_bytes; /* 512 MiB */
    /* The job. */
    uint32_t nodes, ranks;  /* ranks of each node: 1, 8 */
    uint32_t batch;         /* of a rank: 256 */
    uint32_t prefetch;      /* batches made ahead: 2 */
    uint64_t batch_bytes;   /* of tensors; 0: of images of 224 x 224 x 3 bytes */
    double step_ms;         /* that a rank computes on a batch: 100 */
    double decode_ms;       /* that a batch takes to be made of its bytes: 0 */
    uint64_t memory_bytes;  /* of a rank's loader: 2 GiB */
    uint32_t lanes, window; /* of the order; 0 = chosen from the memory */
    uint64_t cache_bytes;   /* of a node; 0: none */
    int32_t sticky;         /* PEN_ORDER_STICKY: lanes keep their blocks from epoch to epoch */
    uint64_t seed;
    uint32_t epoch;     /* whose beginning is simulated in time; the first is 0 */
    uint32_t in_flight; /* maximum concurrent requests of a node; 0: 512, 64 per rank */
    double spread_s;    /* within which the ranks start: 0 */
    int32_t opened;     /* the clock starts when the pack is open: its manifest is there */
    /* The network and the store; bytes per second, 0: no limit. */
    double latency_ms, latency_p99_ms; /* to the first byte: 100, 300 */
    double connect_ms;                 /* a new connection: 30 */
    uint64_t connection_bytes_per_s;   /* 90 MB/s */
    uint64_t node_bytes_per_s;         /* 12.5 GB/s */
    uint64_t store_bytes_per_s;        /* of all together: 0 */
    uint32_t prefixes;                 /* among which requests are spread, up to 256: 256 */
    uint32_t prefix_per_s;             /* requests a second that each takes: 5,500 */
    double failures; /* of a thousand requests, so many are answered with 500: 0.1 */
    /* How much is simulated. */
    double seconds; /* of the epoch's beginning: 60 */
    /* About so many seconds of a processor may be spent: 30. With many nodes some are followed that
     * stand for all, and if need be for fewer seconds. */
    double effort;
    /* Called now and then; non-zero stops with PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, double seconds);
    void *ctx;
} PenSimSettings;

typedef struct PenSimResult {
    /* Of the order, not simulated. */
    uint64_t n_samples, n_blocks, n_shards, block_samples, pack_bytes, block_bytes; /* mean */
    uint32_t lanes, window;
    uint64_t steps;         /* batches of a rank in an epoch */
    uint64_t block_fetches; /* of an epoch, all nodes together, without a cache's hits */
    double amplification;   /* bytes of them over the bytes of all blocks */
    int32_t is_exact;       /* 0: counted on some blocks alone */
    double second_epoch;    /* the same in the second epoch with the cache; -1: there is none */
    /* What was simulated, and how it went. */
    double seconds;                              /* of the job's time */
    uint32_t followed;                           /* nodes; each stands for as many of the others */
    uint64_t ranks, batches, samples;            /* of these nodes, as all counts below */
    double samples_per_s;                        /* all nodes, from their first batch on */
    double first_batch_p50_s, first_batch_max_s; /* from the start of the program */
    uint64_t late;                               /* ranks that had no batch yet */
    double stall_share, stall_share_worst; /* of the time behind the first batch; worst rank */
    double longest_stall_s;
    double node_bytes_per_s, node_peak_bytes_per_s; /* mean of all nodes; any node, any second */
    double prefix_per_s, prefix_peak_per_s;         /* requests; mean; any prefix, any second */
    double manifest_peak_per_s;                     /* requests for the manifest, in any second */
    uint64_t requests;                              /* all of them */
    uint64_t block_requests;                        /* blocks that were asked for */
    uint64_t tails;                                 /* and indexes of shards */
    uint64_t hits;                                  /* blocks that the cache had */
    uint64_t retries, hedges, hedges_won, throttles, failures;
    uint64_t memory_bytes, memory_room; /* blocks of a rank: most at once; what they may have */
    double requests_per_epoch, dollars_per_epoch, dollars_per_million;
} PenSimResult;

PEN_API void pen_sim_settings_init(PenSimSettings *settings);
PEN_NODISCARD PEN_API int pen_simulate(const PenSimSettings *settings, PenSimResult *ret,
                                       PenError *reterr);

#ifdef __cplusplus
}
#endif
#endif
