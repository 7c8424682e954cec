/* SPDX-License-Identifier: Apache-2.0 */
/* What to simulate. */
#ifndef PEN_SIM_SETTINGS_H
#define PEN_SIM_SETTINGS_H

#include <stdint.h>

/* sim/arguments.c has the ranges and the defaults. Rates are in bytes per second; 0: no limit. */
typedef struct PenSimSettings {
    /* The pack: a real one, whose sizes are used, or numbers. */
    const char *pack; /* path or URL; NULL: the numbers */
    uint64_t n_samples;
    uint64_t sample_bytes;
    uint64_t shard_bytes;
    uint32_t block_samples;
    /* The job. */
    uint32_t nodes, ranks;   /* ranks: per node */
    uint32_t batch;          /* samples per batch of a rank */
    uint32_t prefetch;       /* batches that are loaded in advance */
    uint64_t batch_bytes;    /* tensor bytes of a batch; 0: images of 224 x 224 x 3 bytes */
    double step_ms;          /* compute time of a rank per batch */
    double decode_ms;        /* time to decode a batch */
    uint64_t memory_bytes;   /* of the loader of a rank */
    uint64_t shuffle_buffer; /* samples; 0: 1 GiB of the pack, at least 3,072 */
    uint64_t cache_bytes;    /* cache of a node; 0: none */
    uint32_t sticky;         /* 1: PEN_ORDER_STICKY: ranks keep their blocks in every epoch */
    uint32_t epoch;          /* the epoch whose start is simulated; the first is 0 */
    uint64_t seed;
    uint32_t in_flight; /* concurrent requests of a node; 0: 512, 256 per rank */
    uint32_t opened;    /* 1: the clock starts when the manifest has been read */
    double spread_s;    /* time within which the ranks start */
    /* The network and the store. */
    double latency_ms, latency_p99_ms; /* time to the first byte */
    double connect_ms;                 /* time of a new connection */
    uint64_t connection_bytes_per_s;
    uint64_t node_bytes_per_s;
    uint64_t store_bytes_per_s; /* for all nodes together */
    uint32_t prefixes;          /* key prefixes that share the requests */
    uint32_t prefix_per_s;      /* requests per second of each prefix */
    double failures;            /* requests of 1,000 that get status 500 */
    /* How much is simulated. */
    double seconds; /* of the start of the epoch */
    /* Processor time for the simulation, in seconds, approximately. If all nodes take longer, some
     * of them are simulated, and if necessary a shorter time. */
    double effort;
} PenSimSettings;

#endif
