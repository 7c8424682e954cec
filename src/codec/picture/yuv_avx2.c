/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/pixels/vectors_avx2.h"
#include "codec/picture/yuv_impl.h"

/* Samples 16 * i to 16 * i + 7, and the same from 8 on, in the two halves of a vector: packed, they
 * are in order. */
PEN_INLINE V load_words(const uint8_t *p)
{
    __m128i low = _mm_loadu_si128((const __m128i *)p);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                   _mm_loadu_si128((const __m128i *)(p + 32)), 1);
}

PEN_INLINE Wide split_words(const uint8_t *p)
{
    const V low = _mm256_set1_epi32(0xffff);
    V a = load_words(p), b = load_words(p + 16);
    return (Wide){
        _mm256_packus_epi32(_mm256_and_si256(a, low), _mm256_and_si256(b, low)),
        _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16)),
    };
}

PEN_INLINE void put_gray(V bytes, uint8_t *pixels)
{
    const __m128i order = SHUFFLE(P(0), P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8), P(9), P(10),
                                  P(11), P(12), P(13), P(14), P(15));
    _mm256_storeu_si256((V *)pixels, _mm256_shuffle_epi8(bytes, both(order)));
}

PEN_INLINE void put_some_gray(V bytes, uint32_t n, uint8_t *pixels)
{
    uint8_t all[PIXELS];
    put_gray(bytes, all);
    memcpy(pixels, all, n);
}

/* Needs the above. */
#include "codec/picture/yuv_x86.h"

PEN_YUV_TIER(avx2, make_row)
