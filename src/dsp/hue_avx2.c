/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of hue_c.c, eight pixels at a time, with fewer steps: single precision, and fractions
 * that stay integers. That nothing is lost was tried with all colours and all of hue, saturation
 * and value; the checks of the kernels go through all colours. */
#include "base/attr.h"
#include "dsp/dsp_impl.h"
#include "dsp/rgb_avx2.h"

typedef struct Hsv {
    __m256i h, s, v;
} Hsv;

PEN_INLINE __m256 to_float(__m256i v)
{
    return _mm256_cvtepi32_ps(v);
}

/* Where two channels are equal, either answer is the same colour in the end. */
PEN_INLINE Hsv to_hsv(Pixels c)
{
    const __m256i one = _mm256_set1_epi32(1);
    __m256i most = _mm256_max_epi32(_mm256_max_epi32(c.r, c.g), c.b);
    __m256i least = _mm256_min_epi32(_mm256_min_epi32(c.r, c.g), c.b);
    __m256i range = _mm256_sub_epi32(most, least);
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(c.r, c.g), c.b);
    /* From the largest to the one between: most - (sum - most - least). */
    __m256i way = _mm256_sub_epi32(_mm256_add_epi32(_mm256_add_epi32(most, most), least), sum);
    __m256i is_r = _mm256_cmpeq_epi32(c.r, most), is_g = _mm256_cmpeq_epi32(c.g, most);
    /* On the circle the one behind the largest: if it is the smallest, hue is before the largest.
     */
    __m256i behind = _mm256_blendv_epi8(_mm256_blendv_epi8(c.g, c.r, is_g), c.b, is_r);
    __m256i before = _mm256_cmpeq_epi32(behind, least);
    __m256i third = _mm256_blendv_epi8(_mm256_set1_epi32(4), _mm256_set1_epi32(2), is_g);
    __m256i center = _mm256_andnot_si256(is_r, third);
    center = _mm256_sub_epi32(center, _mm256_or_si256(before, one)); /* + 1 or - 1 */
    __m256 x = _mm256_div_ps(to_float(way), to_float(_mm256_max_epi32(range, one)));
    x = _mm256_xor_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(before, 31)));
    __m256 turn = _mm256_add_ps(to_float(center), x);
    __m256 is_less = _mm256_cmp_ps(turn, _mm256_setzero_ps(), _CMP_LT_OQ);
    turn = _mm256_div_ps(turn, _mm256_set1_ps(6));
    turn = _mm256_add_ps(turn, _mm256_and_ps(is_less, _mm256_set1_ps(1)));
    __m256 s = _mm256_div_ps(to_float(_mm256_mullo_epi32(range, _mm256_set1_epi32(255))),
                             to_float(_mm256_max_epi32(most, one)));
    return (Hsv){_mm256_cvttps_epi32(_mm256_mul_ps(turn, _mm256_set1_ps(255))),
                 _mm256_cvttps_epi32(s), most};
}

/* v * part / whole, rounded; no value lies in the middle. */
PEN_INLINE __m256i share(__m256i v, __m256i part, float inverse)
{
    __m256 x = _mm256_mul_ps(to_float(_mm256_mullo_epi32(v, part)), _mm256_set1_ps(inverse));
    return _mm256_cvttps_epi32(_mm256_add_ps(x, _mm256_set1_ps(0.5f)));
}

/* Bytes of a pixel's three values: the largest, the smallest, the one between. */
#define PICK(r, g, b) ((r) | (g) << 8 | (b) << 16)

PEN_INLINE __m256i from_hsv(Hsv c)
{
    const __m256i picks =
        _mm256_setr_epi32(PICK(0, 2, 1), PICK(2, 0, 1), PICK(1, 0, 2), PICK(1, 2, 0), PICK(2, 1, 0),
                          PICK(0, 1, 2), PICK(0, 2, 1), 0);
    const __m256i lanes =
        _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
    const __m256i full = _mm256_set1_epi32(255), whole = _mm256_set1_epi32(255 * 255);
    __m256i turns = _mm256_mullo_epi32(c.h, _mm256_set1_epi32(6));
    __m256i sixth = _mm256_srli_epi32(_mm256_mullo_epi32(turns, _mm256_set1_epi32(32897)), 23);
    __m256i f = _mm256_sub_epi32(turns, _mm256_mullo_epi32(sixth, full));
    __m256 is_odd = _mm256_castsi256_ps(_mm256_slli_epi32(sixth, 31));
    __m256i back = _mm256_sub_epi32(full, f);
    f = _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(back), _mm256_castsi256_ps(f), is_odd));
    __m256i least = share(c.v, _mm256_sub_epi32(full, c.s), 1 / 255.0f);
    __m256i between = share(c.v, _mm256_sub_epi32(whole, _mm256_mullo_epi32(c.s, f)), 1 / 65025.0f);
    __m256i values = _mm256_or_si256(
        c.v, _mm256_or_si256(_mm256_slli_epi32(least, 8), _mm256_slli_epi32(between, 16)));
    __m256i pick = _mm256_add_epi32(_mm256_permutevar8x32_epi32(picks, sixth), lanes);
    return _mm256_shuffle_epi8(values, pick);
}

void pen__hue_avx2(uint8_t *p, size_t n, int32_t shift)
{
    const __m256i by = _mm256_set1_epi32(shift), byte = _mm256_set1_epi32(255);
    for (; n >= 8; n -= 8, p += 24) {
        Hsv c = to_hsv(load_pixels(p));
        c.h = _mm256_and_si256(_mm256_add_epi32(c.h, by), byte);
        store_joined(p, from_hsv(c));
    }
    pen__hue_c(p, n, shift);
}
