/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/order_help.h"

const Shape shapes[12] = {{1, 1, 1},  {1, 4, 3},  {2, 3, 5},  {3, 2, 1},  {4, 6, 8},  {7, 1, 16},
                          {16, 4, 2}, {32, 3, 4}, {5, 12, 7}, {64, 8, 2}, {3, 64, 4}, {1000, 1, 9}};

PenOrder order_of(int32_t kind, uint64_t n, uint64_t seed, uint64_t epoch, Shape s)
{
    PenOrder o;
    PenOrderPlan plan = {.kind = kind,
                         .n = n,
                         .seed = seed,
                         .block_samples = s.k,
                         .lanes = s.lanes,
                         .window = s.window};
    if (pen__order_init(&o, &plan, epoch, NULL) != PEN_OK)
        abort();
    return o;
}

PenOrder block_order(uint64_t n, uint64_t seed, uint64_t epoch, Shape s)
{
    return order_of(PEN_ORDER_BLOCK, n, seed, epoch, s);
}

PenOrder random_order(uint64_t n, uint64_t seed, uint64_t epoch)
{
    return order_of(PEN_ORDER_RANDOM, n, seed, epoch, (Shape){0});
}

bool order_is_whole(const PenOrder *o, uint8_t *seen)
{
    uint64_t n = o->plan.n;
    memset(seen, 0, n);
    for (uint64_t p = 0; p < n; p++) {
        uint64_t s = pen__order_at(o, p);
        if (s >= n || seen[s]++ || pen__order_find(o, s) != p)
            return false;
    }
    return true;
}

bool order_inverts(const PenOrder *o, uint64_t count, PenRng *rng)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t p = pen__rng_below(rng, o->plan.n);
        uint64_t s = pen__order_at(o, p);
        if (s >= o->plan.n || pen__order_find(o, s) != p)
            return false;
        if (pen__order_at(o, pen__order_find(o, p)) != p)
            return false;
    }
    return true;
}

double chi_deviation(const uint32_t *counts, size_t n)
{
    double total = 0;
    double chi = 0;
    for (size_t i = 0; i < n; i++)
        total += counts[i];
    for (size_t i = 0; i < n; i++)
        chi += (counts[i] - total / (double)n) * (counts[i] - total / (double)n);
    chi /= total / (double)n;
    return (chi - (double)(n - 1)) / sqrt(2.0 * (double)(n - 1));
}
