/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/lengths.h"

#include "load/epoch/permute.h"
#include "load/epoch/purpose.h"

static PenPermutation mix_of(const PenLengths *l, uint64_t epoch, uint64_t round)
{
    PenPermutation mix;
    pen__permute_init(&mix, l->n, pen__permute_key(l->seed, epoch, PEN_FOR_LENGTHS, round));
    return mix;
}

uint32_t pen__lengths_at(const PenLengths *l, uint64_t epoch, uint64_t step)
{
    PenPermutation mix = mix_of(l, epoch, step / l->n);
    return (uint32_t)pen__permute_at(&mix, step % l->n);
}

/* Samples in the steps of its round before a step. */
static uint64_t before(const PenLengths *l, uint64_t epoch, uint64_t step)
{
    PenPermutation mix = mix_of(l, epoch, step / l->n);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < step % l->n; i++)
        sum += l->batch[pen__permute_at(&mix, i)];
    return sum;
}

uint64_t pen__lengths_samples(const PenLengths *l, uint64_t epoch, uint64_t first, uint64_t n)
{
    uint64_t end = first + n;
    return (end / l->n - first / l->n) * l->round + before(l, epoch, end) - before(l, epoch, first);
}

uint64_t pen__lengths_steps(const PenLengths *l, uint64_t epoch, uint64_t first, uint64_t samples,
                            bool fills)
{
    uint64_t end = before(l, epoch, first) + samples; /* counted from the start of its round */
    uint64_t round = first / l->n + end / l->round, rest = end % l->round, i = 0;
    PenPermutation mix = mix_of(l, epoch, round);
    for (uint64_t batch; (batch = l->batch[pen__permute_at(&mix, i)]) <= rest; i++)
        rest -= batch;
    return round * l->n + i + (fills && rest) - first;
}
