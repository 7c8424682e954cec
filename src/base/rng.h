/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that are addressed, not sequenced: the same key and counter give the same numbers
 * on every machine and thread. */
#ifndef PEN_BASE_RNG_H
#define PEN_BASE_RNG_H

#include <stdint.h>

/* Philox4x32-10 (Salmon et al., 2011). */
void pen__philox(const uint32_t key[2], const uint32_t counter[4], uint32_t ret[4]);

/* A stream of numbers. The caller sets key (the seed) and counter[2..3] (what the numbers are for);
 * counter[0..1] is the position as a 64-bit number, low word first, and moves on with each draw. */
typedef struct PenRng {
    uint32_t key[2];
    uint32_t counter[4];
} PenRng;

PenRng pen__rng_init(uint64_t seed, uint64_t stream);
uint64_t pen__rng_next(PenRng *rng);

/* Evenly from [0, n), without bias; 0 when n is 0. */
uint64_t pen__rng_below(PenRng *rng, uint64_t n);

#endif
