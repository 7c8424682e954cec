/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of one operation on one sample. They are addressed by (seed, epoch, sample,
 * draw_id of the operation, which one with that draw_id, number of the draw) and, of a sample that
 * an epoch has several times, by which of these it is, and of a view by its name: an image and its
 * mask have the same, and nothing else plays a part. An operation that is renamed keeps them. */
#ifndef PEN_OPS_OPERATIONS_DRAW_H
#define PEN_OPS_OPERATIONS_DRAW_H

#include <stdint.h>

typedef struct PenDrawKey { /* of all draws of an epoch: a hash of seed and epoch */
    uint32_t key[2];
} PenDrawKey;

PenDrawKey pen__draw_key(uint64_t seed, uint64_t epoch);
/* Of the draws for a sample that the epoch has several times; `ordinal` counts from 0, whose key
 * stays as it is. */
PenDrawKey pen__draw_key_of(PenDrawKey key, uint32_t ordinal);

/* A view's name as a number other than 0. */
uint64_t pen__draw_name(const char *name);
/* Of the draws of a view; the key for 0, which is no view, stays as it is. */
PenDrawKey pen__draw_key_view(PenDrawKey key, uint64_t name);

typedef struct PenDraw {
    uint32_t key[2];
    uint32_t counter[4];
} PenDraw;

/* `draw_id`: PEN_DRAW_ID_*. `occurrence` counts the operations with it in the field's pipeline,
 * from 0. Both are below 2^16. */
PenDraw pen__draw_start(PenDrawKey key, uint64_t sample, uint32_t draw_id, uint32_t occurrence);

uint64_t pen__draw_bits(PenDraw *d);
double pen__draw_uniform(PenDraw *d, double low, double high); /* 53 bits, of [low, high) */
uint64_t pen__draw_below(PenDraw *d, uint64_t n);              /* [0, n), without bias; 0 for 0 */
int pen__draw_happens(PenDraw *d, double p);

#endif
