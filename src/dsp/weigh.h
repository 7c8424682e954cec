/* SPDX-License-Identifier: Apache-2.0 */
/* How the table of an axis is made, for as many outputs at a time as a vector of the tier has
 * lanes; every tier compiles it. Each lane does every operation on a double as torch does it, in
 * the same order, so that the int16 weights come out equal; the compiler must not join
 * multiplications and additions here (see meson.build). */
#ifndef PEN_DSP_WEIGH_H
#define PEN_DSP_WEIGH_H

#include <string.h>

#include "base/attr.h"
#include "dsp/axis.h"
#include "dsp/dsp_impl.h"

#if defined(__AVX512F__)
#define LANES 8
#define LANE_NUMBERS                                                                               \
    {                                                                                              \
        0, 1, 2, 3, 4, 5, 6, 7                                                                     \
    }
#elif defined(__AVX2__)
#define LANES 4
#define LANE_NUMBERS                                                                               \
    {                                                                                              \
        0, 1, 2, 3                                                                                 \
    }
#else
#define LANES 2
#define LANE_NUMBERS                                                                               \
    {                                                                                              \
        0, 1                                                                                       \
    }
#endif

typedef double Reals __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t Bits __attribute__((vector_size(LANES * sizeof(int64_t))));
typedef int32_t Ints __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef uint32_t Words __attribute__((vector_size(LANES * sizeof(uint32_t))));

enum { MAX_PRECISION = 22 };

PEN_INLINE Reals where(Bits mask, Reals v)
{
    return (Reals)(mask & (Bits)v);
}

PEN_INLINE Reals choose(Bits mask, Reals yes, Reals no)
{
    return (Reals)((mask & (Bits)yes) | (~mask & (Bits)no));
}

PEN_INLINE Ints least(Ints a, Ints b)
{
    Ints mask = a < b;
    return (mask & a) | (~mask & b);
}

PEN_INLINE Ints most(Ints a, Ints b)
{
    Ints mask = a > b;
    return (mask & a) | (~mask & b);
}

PEN_INLINE Reals to_reals(Ints v)
{
    return __builtin_convertvector(v, Reals);
}

/* Cut off, as a cast does it. */
PEN_INLINE Ints to_ints(Reals v)
{
    return __builtin_convertvector(v, Ints);
}

/* ---- filters -------------------------------------------------------------------------------- */

/* sinc(x) * sinc(x / 3). With t = pi x / 3 and sin 3t = sin t (3 - 4 sin^2 t) one sine is enough;
 * it is a polynomial, because libraries for mathematics differ between hosts. */
PEN_INLINE Reals lanczos(Reals x)
{
    static const double c[] = {-1.0 / 6,
                               1.0 / 120,
                               -1.0 / 5040,
                               1.0 / 362880,
                               -1.0 / 39916800,
                               1.0 / 6227020800,
                               -1.0 / 1307674368e3,
                               1.0 / 355687428096e3,
                               -1.0 / 121645100408832e3,
                               1.0 / 51090942171709440e3};
    const double third = 1.04719755119659774615; /* pi / 3 */
    const Reals one = (Reals){0} + 1.0;
    Reals t = x * third, u = choose(x > 1.5, 3.0 - x, x) * third, v = u * u, p = (Reals){0} + c[9];
    for (int i = 8; i >= 0; i--)
        p = p * v + c[i];
    Reals sine = u + u * v * p, square = sine * sine;
    Reals value = square * (3.0 - 4.0 * square) / (3.0 * t * t);
    return choose(x == 0.0, one, value);
}

PEN_INLINE Reals bicubic(Reals x)
{
    const double a = -0.5;
    Reals near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    Reals far = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    return choose(x < 1.0, near, where(x < 2.0, far));
}

/* `filter` is a constant wherever this is inlined. */
PEN_INLINE Reals filter_value(int filter, Reals x)
{
    if (filter == PEN_FILTER_BOX)
        return where((x > -0.5) & (x <= 0.5), (Reals){0} + 1.0);
    x = where((Bits){0} + INT64_MAX, x); /* without its sign */
    if (filter == PEN_FILTER_BILINEAR)
        return where(x < 1.0, 1.0 - x);
    return filter == PEN_FILTER_LANCZOS ? where(x < 3.0, lanczos(x)) : bicubic(x);
}

