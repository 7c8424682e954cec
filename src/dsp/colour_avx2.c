/* SPDX-License-Identifier: Apache-2.0 */
/* The integers of colour_c.c, eight at a time. What is left over goes through C. */
#include "base/attr.h"
#include "dsp/dsp_impl.h"
#include "dsp/rgb_avx2.h"

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
