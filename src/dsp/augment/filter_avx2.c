/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of filter_c.c, 16 values at a time. The remaining ones go through C. */
#include <immintrin.h>

#include "base/attr.h"
#include "dsp/dsp_impl.h"

PEN_INLINE __m256i load16(const int16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

PEN_INLINE __m256i load_wide(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

/* ---- sharpness ---- */

/* The sums of three rows, of n values and up to 15 more. */
PEN_INLINE void add_rows(const uint8_t *const rows[3], size_t at, int16_t *to, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __m256i sum = _mm256_add_epi16(load_wide(rows[0] + at + i), load_wide(rows[1] + at + i));
        sum = _mm256_add_epi16(sum, load_wide(rows[2] + at + i));
        _mm256_storeu_si256((__m256i *)(to + i), sum);
    }
}

/* (sum + 6) / 13, exact for all sums of nine values. */
PEN_INLINE __m256i smooth(__m256i sum)
{
    return _mm256_mulhi_epu16(_mm256_add_epi16(sum, _mm256_set1_epi16(6)), _mm256_set1_epi16(5042));
}

/* A factor of 16.16 as two numbers of 16 bits. */
typedef struct Factor {
    __m256i whole, part;
} Factor;

/* The product's upper half has to be that of a signed number and an unsigned one. */
PEN_INLINE __m256i blend(__m256i from, __m256i to, Factor f)
{
    __m256i way = _mm256_sub_epi16(to, from);
    __m256i part = _mm256_mulhi_epu16(f.part, way);
    part = _mm256_sub_epi16(part, _mm256_and_si256(f.part, _mm256_srai_epi16(way, 15)));
    return _mm256_add_epi16(_mm256_add_epi16(from, part), _mm256_mullo_epi16(f.whole, way));
}

PEN_INLINE __m128i to_bytes(__m256i v)
{
    return _mm_packus_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

/* Sums of columns first, as many as stay in the first cache: each is part of three pixels. */
void pen__sharpen_avx2(const uint8_t *const rows[3], uint8_t *to, size_t n, uint32_t channels,
                       int32_t factor)
{
    enum { MOST = 512 };
    int16_t sums[MOST + 32];
    int32_t clipped = pen__factor_clip(factor);
    Factor f = {_mm256_set1_epi16((short)(clipped >> 16)), _mm256_set1_epi16((short)clipped)};
    size_t sides = 2 * (size_t)channels, done = 0; /* of the first pixel's left neighbour */
    while (n >= done + sides + 16) {
        size_t some = PEN_MIN(n - sides - done, (size_t)MOST) / 16 * 16;
        add_rows(rows, done, sums, some + sides);
        for (size_t i = 0; i < some; i += 16) {
            const int16_t *s = sums + i;
            __m256i here = load_wide(rows[1] + done + i + channels);
            __m256i sum = _mm256_add_epi16(load16(s), load16(s + channels));
            sum = _mm256_add_epi16(sum, load16(s + sides));
            sum = _mm256_add_epi16(sum, _mm256_slli_epi16(here, 2));
            __m256i v = blend(smooth(sum), here, f);
            _mm_storeu_si128((__m128i *)(to + done + i + channels), to_bytes(v));
        }
        done += some;
    }
    const uint8_t *const rest[3] = {rows[0] + done, rows[1] + done, rows[2] + done};
    pen__sharpen_c(rest, to + done, n - done, channels, factor);
}

/* ---- blur ---- */

PEN_INLINE __m256i add_weighed(__m256i sum, __m256i v, __m256i weight)
{
    return _mm256_add_epi16(sum, _mm256_mulhrs_epi16(v, weight));
}

void pen__widen_avx2(const uint8_t *p, int16_t *to, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(to + i),
                            _mm256_slli_epi16(load_wide(p + i), PEN_BLUR_BITS));
    pen__widen_c(p + i, to + i, n - i);
}

void pen__blur_across_avx2(const int16_t *row, int16_t *to, size_t n, uint32_t channels,
                           const int16_t *weights, uint32_t radius)
{
    const int16_t *middle = row + (size_t)radius * channels;
    const __m256i zero = _mm256_setzero_si256(), first = _mm256_set1_epi16(weights[0]);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const int16_t *left = middle + i, *right = middle + i;
        __m256i a = add_weighed(zero, load16(left), first);
        __m256i b = add_weighed(zero, load16(left + 16), first);
        for (uint32_t k = 1; k <= radius; k++) {
            __m256i w = _mm256_set1_epi16(weights[k]);
            left -= channels;
            right += channels;
            a = add_weighed(a, _mm256_add_epi16(load16(left), load16(right)), w);
            b = add_weighed(b, _mm256_add_epi16(load16(left + 16), load16(right + 16)), w);
        }
        _mm256_storeu_si256((__m256i *)(to + i), a);
        _mm256_storeu_si256((__m256i *)(to + i + 16), b);
    }
    pen__blur_across_c(row + i, to + i, n - i, channels, weights, radius);
}

PEN_INLINE __m256i round_up(__m256i v)
{
    return _mm256_srai_epi16(_mm256_add_epi16(v, _mm256_set1_epi16(1 << (PEN_BLUR_BITS - 1))),
                             PEN_BLUR_BITS);
}

PEN_INLINE void blur_down(const int16_t *const *middle, uint8_t *to, size_t i,
                          const int16_t *weights, uint32_t radius)
{
    const __m256i zero = _mm256_setzero_si256(), first = _mm256_set1_epi16(weights[0]);
    __m256i a = add_weighed(zero, load16(middle[0] + i), first);
    __m256i b = add_weighed(zero, load16(middle[0] + i + 16), first);
    for (uint32_t k = 1; k <= radius; k++) {
        const int16_t *above = *(middle - k) + i, *below = middle[k] + i;
        __m256i w = _mm256_set1_epi16(weights[k]);
        a = add_weighed(a, _mm256_add_epi16(load16(above), load16(below)), w);
        b = add_weighed(b, _mm256_add_epi16(load16(above + 16), load16(below + 16)), w);
    }
    __m256i bytes = _mm256_packus_epi16(round_up(a), round_up(b));
    _mm256_storeu_si256((__m256i *)(to + i), _mm256_permute4x64_epi64(bytes, 0xd8));
}

/* The last values of a row are made twice rather than one by one. */
void pen__blur_down_avx2(const int16_t *const *rows, uint8_t *to, size_t n, const int16_t *weights,
                         uint32_t radius)
{
    size_t i = 0;
    if (n < 32) {
        pen__blur_down_c(rows, to, n, weights, radius);
        return;
    }
    for (; i + 32 <= n; i += 32)
        blur_down(rows + radius, to, i, weights, radius);
    if (i < n)
        blur_down(rows + radius, to, n - 32, weights, radius);
}
