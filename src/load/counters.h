/* SPDX-License-Identifier: Apache-2.0 */
/* What a loader has counted since it was opened. Numbers only grow, so that the counters of an
 * epoch are the difference of two copies.
 *
 * Lock rule: the lock of lock.h guards the counters of a running loader. */
#ifndef PEN_LOAD_COUNTERS_H
#define PEN_LOAD_COUNTERS_H

#include <penstock/loader.h>

#include "base/timing/log_bins.h"
#include "base/timing/stage_clock.h"
#include "load/threads.h"

typedef struct PenLoadCounters {
    uint64_t batches, samples; /* delivered */
    uint64_t padded_samples;   /* delivered besides, to pad batches */
    uint64_t substituted;
    uint64_t bytes_read;
    uint64_t ready;   /* full batches in the ring, added up over the calls for one */
    uint64_t ns_wait; /* of the caller, for batches */
    uint64_t waits[PEN_LOG_BINS];
    uint64_t ns_of[PEN_ROLE_COUNT][PEN_ACTIVITY_COUNT];
    PenStageClock timed;      /* of one sample in PEN_TIMED_EVERY */
    uint64_t timed_decode_ns; /* the same for PEN_TIMED_DECODE, whatever a sample counts for */
} PenLoadCounters;

/* The caller has waited for a batch; `ready` are those that were full when it began. */
void pen__counters_waited(PenLoadCounters *c, uint64_t ns, uint32_t ready);
void pen__counters_add_clock(PenLoadCounters *c, const PenStageClock *clock);
/* All that was counted after `since`. */
void pen__counters_subtract(PenLoadCounters *c, const PenLoadCounters *since);
/* Fills in what follows from the counters; the rest of `ret` stays. */
void pen__counters_report(const PenLoadCounters *c, uint64_t wait_max_ns, PenLoaderStats *ret);

#endif
