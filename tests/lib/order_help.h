/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of orders share. */
#ifndef PEN_TESTS_LIB_ORDER_HELP_H
#define PEN_TESTS_LIB_ORDER_HELP_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/rng.h"
#include "load/epoch/order.h"

/* Samples of a block, and streams. */
typedef struct Shape {
    uint64_t k;
    uint32_t streams;
} Shape;

extern const Shape shapes[14];

PenOrder order_of(int32_t kind, uint64_t n, uint64_t seed, uint64_t epoch, Shape s);
PenOrder shuffle_order(uint64_t n, uint64_t seed, uint64_t epoch, Shape s);
PenOrder random_order(uint64_t n, uint64_t seed, uint64_t epoch);

/* Is every sample there once? `seen` has n bytes. */
bool order_is_whole(const PenOrder *o, uint8_t *seen);

/* Are the samples at `count` random positions below n, and all different where positions are? */
bool order_is_injective(const PenOrder *o, uint64_t count, PenRng *rng);

/* How far counts are from being equal, in standard deviations of chi-square. */
double chi_deviation(const uint32_t *counts, size_t n);

#endif
