/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that a subset lists more than once. The ordinal of an entry is the number of entries
 * before it that name the same sample: 0 for the first. It enters the random draws, so that repeats
 * of a sample in an epoch differ. */
#ifndef PEN_LOAD_EPOCH_ORDINALS_H
#define PEN_LOAD_EPOCH_ORDINALS_H

#include <stdint.h>

#include <penstock/error.h>

/* *ret is an array of n ordinals, or NULL when no sample is listed twice. All entries are below
 * n_samples. Takes O(n) time, and one bit for each sample of the pack while it runs; only when
 * there are repeats, further memory for each sample that is listed. */
int pen__ordinals_new(const uint64_t *list, uint64_t n, uint64_t n_samples, uint32_t **ret,
                      PenError *reterr);

#endif
