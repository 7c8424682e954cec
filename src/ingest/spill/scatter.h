/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers or pairs of them, added in any order, each at a place of its own below n, and read in the
 * order of their places. */
#ifndef PEN_INGEST_SPILL_SCATTER_H
#define PEN_INGEST_SPILL_SCATTER_H

#include "ingest/spill/spill.h"

typedef struct PenScatter PenScatter;

typedef struct PenPlaced {
    uint64_t place, a, b; /* a is below UINT64_MAX */
} PenPlaced;

/* `words`: 1 where b is not needed, else 2. */
int pen__scatter_open(const PenSpace *space, uint64_t n, uint32_t words, PenScatter **ret,
                      PenError *reterr);
int pen__scatter_add(PenScatter *s, const PenPlaced *pair, PenError *reterr);
/* The next place that has some; PEN_END behind the last one. */
int pen__scatter_next(PenScatter *s, PenPlaced *ret, PenError *reterr);
void pen__scatter_close(PenScatter **s); /* accepts NULL */

/* Shuffles [0, n) by Fisher-Yates: for i from n - 1 down to 1 it swaps i with a number from [0, i],
 * drawn by pen__rng_below from the stream (seed, `stream`). Calls `each` with every position and
 * what is there in the end, in any order. The outcome does not depend on the memory. */
typedef int (*PenShuffledFn)(void *ctx, uint64_t position, uint64_t value, PenError *reterr);
typedef struct PenShuffle {
    uint64_t n, seed, stream;
    PenShuffledFn each;
    void *ctx;
} PenShuffle;
int pen__shuffle(const PenShuffle *what, const PenSpace *space, PenError *reterr);

#endif