/* ---- weights -------------------------------------------------------------------------------- */

/* Outputs side by side: of each its first input, how many, and its weights one after another. */
typedef struct Block {
    Ints first, count;
    Reals weights[];
} Block;

typedef struct Blocks {
    uint8_t *memory;
    size_t stride;
    uint32_t from, n; /* those with an output that is wanted; one more follows for all others */
} Blocks;

PEN_INLINE Blocks blocks_in(void *memory, const PenAxisSpec *s)
{
    uint32_t from = s->first / LANES, to = (s->first + s->len - 1) / LANES;
    return (Blocks){memory, sizeof(Block) + pen__axis_reach(s) * sizeof(Reals), from,
                    to - from + 1};
}

PEN_INLINE Block *block_at(const Blocks *b, uint32_t i)
{
    uint32_t k = i - b->from;
    return (Block *)(void *)(b->memory + b->stride * PEN_MIN(k, b->n));
}

PEN_INLINE uint32_t longest(const Block *b)
{
    int32_t n = 1;
    for (int i = 0; i < LANES; i++)
        n = PEN_MAX(n, b->count[i]);
    return (uint32_t)n;
}

/* Outputs i and on, each of sum 1; returns the largest of each. Lanes behind the end are the last
 * output once more. */
PEN_INLINE Reals weigh_block(const PenAxisShape *k, int filter, uint32_t i, Block *b)
{
    const Ints zero = {0},
               place = least((Ints)LANE_NUMBERS + (int32_t)i, zero + (int32_t)(k->n - 1));
    Reals center = k->start + k->scale * (to_reals(place) + 0.5), total = {0}, largest = {0};
    b->first = most(to_ints(center - k->support + 0.5), zero);
    Ints end = least(to_ints(center + k->support + 0.5), zero + (int32_t)k->size);
    b->count = most(least(end - b->first, zero + (int32_t)k->reach), zero + 1);
    const Reals first = to_reals(b->first), count = to_reals(b->count);
    const uint32_t n = longest(b);
    for (uint32_t j = 0; j < n; j++) {
        Reals x = ((first + (double)j) - center + 0.5) * k->inverse;
        b->weights[j] = where(count > (double)j, filter_value(filter, x));
        total += b->weights[j];
    }
    Reals by = choose(total == 0.0, (Reals){0} + 1.0, total);
    for (uint32_t j = 0; j < n; j++) {
        b->weights[j] /= by;
        largest = choose(b->weights[j] > largest, b->weights[j], largest);
    }
    return where(total != 0.0, largest);
}

/* All outputs count for the largest weight, because it decides the precision of the whole axis. */
PEN_INLINE double weigh_all(const PenAxisShape *k, int filter, const Blocks *blocks)
{
    Reals largest = {0};
    double v = 0;
    for (uint32_t i = 0; i < k->n; i += LANES) {
        Reals l = weigh_block(k, filter, i, block_at(blocks, i / LANES));
        largest = choose(l > largest, l, largest);
    }
    for (int i = 0; i < LANES; i++)
        v = PEN_MAX(v, largest[i]);
    return v;
}

PEN_INLINE double weigh_by_filter(const PenAxisShape *k, int filter, const Blocks *blocks)
{
    switch (filter) {
    case PEN_FILTER_BICUBIC:
        return weigh_all(k, PEN_FILTER_BICUBIC, blocks);
    case PEN_FILTER_LANCZOS:
        return weigh_all(k, PEN_FILTER_LANCZOS, blocks);
    case PEN_FILTER_BOX:
        return weigh_all(k, PEN_FILTER_BOX, blocks);
    default:
        return weigh_all(k, PEN_FILTER_BILINEAR, blocks);
    }
}

/* ---- rounding ------------------------------------------------------------------------------- */

