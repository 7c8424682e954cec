/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of colour_c.c, eight pixels at a time. The remaining ones go through C. */
#include <immintrin.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "dsp/axis.h"
#include "dsp/dsp_impl.h"

/* ---- eight pixels in registers ---- */

/* Four pixels in each half, as numbers of 32 bits. */
typedef struct Pixels {
    __m256i r, g, b;
} Pixels;

PEN_INLINE Pixels load_pixels(const uint8_t *p)
{
    __m128i low = _mm_loadu_si128((const __m128i *)p);
    __m128i high = _mm_loadu_si128((const __m128i *)(p + 12));
    __m256i x = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    const __m128i lane = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    const __m256i byte = _mm256_set1_epi32(255);
    x = _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(lane));
    return (Pixels){_mm256_and_si256(x, byte), _mm256_and_si256(_mm256_srli_epi32(x, 8), byte),
                    _mm256_srli_epi32(x, 16)};
}

/* Numbers whose lowest three bytes are red, green and blue. No byte behind the 24 is touched. */
PEN_INLINE void store_joined(uint8_t *p, __m256i x)
{
    const __m128i lane = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    x = _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(lane));
    __m128i high = _mm256_extracti128_si256(x, 1);
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(x));
    _mm_storel_epi64((__m128i *)(p + 12), high);
    pen__store32(p + 20, (uint32_t)_mm_extract_epi32(high, 2));
}

/* Numbers of 0-255. */
PEN_INLINE void store_pixels(uint8_t *p, Pixels v)
{
    store_joined(p, _mm256_or_si256(_mm256_or_si256(v.r, _mm256_slli_epi32(v.g, 8)),
                                    _mm256_slli_epi32(v.b, 16)));
}

/* ---- brightness, contrast, saturation, grey: integers ---- */

PEN_INLINE __m256i blend(__m256i from, __m256i to, __m256i factor)
{
    __m256i way = _mm256_mullo_epi32(factor, _mm256_sub_epi32(to, from));
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(from, 16), way), 16);
}

/* Eight numbers of 32 bits to bytes of 0-255. */
PEN_INLINE __m128i to_bytes(__m256i v)
{
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return _mm_packus_epi16(words, words);
}

void pen__contrast_avx2(uint8_t *p, size_t n, int32_t factor, int32_t mean)
{
    const __m256i f = _mm256_set1_epi32(pen__factor_clip(factor)), m = _mm256_set1_epi32(mean);
    for (; n >= 8; n -= 8, p += 24)
        for (int i = 0; i < 24; i += 8) {
            __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + i)));
            _mm_storel_epi64((__m128i *)(p + i), to_bytes(blend(m, v, f)));
        }
    pen__contrast_c(p, n, factor, mean);
}

void pen__brightness_avx2(uint8_t *p, size_t n, int32_t factor)
{
    pen__contrast_avx2(p, n, factor, 0);
}

PEN_INLINE __m256i luma(Pixels v)
{
    __m256i r = _mm256_mullo_epi32(v.r, _mm256_set1_epi32(19595));
    __m256i g = _mm256_mullo_epi32(v.g, _mm256_set1_epi32(38470));
    __m256i b = _mm256_mullo_epi32(v.b, _mm256_set1_epi32(7471));
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(r, g), b);
    return _mm256_srli_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(0x8000)), 16);
}

PEN_INLINE __m256i clip(__m256i v)
{
    return _mm256_max_epi32(_mm256_min_epi32(v, _mm256_set1_epi32(255)), _mm256_setzero_si256());
}

void pen__saturation_avx2(uint8_t *p, size_t n, int32_t factor)
{
    const __m256i f = _mm256_set1_epi32(pen__factor_clip(factor));
    for (; n >= 8; n -= 8, p += 24) {
        Pixels v = load_pixels(p);
        __m256i grey = luma(v);
        v.r = clip(blend(grey, v.r, f));
        v.g = clip(blend(grey, v.g, f));
        v.b = clip(blend(grey, v.b, f));
        store_pixels(p, v);
    }
    pen__saturation_c(p, n, factor);
}

void pen__grey_avx2(uint8_t *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 24) {
        __m256i grey = luma(load_pixels(p));
        store_pixels(p, (Pixels){grey, grey, grey});
    }
    pen__grey_c(p, n);
}

uint64_t pen__grey_sum_avx2(const uint8_t *p, size_t n)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i sum = zero;
    for (; n >= 8; n -= 8, p += 24) {
        __m256i grey = luma(load_pixels(p));
        sum = _mm256_add_epi64(sum, _mm256_unpacklo_epi32(grey, zero));
        sum = _mm256_add_epi64(sum, _mm256_unpackhi_epi32(grey, zero));
    }
    uint64_t parts[4];
    _mm256_storeu_si256((__m256i *)parts, sum);
    return parts[0] + parts[1] + parts[2] + parts[3] + pen__grey_sum_c(p, n);
}

/* ---- hue ---- */

/* Fewer steps than in C: single precision, and fractions that stay integers. All colours and all
 * values of hue, saturation and value give the same bytes; the checks of the kernels go through all
 * colours. */
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
