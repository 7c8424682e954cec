/* SPDX-License-Identifier: Apache-2.0 */
/* Two blocks at a time, one in each half of a vector; otherwise as libjpeg-turbo's jidctred-sse2.
 */
#include <immintrin.h>

#include "codec/jpeg/pixels/idct_reduced.h"

/* Row k of both blocks, dequantized. */
typedef struct Rows {
    __m256i x[8];
    __m256i below; /* all bits of rows that 4 x 4 takes, but for the first */
} Rows;

INLINE __m256i join(const int16_t *a, const int16_t *b)
{
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)a)),
        _mm_loadu_si128((const __m128i *)(const void *)b), 1);
}

INLINE Rows load_rows(const int16_t *a, const int16_t *b, const uint16_t *quant)
{
    Rows r = {.below = _mm256_setzero_si256()};
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        __m256i row = join(a + 8 * k, b + 8 * k);
        const __m128i *q = (const __m128i *)(const void *)(quant + 8 * k);
        if (k && k != 4)
            r.below = _mm256_or_si256(r.below, row);
        r.x[k] = _mm256_mullo_epi16(row, _mm256_broadcastsi128_si256(_mm_loadu_si128(q)));
    }
    return r;
}

/* Weights of two values of 16 bits side by side. */
#define PAIR(a, b) _mm256_set1_epi32((int)((uint32_t)(b) << 16 | ((a)&0xffff)))

INLINE __m256i descaled(__m256i sum, int shift)
{
    return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << (shift - 1))), shift);
}

/* ---- 4 x 4 ---------------------------------------------------------------------------------- */

/* Value 0 in the upper halves of words; the others in pairs. */
INLINE void lines_of_4(__m256i x0, __m256i x13, __m256i x57, __m256i x26, __m256i ret[4])
{
    __m256i zero = _mm256_srai_epi32(x0, 2);
    __m256i even = _mm256_madd_epi16(x26, PAIR(PEN_F_1_847, -PEN_F_0_765));
    __m256i outer = _mm256_add_epi32(_mm256_madd_epi16(x13, PAIR(PEN_F_2_562, PEN_F_0_899)),
                                     _mm256_madd_epi16(x57, PAIR(-F_0_601, -F_0_509)));
    __m256i inner = _mm256_add_epi32(_mm256_madd_epi16(x13, PAIR(F_1_061, -F_2_172)),
                                     _mm256_madd_epi16(x57, PAIR(F_1_451, -F_0_211)));
    __m256i plus = _mm256_add_epi32(zero, even), minus = _mm256_sub_epi32(zero, even);
    ret[0] = _mm256_add_epi32(plus, outer);
    ret[1] = _mm256_add_epi32(minus, inner);
    ret[2] = _mm256_sub_epi32(minus, inner);
    ret[3] = _mm256_sub_epi32(plus, outer);
}

/* Columns: four rows of eight values. */
INLINE void columns_of_4(const Rows *r, __m256i ret[4])
{
    const __m256i none = _mm256_setzero_si256(), *x = r->x;
    __m256i low[4], high[4];
    lines_of_4(_mm256_unpacklo_epi16(none, x[0]), _mm256_unpacklo_epi16(x[1], x[3]),
               _mm256_unpacklo_epi16(x[5], x[7]), _mm256_unpacklo_epi16(x[2], x[6]), low);
    lines_of_4(_mm256_unpackhi_epi16(none, x[0]), _mm256_unpackhi_epi16(x[1], x[3]),
               _mm256_unpackhi_epi16(x[5], x[7]), _mm256_unpackhi_epi16(x[2], x[6]), high);
    /* A block without rows: the sum of each half is zero. */
    __m256i any = _mm256_or_si256(r->below, _mm256_shuffle_epi32(r->below, 0x4e));
    any = _mm256_or_si256(any, _mm256_shuffle_epi32(any, 0xb1));
    __m256i empty = _mm256_cmpeq_epi32(any, none), shifted = _mm256_slli_epi16(x[0], 2);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++)
        ret[k] = _mm256_blendv_epi8(_mm256_packs_epi32(descaled(low[k], 12), descaled(high[k], 12)),
                                    shifted, empty);
}

/* Rows, transposed before and behind: the 16 samples of each block. */
INLINE __m256i rows_of_4(const __m256i b[4])
{
    __m256i t0 = _mm256_unpacklo_epi16(b[0], b[1]), t1 = _mm256_unpackhi_epi16(b[0], b[1]);
    __m256i u0 = _mm256_unpacklo_epi16(b[2], b[3]), u1 = _mm256_unpackhi_epi16(b[2], b[3]);
    __m256i c01 = _mm256_unpacklo_epi32(t0, u0), c23 = _mm256_unpackhi_epi32(t0, u0);
    __m256i c45 = _mm256_unpacklo_epi32(t1, u1), c67 = _mm256_unpackhi_epi32(t1, u1);
    __m256i d[4];
    lines_of_4(_mm256_unpacklo_epi16(_mm256_setzero_si256(), c01), _mm256_unpackhi_epi16(c01, c23),
               _mm256_unpackhi_epi16(c45, c67), _mm256_unpacklo_epi16(c23, c67), d);
    __m256i p = _mm256_packs_epi32(descaled(d[0], 19), descaled(d[2], 19));
    __m256i q = _mm256_packs_epi32(descaled(d[1], 19), descaled(d[3], 19));
    __m256i low = _mm256_unpacklo_epi16(p, q), high = _mm256_unpackhi_epi16(p, q);
    __m256i bytes =
        _mm256_packs_epi16(_mm256_unpacklo_epi32(low, high), _mm256_unpackhi_epi32(low, high));
    return _mm256_xor_si256(bytes, _mm256_set1_epi8(-128));
}

