/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of several sequence lengths, of which each has the same number of tokens: a batch of a rank
 * has tokens / length samples. Every round of n steps has each of the n lengths once, in an order
 * of its own, which is a pure function of the seed, the epoch and the round. So the samples before
 * a step are known without counting: the rounds before it, and at most n - 1 steps more. */
#ifndef PEN_LOAD_EPOCH_LENGTHS_H
#define PEN_LOAD_EPOCH_LENGTHS_H

#include <stdbool.h>
#include <stdint.h>

enum { PEN_MAX_LENGTHS = 64 };

typedef struct PenLengths {
    uint32_t n; /* 1 to PEN_MAX_LENGTHS */
    uint32_t length[PEN_MAX_LENGTHS];
    uint32_t batch[PEN_MAX_LENGTHS]; /* samples of a rank, at least 1 */
    uint64_t round;                  /* and of all lengths together */
    uint64_t seed;
} PenLengths;

/* Number of the length that a step of an epoch has. */
uint32_t pen__lengths_at(const PenLengths *l, uint64_t epoch, uint64_t step);
/* Samples of a rank in the `n` steps from `first` on. */
uint64_t pen__lengths_samples(const PenLengths *l, uint64_t epoch, uint64_t first, uint64_t n);
/* How many steps from `first` on have so many samples of a rank: the last one may have more, if
 * `fills`; else they have at most as many. */
uint64_t pen__lengths_steps(const PenLengths *l, uint64_t epoch, uint64_t first, uint64_t samples,
                            bool fills);

#endif
