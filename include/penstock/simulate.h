/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Predicts how a multi-node training job will perform when it reads a pack from an object store.
 *
 * The sample order, what a rank fetches when, and the request policy are those of a real job. The
 * network, the store and the training steps are a model with its own clock. The simulation reads at
 * most the manifest of a pack. The same settings give the same result. */
#ifndef PENSTOCK_SIMULATE_H
#define PENSTOCK_SIMULATE_H

#include <penstock/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What to simulate. The numbers in the comments are the defaults; the default of the others is 0.
 * Rates are in bytes per second; 0 = no limit. */
typedef struct PenSimSettings {
    uint32_t struct_size; /**< set by the init function */
    /* The pack: a real one, whose sizes are used, or numbers. */
    uint32_t block_samples; /**< 32 */
    PenPack *pack;          /**< NULL = use the numbers */
    uint64_t n_samples;
    uint64_t sample_bytes;
    uint64_t shard_bytes; /**< 512 MiB */
    /* The job. */
    uint32_t nodes, ranks;   /**< nodes: 1; ranks per node: 8 */
    uint32_t batch;          /**< samples per batch of a rank: 256 */
    uint32_t prefetch;       /**< batches that are loaded in advance: 2 */
    uint64_t batch_bytes;    /**< tensor bytes of a batch; 0 = images of 224 x 224 x 3 bytes */
    double step_ms;          /**< compute time of a rank per batch: 100 */
    double decode_ms;        /**< time to decode a batch */
    uint64_t memory_bytes;   /**< of the loader of a rank: 2 GiB */
    uint64_t shuffle_buffer; /**< samples; 0 = 1 GiB of the pack, at least 3,072 */
    uint64_t cache_bytes;    /**< cache of a node; 0 = none */
    int32_t sticky;          /**< 1 = PEN_ORDER_STICKY: ranks keep their blocks in every epoch */
    uint64_t seed;
    uint32_t epoch;     /**< the epoch whose start is simulated; the first is 0 */
    uint32_t in_flight; /**< concurrent requests of a node; 0 = 512, 256 per rank */
    double spread_s;    /**< time within which the ranks start */
    int32_t opened;     /**< 1 = the clock starts when the manifest has been read */
    /* The network and the store. */
    double latency_ms, latency_p99_ms; /**< time to the first byte: 100, 300 */
    double connect_ms;                 /**< time of a new connection: 30 */
    uint64_t connection_bytes_per_s;   /**< 90 MB/s */
    uint64_t node_bytes_per_s;         /**< 12.5 GB/s */
    uint64_t store_bytes_per_s;        /**< for all nodes together */
    uint32_t prefixes;                 /**< key prefixes that share the requests, 1 to 256: 256 */
    uint32_t prefix_per_s;             /**< requests per second of each prefix: 5,500 */
    double failures;                   /**< requests of 1,000 that get status 500: 0.1 */
    /* How much is simulated. */
    double seconds; /**< of the start of the epoch: 60 */
    /** Processor time for the simulation, in seconds, approximately: 30. If all nodes take longer,
     * it simulates some of them, and if necessary a shorter time. */
    double effort;
    /** Called every now and then from the calling thread with the simulated seconds; a return value
     * other than 0 stops the call with PEN_E_CANCELLED. May be NULL. */
    int (*progress)(void *ctx, double seconds);
    void *ctx;
    /** Called instead of `progress` if it is not NULL, with the seconds that will be simulated in
     * total, approximately: less than `seconds` if the epoch is shorter, or for `effort`. */
    int (*progress_of)(void *ctx, double seconds, double total_seconds);
} PenSimSettings;

/** What the simulation found. Sizes are means. Counts from `ranks` to `failures` are of the
 * simulated nodes only. */
typedef struct PenSimResult {
    uint32_t struct_size; /**< set by the library */
    /* Computed from the order, not simulated. */
    uint64_t n_samples, n_blocks, n_shards, block_samples, pack_bytes, block_bytes;
    uint64_t shuffle_buffer;      /**< samples that are mixed */
    uint32_t fetch_unit;          /**< what one request has: PEN_FETCH_* of loader.h */
    uint64_t memory_wanted_bytes; /**< for requests of entire blocks; 0 = they are, or cannot be */
    uint64_t steps;               /**< batches of a rank per epoch */
    /* Requests of all nodes in the first epoch. A cache has what was fetched once. */
    uint64_t block_fetches, part_fetches, index_fetches; /**< entire blocks; parts; block indexes */
    double requests_per_block; /**< all of these for the samples of a block */
    double amplification;      /**< bytes fetched divided by the bytes of the samples delivered */
    int32_t is_exact;          /**< 0 = estimated from some of the ranks, or of the batches */
    double second_epoch; /**< amplification of the second epoch with the cache; -1 = no cache */
    /* Simulated. */
    double seconds;                              /**< simulated time */
    uint32_t followed;                           /**< nodes that were simulated */
    uint64_t ranks, batches, samples;            /**< of these nodes */
    double samples_per_s;                        /**< of all nodes, from their first batch on */
    double first_batch_p50_s, first_batch_max_s; /**< since the start of the program */
    uint64_t late;                               /**< ranks without a batch at the end */
    double stall_share, stall_share_worst; /**< waiting time after the first batch: mean, worst */
    double longest_stall_s;
    double node_bytes_per_s, node_peak_bytes_per_s; /**< mean of all nodes; highest in a second */
    double prefix_per_s, prefix_peak_per_s; /**< requests per prefix: mean; highest in a second */
    double manifest_peak_per_s;             /**< requests for the manifest: highest in a second */
    uint64_t requests;                      /**< all */
    uint64_t block_requests;                /**< for blocks and parts of them */
    uint64_t index_requests;                /**< for block indexes */
    uint64_t tails;                         /**< for shard indexes */
    uint64_t hits;                          /**< blocks and parts of them from the cache */
    uint64_t retries, hedges, hedges_won, throttles, failures;
    uint64_t memory_bytes, memory_room; /**< blocks of a rank: most held; limit */
    double requests_per_epoch, dollars_per_epoch, dollars_per_million;
} PenSimResult;

PEN_API void pen_sim_settings_init_sized(PenSimSettings *settings, size_t bytes);
static inline void pen_sim_settings_init(PenSimSettings *settings)
{
    pen_sim_settings_init_sized(settings, sizeof *settings);
}

PEN_NODISCARD PEN_API int pen_simulate_sized(const PenSimSettings *settings, PenSimResult *ret,
                                             size_t ret_bytes, PenError *reterr);
/** Runs the simulation and blocks until it ends. Threads may run simulations at the same time. */
PEN_NODISCARD static inline int pen_simulate(const PenSimSettings *settings, PenSimResult *ret,
                                             PenError *reterr)
{
    return pen_simulate_sized(settings, ret, sizeof *ret, reterr);
}

#ifdef __cplusplus
}
#endif
#endif
