/* SPDX-License-Identifier: Apache-2.0 */
/* What all ranks fetch in the first epoch: the schedule of each runs, and everything arrives at
 * once. */
#ifndef PEN_SIM_COUNT_H
#define PEN_SIM_COUNT_H

#include "sim/job.h"

typedef struct PenSimCount {
    double blocks, parts, indexes; /* requests: for entire blocks, parts of them, their indexes */
    double bytes;
    double samples; /* delivered, without those that only fill up a batch */
    double of_node; /* blocks that a node fetches, if there are caches */
    bool is_exact;  /* false: counted for some ranks, or some steps, and multiplied */
} PenSimCount;

/* `order` is of the first epoch; without stored blocks in the caches. */
int pen__sim_count(const PenSimJob *job, const PenOrder *order, PenSimCount *ret, PenError *reterr);

#endif
