/* SPDX-License-Identifier: Apache-2.0 */
/* Which source a position of a mixture has, and how many of its samples are before it. Positions
 * count over all epochs. In each stage the weights are others; a stage begins at its position and
 * ends where the next one begins. */
#ifndef PEN_LOAD_MIX_MIXTURE_H
#define PEN_LOAD_MIX_MIXTURE_H

#include <stdint.h>

#include <penstock/error.h>

enum { PEN_MIX_MOST_STAGES = 64 };
#define PEN_MIX_MOST_POSITIONS (UINT64_C(1) << 63)

typedef struct PenMixture PenMixture;

typedef struct PenMixturePlan {
    uint32_t n_sources, n_stages; /* within their limits */
    const uint64_t *starts;       /* of the stages: the first is 0, and they rise */
    const double *weights;        /* of the sources, stage by stage */
    uint64_t seed;
} PenMixturePlan;

typedef struct PenMixed {
    uint32_t source;
    uint64_t before; /* samples of this source at earlier positions */
} PenMixed;

int pen__mixture_new(const PenMixturePlan *plan, PenMixture **ret, PenError *reterr);
void pen__mixture_free(PenMixture **mixture); /* accepts NULL */
PenMixed pen__mixture_at(const PenMixture *m, uint64_t position);
/* Samples of each source before a position. */
void pen__mixture_counts(const PenMixture *m, uint64_t position, uint64_t *ret);
/* The position of a source's sample number `before`; PEN_MIX_MOST_POSITIONS: there is none. */
uint64_t pen__mixture_find(const PenMixture *m, uint32_t source, uint64_t before);
uint64_t pen__mixture_hash(const PenMixture *m);

#endif
