/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a sample's stages. Decoding, resampling and storing alternate row by row, and
 * checksums are computed in between reads, so that reading the clock around each of them would cost
 * more than some of them take. A loader therefore times one sample in PEN_TIMED_EVERY: it has a
 * stage clock, which goes with it; for the others the clock is NULL, and nothing reads the time. */
#ifndef PEN_BASE_TIMING_STAGE_CLOCK_H
#define PEN_BASE_TIMING_STAGE_CLOCK_H

#include <stdint.h>

#include "base/sys.h"

enum { PEN_TIMED_EVERY = 31 };

typedef enum PenTimedStage {
    PEN_TIMED_READ,   /* finding and reading a sample, checksums included */
    PEN_TIMED_VERIFY, /* checksums */
    PEN_TIMED_DECODE, /* decoding a sample, all that follows included */
    PEN_TIMED_ROWS,   /* what is done with its rows: resampling and storing */
    PEN_TIMED_STORE,  /* storing them */
    PEN_TIMED_COUNT
} PenTimedStage;

typedef struct PenStageClock {
    uint64_t ns[PEN_TIMED_COUNT];
    uint64_t decode_cpu_ns; /* CPU time of PEN_TIMED_DECODE */
} PenStageClock;

static inline uint64_t pen__stage_begin(const PenStageClock *clock)
{
    return clock ? pen__sys->now_ns() : 0;
}

static inline void pen__stage_end(PenStageClock *clock, PenTimedStage stage, uint64_t begin_ns)
{
    if (clock)
        clock->ns[stage] += pen__sys->now_ns() - begin_ns;
}

#endif
