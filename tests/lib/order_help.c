/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/order_help.h"

const Shape shapes[14] = {{1, 6},  {1, 24},  {2, 6},  {2, 12},  {3, 6},  {3, 48},  {7, 12},
                          {32, 6}, {32, 24}, {33, 6}, {33, 12}, {64, 6}, {100, 6}, {100, 12}};

PenOrder order_of(int32_t kind, uint64_t n, uint64_t seed, uint64_t epoch, Shape s)
{
    PenOrder o;
    PenOrderPlan plan = {
        .kind = kind, .n = n, .seed = seed, .block_samples = s.k, .streams = s.streams};
    if (pen__order_init(&o, &plan, epoch, NULL) != PEN_OK)
        abort();
    return o;
}

PenOrder shuffle_order(uint64_t n, uint64_t seed, uint64_t epoch, Shape s)
{
    return order_of(PEN_ORDER_SHUFFLE, n, seed, epoch, s);
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
        if (s >= n || seen[s]++)
            return false;
    }
    return true;
}

typedef struct Pair {
    uint64_t position, sample;
} Pair;

static int by_sample(const void *a, const void *b)
{
    const Pair *x = a, *y = b;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

bool order_is_injective(const PenOrder *o, uint64_t count, PenRng *rng)
{
    Pair *pairs = malloc(count * sizeof *pairs);
    if (!pairs)
        abort();
    bool is_good = true;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t p = pen__rng_below(rng, o->plan.n);
        pairs[i] = (Pair){p, pen__order_at(o, p)};
        is_good = is_good && pairs[i].sample < o->plan.n;
    }
    qsort(pairs, count, sizeof *pairs, by_sample);
    for (uint64_t i = 1; i < count; i++)
        if (pairs[i].sample == pairs[i - 1].sample && pairs[i].position != pairs[i - 1].position)
            is_good = false;
    free(pairs);
    return is_good;
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