INLINE void store_4(uint8_t *to, size_t stride, __m128i samples)
{
    uint32_t v[4];
    _mm_storeu_si128((__m128i *)(void *)v, samples);
    for (size_t y = 0; y < 4; y++)
        memcpy(to + y * stride, &v[y], 4);
}

INLINE void idct_two_4(const int16_t *a, const int16_t *b, const uint16_t *quant, uint8_t *to_a,
                       uint8_t *to_b, size_t stride)
{
    Rows r = load_rows(a, b, quant);
    __m256i between[4];
    columns_of_4(&r, between);
    __m256i samples = rows_of_4(between);
    store_4(to_a, stride, _mm256_castsi256_si128(samples));
    store_4(to_b, stride, _mm256_extracti128_si256(samples, 1));
}

/* ---- 2 x 2 ---------------------------------------------------------------------------------- */

INLINE __m256i odd_sum(__m256i x13, __m256i x57)
{
    return _mm256_add_epi32(_mm256_madd_epi16(x13, PAIR(F_3_624, -F_1_272)),
                            _mm256_madd_epi16(x57, PAIR(F_0_850, -F_0_720)));
}

INLINE void store_2(uint8_t *to, size_t stride, __m128i samples)
{
    uint32_t v = (uint32_t)_mm_cvtsi128_si32(samples), second = v >> 16;
    memcpy(to, &v, 2);
    memcpy(to + stride, &second, 2);
}

INLINE void idct_two_2(const int16_t *a, const int16_t *b, const uint16_t *quant, uint8_t *to_a,
                       uint8_t *to_b, size_t stride)
{
    const __m256i none = _mm256_setzero_si256();
    const __m256i weights = _mm256_broadcastsi128_si256(
        _mm_setr_epi16(0, F_3_624, 0, -F_1_272, 0, F_0_850, 0, -F_0_720));
    Rows r = load_rows(a, b, quant);
    const __m256i *x = r.x;
    __m256i odd0 = odd_sum(_mm256_unpacklo_epi16(x[1], x[3]), _mm256_unpacklo_epi16(x[5], x[7]));
    __m256i odd1 = odd_sum(_mm256_unpackhi_epi16(x[1], x[3]), _mm256_unpackhi_epi16(x[5], x[7]));
    __m256i zero0 = _mm256_srai_epi32(_mm256_unpacklo_epi16(none, x[0]), 1);
    __m256i zero1 = _mm256_srai_epi32(_mm256_unpackhi_epi16(none, x[0]), 1);
    __m256i first = descaled(_mm256_add_epi32(zero0, odd0), 13);
    __m256i second = descaled(_mm256_sub_epi32(zero0, odd0), 13);
    /* The first value of a row keeps 32 bits, the others 16. */
    __m256i zero = _mm256_slli_epi32(_mm256_unpacklo_epi32(first, second), 15);
    first = _mm256_packs_epi32(first, descaled(_mm256_add_epi32(zero1, odd1), 13));
    second = _mm256_packs_epi32(second, descaled(_mm256_sub_epi32(zero1, odd1), 13));
    __m256i odd =
        _mm256_hadd_epi32(_mm256_madd_epi16(first, weights), _mm256_madd_epi16(second, weights));
    odd = _mm256_hadd_epi32(odd, odd);
    __m256i left = descaled(_mm256_add_epi32(zero, odd), 20);
    __m256i right = descaled(_mm256_sub_epi32(zero, odd), 20);
    __m256i v = _mm256_unpacklo_epi32(left, right);
    v = _mm256_packs_epi32(v, v);
    v = _mm256_xor_si256(_mm256_packs_epi16(v, v), _mm256_set1_epi8(-128));
    store_2(to_a, stride, _mm256_castsi256_si128(v));
    store_2(to_b, stride, _mm256_extracti128_si256(v, 1));
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* An odd one at the end is taken twice. */
#define REDUCED_TWO(name, size, zigzag)                                                            \
    void name(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n, const uint16_t *quant,       \
              uint8_t *plane, size_t stride)                                                       \
    {                                                                                              \
        for (uint32_t i = 0; i < n; i += 2) {                                                      \
            const PenJpegBlock *one = &blocks[i], *two = &blocks[i + 1 < n ? i + 1 : i];           \
            int16_t *a = coefs + 64 * (size_t)one->from, *b = coefs + 64 * (size_t)two->from;      \
            int16_t sorted[2][64];                                                                 \
            if (zigzag) {                                                                          \
                sort(a, sorted[0]);                                                                \
                sort(b, sorted[1]);                                                                \
            }                                                                                      \
            idct_two_##size(zigzag ? sorted[0] : a, zigzag ? sorted[1] : b, quant,                 \
                            plane + one->to, plane + two->to, stride);                             \
            memset(a, 0, 64 * sizeof *a);                                                          \
            memset(b, 0, 64 * sizeof *b);                                                          \
        }                                                                                          \
    }

REDUCED_TWO(pen__idct_4_avx2, 4, false)
REDUCED_TWO(pen__idct_2_avx2, 2, false)
REDUCED_TWO(pen__idct_4_zigzag_avx2, 4, true)
REDUCED_TWO(pen__idct_2_zigzag_avx2, 2, true)
