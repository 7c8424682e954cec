/* SPDX-License-Identifier: Apache-2.0 */
/* Across, 16 samples of the result are a vector of sums. A permutation of bytes picks the two
 * inputs of each from a load, and as the next two lie right behind them it is the same for all
 * pairs of weights: only the load moves on. This needs the table in another form (spread below),
 * which is made once for all rows. */
#include <immintrin.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "dsp/axis.h"
#include "dsp/dsp_impl.h"

enum { LANES = 16, WIDE = 64 /* bytes of a vector */ };

PEN_INLINE __m512i load(const void *p)
{
    return _mm512_loadu_si512(p);
}

/* ---- across --------------------------------------------------------------------------------- */

/* For 16 samples: which bytes of the load are the first two inputs of each, then for every pair of
 * weights those of each. */
PEN_INLINE size_t part_bytes(size_t taps)
{
    return WIDE * (1 + taps / 2);
}

PEN_INLINE __m512i sum_part(const uint8_t *src, const uint8_t *part, size_t taps, size_t channels,
                            __m512i half)
{
    const __mmask64 low = 0x5555555555555555;
    const __m512i pick = load(part);
    __m512i sum = half;
    for (size_t t = 0; t < taps; t += 2) {
        __m512i words = _mm512_maskz_permutexvar_epi8(low, pick, load(src + t * channels));
        part += WIDE;
        sum = _mm512_dpwssd_epi32(sum, words, load(part));
    }
    return sum;
}

/* Four vectors of sums to 64 bytes. */
PEN_INLINE __m512i to_bytes(const __m512i *s, __m512i shift)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i a = _mm512_packs_epi32(_mm512_srav_epi32(s[0], shift), _mm512_srav_epi32(s[1], shift));
    __m512i b = _mm512_packs_epi32(_mm512_srav_epi32(s[2], shift), _mm512_srav_epi32(s[3], shift));
    return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(a, b));
}

PEN_INLINE void sum_row(const uint8_t *src, uint8_t *dst, const PenAxis *x, size_t taps,
                        size_t channels)
{
    const __m512i half = _mm512_set1_epi32(1 << (x->precision - 1));
    const __m512i shift = _mm512_set1_epi32((int)x->precision);
    const uint8_t *part = x->parts;
    const uint32_t *from = x->from;
    for (size_t i = 0; i < x->n * channels; i += WIDE, from += 4) {
        __m512i s[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++, part += part_bytes(taps))
            s[j] = sum_part(src + from[j], part, taps, channels, half);
        _mm512_storeu_si512(dst + i, to_bytes(s, shift));
    }
}

void pen__across_avx512(const uint8_t *src, uint8_t *dst, const PenAxis *x, uint32_t channels)
{
    if (!x->parts)
        pen__across_avx2(src, dst, x, channels);
    else if (channels != 3)
        sum_row(src, dst, x, x->taps, channels);
    else if (x->taps == 2)
        sum_row(src, dst, x, 2, 3);
    else if (x->taps == 4)
        sum_row(src, dst, x, 4, 3);
    else if (x->taps == 6)
        sum_row(src, dst, x, 6, 3);
    else if (x->taps == 8)
        sum_row(src, dst, x, 8, 3);
    else
        sum_row(src, dst, x, x->taps, 3);
}

void pen__across_two_avx512(const uint8_t *const src[2], uint8_t *const dst[2], const PenAxis *x,
                            uint32_t channels)
{
    if (!x->parts) {
        pen__across_two_avx2(src, dst, x, channels);
        return;
    }
    pen__across_avx512(src[0], dst[0], x, channels);
    pen__across_avx512(src[1], dst[1], x, channels);
}

/* ---- the table for it ------------------------------------------------------------------------ */

/* Samples i to i + 15: the pixel and the channel of each. */
typedef struct Lanes {
    __m512i pixel, channel;
    __mmask16 wanted;
} Lanes;

PEN_INLINE Lanes lanes_at(size_t i, size_t n, uint32_t channels)
{
    const __m512i count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i c = _mm512_set1_epi32((int)channels);
    __m512i k = _mm512_add_epi32(count, _mm512_set1_epi32((int)(i % channels)));
    /* k / channels: k is at most 18 */
    __m512i of =
        _mm512_srli_epi32(_mm512_mullo_epi32(k, _mm512_set1_epi32((int)(128 / channels + 1))), 7);
    Lanes l = {.channel = _mm512_sub_epi32(k, _mm512_mullo_epi32(of, c)),
               .pixel = _mm512_add_epi32(of, _mm512_set1_epi32((int)(i / channels)))};
    l.wanted = (__mmask16)(n - i >= LANES ? 0xffff : (1u << (n - i)) - 1);
    return l;
}

