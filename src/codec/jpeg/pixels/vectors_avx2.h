/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of AVX2 for what makes pixels of samples: 32 samples, and 32 pixels to memory. */
#ifndef PEN_CODEC_JPEG_PIXELS_VECTORS_AVX2_H
#define PEN_CODEC_JPEG_PIXELS_VECTORS_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "codec/jpeg/pixels/pixels_impl.h"

#define V __m256i
#define OP(name) _mm256_##name
#define _mm256_and_si _mm256_and_si256
#define _mm256_loadu_si _mm256_loadu_si256
#define _mm256_storeu_si _mm256_storeu_si256

enum { PIXELS = 32 };

typedef struct Wide { /* values of 16 bits, of pixels with even and with odd numbers */
    V even, odd;
} Wide;

INLINE V load(const uint8_t *p)
{
    return OP(loadu_si)((const V *)p);
}

INLINE V widen(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

INLINE Wide split(V bytes)
{
    return (Wide){OP(and_si)(bytes, OP(set1_epi16)(255)), OP(srli_epi16)(bytes, 8)};
}

/* ---- pixels to memory ----------------------------------------------------------------------- */

/* put_pixels and put_some take 32 bytes of each colour. In every 128 bits they have those of eight
 * pixels with even numbers, then those of eight with odd ones. */

INLINE V both(__m128i v)
{
    return _mm256_broadcastsi128_si256(v);
}

/* Each 128 bits of a, b, c is a third of the 48 bytes of 16 pixels. */
INLINE void put_thirds(V a, V b, V c, uint8_t *rgb)
{
    _mm256_storeu_si256((V *)rgb, _mm256_permute2x128_si256(a, b, 0x20));
    _mm256_storeu_si256((V *)(rgb + 32), _mm256_permute2x128_si256(c, a, 0x30));
    _mm256_storeu_si256((V *)(rgb + 64), _mm256_permute2x128_si256(b, c, 0x31));
}

INLINE V third(V r, V g, V b, __m128i from_r, __m128i from_g, __m128i from_b)
{
    V rg =
        _mm256_or_si256(_mm256_shuffle_epi8(r, both(from_r)), _mm256_shuffle_epi8(g, both(from_g)));
    return _mm256_or_si256(rg, _mm256_shuffle_epi8(b, both(from_b)));
}

/* Where pixel p of 16 is, even ones before odd ones; X is nowhere. */
#define P(p) ((p) / 2 + (p) % 2 * 8)
#define X (-1)
#define SHUFFLE _mm_setr_epi8

INLINE void put_pixels(V r, V g, V b, uint8_t *rgb)
{
    const __m128i r0 = SHUFFLE(P(0), X, X, P(1), X, X, P(2), X, X, P(3), X, X, P(4), X, X, P(5));
    const __m128i g0 = SHUFFLE(X, P(0), X, X, P(1), X, X, P(2), X, X, P(3), X, X, P(4), X, X);
    const __m128i b0 = SHUFFLE(X, X, P(0), X, X, P(1), X, X, P(2), X, X, P(3), X, X, P(4), X);
    const __m128i r1 = SHUFFLE(X, X, P(6), X, X, P(7), X, X, P(8), X, X, P(9), X, X, P(10), X);
    const __m128i g1 = SHUFFLE(P(5), X, X, P(6), X, X, P(7), X, X, P(8), X, X, P(9), X, X, P(10));
    const __m128i b1 = SHUFFLE(X, P(5), X, X, P(6), X, X, P(7), X, X, P(8), X, X, P(9), X, X);
    const __m128i r2 = SHUFFLE(X, P(11), X, X, P(12), X, X, P(13), X, X, P(14), X, X, P(15), X, X);
    const __m128i g2 = SHUFFLE(X, X, P(11), X, X, P(12), X, X, P(13), X, X, P(14), X, X, P(15), X);
    const __m128i b2 =
        SHUFFLE(P(10), X, X, P(11), X, X, P(12), X, X, P(13), X, X, P(14), X, X, P(15));
    put_thirds(third(r, g, b, r0, g0, b0), third(r, g, b, r1, g1, b1), third(r, g, b, r2, g2, b2),
               rgb);
}

INLINE void put_some(V r, V g, V b, uint32_t n, uint8_t *rgb)
{
    uint8_t whole[3 * PIXELS];
    put_pixels(r, g, b, whole);
    memcpy(rgb, whole, 3 * (size_t)n);
}

#endif
