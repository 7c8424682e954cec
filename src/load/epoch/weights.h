/* SPDX-License-Identifier: Apache-2.0 */
/* Samples by weight. An epoch of n samples has entry i of the weights floor(x) or ceil(x) times,
 * where x = n * weight / sum of all weights. The entries drawn are numbered in rising order, 0 to n
 * - 1, and the order of the epoch mixes these numbers. Each is computed by itself, from a table of
 * 8 bytes for each entry. */
#ifndef PEN_LOAD_EPOCH_WEIGHTS_H
#define PEN_LOAD_EPOCH_WEIGHTS_H

#include <stdint.h>

#include <penstock/error.h>

typedef struct PenWeights PenWeights;

typedef struct PenDrawn {
    uint64_t entry;
    uint32_t ordinal; /* how many entries before it are the same */
} PenDrawn;

/* Every entry i is in an epoch n_times[i] times, in all *ret_n times: its ordinals are 0 to
 * n_times[i] - 1. `name` is that of the numbers, for messages. */
int pen__repeats_new(const uint64_t *n_times, uint64_t n, const char *name, PenWeights **ret,
                     uint64_t *ret_n, PenError *reterr);
/* Weights are finite and not negative, and one is positive. */
int pen__weights_new(const double *weights, uint64_t n, PenWeights **ret, PenError *reterr);
void pen__weights_free(PenWeights **weights); /* accepts NULL */
uint64_t pen__weights_hash(const PenWeights *w);
/* Number k < n of those drawn in an epoch. */
PenDrawn pen__weights_at(const PenWeights *w, uint64_t seed, uint64_t epoch, uint64_t k);

#endif