/* False when the inputs are too far apart for one load. */
static bool spread_part(const PenAxis *x, uint32_t channels, const Lanes *l, uint32_t *ret_from,
                        uint8_t *part)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i at = _mm512_mask_i32gather_epi32(zero, l->wanted, l->pixel, x->at, 4);
    uint32_t from = _mm512_mask_reduce_min_epu32(l->wanted, at);
    __m512i apart = _mm512_maskz_sub_epi32(l->wanted, at, _mm512_set1_epi32((int)from));
    if (_mm512_cmpgt_epu32_mask(apart, _mm512_set1_epi32((int)(WIDE - 2 * channels))))
        return false;
    __m512i first = _mm512_add_epi32(apart, l->channel);
    __m512i next = _mm512_add_epi32(first, _mm512_set1_epi32((int)channels));
    *ret_from = from;
    _mm512_store_si512(part, _mm512_or_si512(first, _mm512_slli_epi32(next, 16)));
    const __m512i pairs = _mm512_set1_epi32((int)(x->taps / 2));
    const __m512i index = _mm512_mullo_epi32(l->pixel, pairs);
    for (size_t t = 0; t < x->taps; t += 2) {
        __m512i w = _mm512_mask_i32gather_epi32(zero, l->wanted, index, x->weights + t, 4);
        part += WIDE;
        _mm512_store_si512(part, w);
    }
    return true;
}

void pen__spread_avx512(PenAxis *x, uint32_t channels)
{
    const size_t n = (size_t)x->n * channels, padded = (n + WIDE - 1) / WIDE * WIDE;
    uint32_t *from = x->room;
    uint8_t *parts = (uint8_t *)x->room + (padded / LANES * sizeof *from + WIDE - 1) / WIDE * WIDE;
    uint8_t *part = parts;
    if (!x->room || !x->precision)
        return;
    for (size_t i = 0; i < padded; i += LANES, part += part_bytes(x->taps)) {
        if (i < n) {
            Lanes l = lanes_at(i, n, channels);
            if (!spread_part(x, channels, &l, &from[i / LANES], part))
                return;
        } else {
            from[i / LANES] = 0;
            memset(part, 0, part_bytes(x->taps));
        }
    }
    x->from = from;
    x->parts = parts;
}

/* ---- down ----------------------------------------------------------------------------------- */

/* Words of two rows are put side by side; in them lie the samples of even and of odd place. */
PEN_INLINE void add_rows(__m512i *s, __m512i a, __m512i b, __m512i weights)
{
    const __m512i byte = _mm512_set1_epi16(255);
    __m512i low = _mm512_unpacklo_epi16(a, b), high = _mm512_unpackhi_epi16(a, b);
    s[0] = _mm512_dpwssd_epi32(s[0], _mm512_and_si512(low, byte), weights);
    s[1] = _mm512_dpwssd_epi32(s[1], _mm512_and_si512(high, byte), weights);
    s[2] = _mm512_dpwssd_epi32(s[2], _mm512_srli_epi16(low, 8), weights);
    s[3] = _mm512_dpwssd_epi32(s[3], _mm512_srli_epi16(high, 8), weights);
}

PEN_INLINE __m512i finish(const __m512i *s, __m512i shift)
{
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    __m512i even =
        _mm512_packs_epi32(_mm512_srav_epi32(s[0], shift), _mm512_srav_epi32(s[1], shift));
    __m512i odd =
        _mm512_packs_epi32(_mm512_srav_epi32(s[2], shift), _mm512_srav_epi32(s[3], shift));
    return _mm512_shuffle_epi8(_mm512_packus_epi16(even, odd), order);
}

void pen__down_avx512(const uint8_t *const *rows, const int16_t *weights, uint32_t n_rows,
                      uint32_t precision, uint8_t *dst, size_t n)
{
    const __m512i half = _mm512_set1_epi32(1 << (precision - 1));
    const __m512i shift = _mm512_set1_epi32((int)precision);
    for (size_t i = 0; i < n; i += WIDE) {
        __m512i s[4] = {half, half, half, half};
        uint32_t j = 0;
        for (; j + 2 <= n_rows; j += 2)
            add_rows(s, load(rows[j] + i), load(rows[j + 1] + i),
                     _mm512_set1_epi32((int)pen__load32(weights + j)));
        if (j < n_rows)
            add_rows(s, load(rows[j] + i), _mm512_setzero_si512(),
                     _mm512_set1_epi32((uint16_t)weights[j]));
        _mm512_storeu_si512(dst + i, finish(s, shift));
    }
}
