/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a local pack that are dropped from the page cache, to measure the disk below it. */
#ifndef PEN_LOAD_MEASURE_COLD_H
#define PEN_LOAD_MEASURE_COLD_H

#include "load/plan/plan.h"

enum { PEN_COLD_BLOCKS = 64, PEN_COLD_SAMPLES = 4096 };

/* Some entire blocks, and samples in them. A page cache works in units of up to 2 MiB, so that less
 * than a block cannot be dropped from it. */
typedef struct PenCold {
    PenPack *pack;
    PenBlock *blocks[PEN_COLD_BLOCKS]; /* held */
    uint64_t n_blocks;
    uint64_t bytes; /* that dropping them takes from the page cache, at most */
    bool is_full;   /* another block would be too much */
    uint64_t *samples, n_samples;
} PenCold;

/* The blocks that come first in the epoch, up to 256 MiB of them, but one at least: other jobs may
 * need the page cache. Call pen__cold_release in any case. */
int pen__cold_choose(PenCold *c, const PenLoadPlan *plan, uint64_t epoch, PenError *reterr);
/* True: they are not in the page cache now. */
bool pen__cold_drop(const PenCold *c);
void pen__cold_release(PenCold *c);

#endif