/* As many bits as let the largest weight stay below 2^15. */
static inline uint32_t precision_for(double largest)
{
    uint32_t p = 0;
    while (p < MAX_PRECISION && (int)(0.5 + largest * (1 << (p + 1))) < 1 << 15)
        p++;
    return p;
}

PEN_INLINE Ints rounded(Reals v, double one)
{
    const Bits sign = (Bits){0} + INT64_MIN, half = (Bits)((Reals){0} + 0.5);
    v *= one;
    return to_ints(v + (Reals)(half | ((Bits)v & sign)));
}

/* Equal weights make values that lie in the very middle, and rounding errors decide where those go:
 * after both axes it could be by 2 somewhere else than in Pillow. So a weight errs to the side that
 * Pillow's does, which has 22 bits. It stays below 2^15: 1/n is far from that where it is not 1. */
PEN_INLINE Ints rounded_box(Reals v, double one)
{
    Reals f = v * (double)(1 << MAX_PRECISION);
    Ints low = to_ints(v * one);
    Bits up = (to_reals(low) < v * one) & (to_reals(to_ints(f + 0.5)) > f);
    return low - __builtin_convertvector(up, Ints);
}

PEN_INLINE Ints round_lanes(const Block *b, uint32_t j, double one, int filter)
{
    return filter == PEN_FILTER_BOX ? rounded_box(b->weights[j], one) : rounded(b->weights[j], one);
}

/* The outputs of a block that are wanted, to their entries; two weights are stored as one. */
PEN_INLINE void round_block(const PenAxisSpec *s, int filter, uint32_t i, const Block *b,
                            PenAxis *a)
{
    const uint32_t n = longest(b), begin = s->first > i ? s->first - i : 0;
    const uint32_t end = PEN_MIN(s->first + s->len - i, (uint32_t)LANES);
    const uint32_t entry = i + begin - s->first, e = s->flip ? s->len - 1 - entry : entry;
    const ptrdiff_t step = s->flip ? -(ptrdiff_t)a->taps : (ptrdiff_t)a->taps;
    const double one = 1 << a->precision;
    for (uint32_t j = 0; j < a->taps; j += 2) {
        Ints even = {0}, odd = {0};
        int16_t *to = a->weights + (size_t)e * a->taps + j;
        if (j < n)
            even = round_lanes(b, j, one, filter);
        if (j + 1 < n)
            odd = round_lanes(b, j + 1, one, filter);
        even = (even & 0xffff) | (Ints)((Words)odd << 16);
        for (uint32_t k = begin; k < end; k++, to += step)
            memcpy(to, (const int32_t *)&even + k, sizeof(int32_t));
    }
}

PEN_INLINE void round_all(const PenAxisSpec *s, int filter, const Blocks *blocks, PenAxis *a)
{
    for (uint32_t i = 0; i < blocks->n; i++)
        round_block(s, filter, (blocks->from + i) * LANES, block_at(blocks, blocks->from + i), a);
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* Where the entries begin, and how many weights each has room for. */
PEN_INLINE void list_entries(const PenAxisSpec *s, const Blocks *blocks, PenAxis *a)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < s->len; i++) {
        const uint32_t at = s->first + i, e = s->flip ? s->len - 1 - i : i;
        const Block *b = block_at(blocks, at / LANES);
        a->at[e] = (uint32_t)b->first[at % LANES];
        a->count[e] = (uint32_t)b->count[at % LANES];
        n = PEN_MAX(n, a->count[e]);
    }
    a->taps = (n + 1) / 2 * 2;
}

PEN_INLINE void weigh_axis(const PenAxisSpec *s, void *scratch, PenAxis *a)
{
    const PenAxisShape k = pen__axis_shape(s);
    const Blocks blocks = blocks_in(scratch, s);
    a->precision = precision_for(weigh_by_filter(&k, s->filter, &blocks));
    list_entries(s, &blocks, a);
    if (s->filter == PEN_FILTER_BOX)
        round_all(s, PEN_FILTER_BOX, &blocks, a);
    else
        round_all(s, PEN_FILTER_BILINEAR, &blocks, a);
}

#endif
