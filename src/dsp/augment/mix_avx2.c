/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build): the same roundings as in mix_c.c. */
#include <immintrin.h>

#include <penstock/loader.h>

#include "dsp/dsp_impl.h"

typedef struct Weights {
    __m256 own, other;
} Weights;

static inline __m256 weigh(const Weights *w, __m256 a, __m256 b)
{
    return _mm256_add_ps(_mm256_mul_ps(w->own, a), _mm256_mul_ps(w->other, b));
}

static inline __m128i load(const void *p, size_t i, size_t element_bytes)
{
    const uint8_t *at = (const uint8_t *)p + i * element_bytes;
    return element_bytes == 1 ? _mm_loadl_epi64((const __m128i *)(const void *)at)
                              : _mm_loadu_si128((const __m128i *)(const void *)at);
}

static inline __m256 from_u8(__m128i x)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(x));
}

static inline __m256 from_bf16(__m128i x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

/* Eight numbers of 32 bits, none above 65,535, as numbers of 16 bits. */
static inline __m128i narrow(__m256i x)
{
    __m256i pairs = _mm256_packus_epi32(x, x);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 0x08));
}

static inline void mix_8_u8(const Weights *w, const void *a, const void *b, uint8_t *dst, size_t i)
{
    __m256 v = weigh(w, from_u8(load(a, i, 1)), from_u8(load(b, i, 1)));
    __m128i x = narrow(_mm256_cvttps_epi32(_mm256_add_ps(v, _mm256_set1_ps(0.5f))));
    _mm_storel_epi64((__m128i *)(void *)(dst + i), _mm_packus_epi16(x, x));
}

static inline void mix_8_f16(const Weights *w, const void *a, const void *b, uint16_t *dst,
                             size_t i)
{
    __m256 v = weigh(w, _mm256_cvtph_ps(load(a, i, 2)), _mm256_cvtph_ps(load(b, i, 2)));
    _mm_storeu_si128((__m128i *)(void *)(dst + i), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

/* To nearest, ties to even; what is not a number stays none. */
static inline void mix_8_bf16(const Weights *w, const void *a, const void *b, uint16_t *dst,
                              size_t i)
{
    __m256 v = weigh(w, from_bf16(load(a, i, 2)), from_bf16(load(b, i, 2)));
    __m256i bits = _mm256_castps_si256(v), high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    __m256i is_none = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m128i x = narrow(_mm256_blendv_epi8(rounded, quiet, is_none));
    _mm_storeu_si128((__m128i *)(void *)(dst + i), x);
}

static inline void mix_8_f32(const Weights *w, const float *a, const float *b, float *dst, size_t i)
{
    _mm256_storeu_ps(dst + i, weigh(w, _mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
}

void pen__mix_avx2(const PenMix *mix, const void *a, const void *b, void *dst, size_t n)
{
    Weights w = {_mm256_set1_ps(mix->weights[0]), _mm256_set1_ps(mix->weights[1])};
    size_t i = 0, element = pen_dtype_bytes(mix->dtype);
    if (mix->dtype == PEN_U8)
        for (; i + 8 <= n; i += 8)
            mix_8_u8(&w, a, b, dst, i);
    else if (mix->dtype == PEN_F16)
        for (; i + 8 <= n; i += 8)
            mix_8_f16(&w, a, b, dst, i);
    else if (mix->dtype == PEN_BF16)
        for (; i + 8 <= n; i += 8)
            mix_8_bf16(&w, a, b, dst, i);
    else
        for (; i + 8 <= n; i += 8)
            mix_8_f32(&w, a, b, dst, i);
    size_t done = i * element;
    pen__mix_c(mix, (const uint8_t *)a + done, (const uint8_t *)b + done, (uint8_t *)dst + done,
               n - i);
}
