/* SPDX-License-Identifier: Apache-2.0 */
/* Eight pixels of RGB in registers. */
#ifndef PEN_DSP_RGB_AVX2_H
#define PEN_DSP_RGB_AVX2_H

#include <immintrin.h>

#include "base/bytes.h"
#include "dsp/axis.h"

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

#endif
