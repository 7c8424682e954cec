/* SPDX-License-Identifier: Apache-2.0 */
/* One period of a mixture: which source each slot has. Source i has shares[i] of the slots, and the
 * number of its slots among the first p is floor(x) or ceil(x), where x = p * shares[i] / n_slots.
 * The slots are random as far as that allows, so that ranks, which take every n-th slot, get all
 * sources. */
#ifndef PEN_LOAD_MIX_TABLE_H
#define PEN_LOAD_MIX_TABLE_H

#include <stdint.h>

#include <penstock/error.h>

/* Weights are rounded to multiples of 1 / PEN_MIX_MOST_SLOTS, unless a shorter period has their
 * exact ratios. */
enum { PEN_MIX_MOST_SLOTS = 65536, PEN_MIX_MOST_SOURCES = 1024 };

typedef struct PenMixSlot {
    uint32_t source;
    uint32_t ordinal; /* how many slots of the period before it have the same source */
} PenMixSlot;

typedef struct PenMixTable {
    uint32_t n_sources, n_slots;
    uint32_t *shares;
    PenMixSlot *slots;
} PenMixTable;

/* Weights are finite and not negative, and one is positive; 1 to PEN_MIX_MOST_SOURCES of them. */
int pen__mix_table_init(PenMixTable *t, const double *weights, uint32_t n, uint64_t key,
                        PenError *reterr);
void pen__mix_table_fini(PenMixTable *t);

#endif
