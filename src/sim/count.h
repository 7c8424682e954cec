/* SPDX-License-Identifier: Apache-2.0 */
/* How often the blocks of a pack are fetched in an epoch: from the order, without simulating it. */
#ifndef PEN_SIM_COUNT_H
#define PEN_SIM_COUNT_H

#include "sim/job.h"

typedef struct PenSimCount {
    double fetches; /* pairs of a block and who needs it */
    bool is_exact;  /* false: counted on some blocks, and multiplied */
} PenSimCount;

/* `each` neighbouring ranks share what they fetch. A batch that is not full is left out. */
int pen__sim_count(const PenOrder *order, const PenSplit *split, uint32_t each, PenSimCount *ret,
                   PenError *reterr);
/* Of the blocks in the order's epoch, the share that `cache` has where they are needed. */
double pen__sim_count_hits(const PenSimCache *cache, const PenOrder *order);

#endif
