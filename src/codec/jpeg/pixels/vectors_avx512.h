/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of AVX-512 for what makes pixels of samples: 64 samples, and 64 pixels to memory. */
#ifndef PEN_CODEC_JPEG_PIXELS_VECTORS_AVX512_H
#define PEN_CODEC_JPEG_PIXELS_VECTORS_AVX512_H

#include <immintrin.h>

#include "codec/jpeg/pixels/pixels_impl.h"

#define V __m512i
#define OP(name) _mm512_##name
#define _mm512_and_si _mm512_and_si512
#define _mm512_loadu_si _mm512_loadu_si512
#define _mm512_storeu_si _mm512_storeu_si512

enum { PIXELS = 64 };

typedef struct Wide { /* values of 16 bits, of pixels with even and with odd numbers */
    V even, odd;
} Wide;

INLINE V load(const uint8_t *p)
{
    return OP(loadu_si)((const V *)p);
}

INLINE V widen(const uint8_t *p)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)p));
}

INLINE Wide split(V bytes)
{
    return (Wide){OP(and_si)(bytes, OP(set1_epi16)(255)), OP(srli_epi16)(bytes, 8)};
}

/* ---- pixels to memory ----------------------------------------------------------------------- */

/* put_pixels and put_some take 64 bytes of each colour. In every 128 bits they have those of eight
 * pixels with even numbers, then those of eight with odd ones. */

/* 192 bytes of pixels are three vectors. A colour has every third byte of them, and no two of its
 * 64 are at the same place (mod 64): one permutation brings all of them there, and then each vector
 * is put together from the three colours by places alone.
 *
 * At place i is the pixel p with 3 * p + colour = i (mod 64); 43 is the inverse of 3. Of 16 pixels
 * the even ones are packed before the odd ones. */
#define PACKED(p) ((p) / 16 * 16 + (p) % 16 / 2 + (p) % 2 * 8)
#define FROM(i, colour) PACKED(43 * ((i) + 64 - (colour)) % 64)
#define EIGHT(of, i, x)                                                                            \
    of((i), x), of((i) + 1, x), of((i) + 2, x), of((i) + 3, x), of((i) + 4, x), of((i) + 5, x),    \
        of((i) + 6, x), of((i) + 7, x)
#define ALL(of, x)                                                                                 \
    {                                                                                              \
        EIGHT(of, 0, x), EIGHT(of, 8, x), EIGHT(of, 16, x), EIGHT(of, 24, x), EIGHT(of, 32, x),    \
            EIGHT(of, 40, x), EIGHT(of, 48, x), EIGHT(of, 56, x)                                   \
    }

static const uint8_t places[3][64]
    __attribute__((aligned(64))) = {ALL(FROM, 0), ALL(FROM, 1), ALL(FROM, 2)};

/* Places i with i % 3 = 0, 1, 2. */
#define THIRD_0 UINT64_C(0x9249249249249249)
#define THIRD_1 UINT64_C(0x2492492492492492)
#define THIRD_2 UINT64_C(0x4924924924924924)

INLINE V placed(V bytes, int colour)
{
    return _mm512_permutexvar_epi8(_mm512_load_si512(places[colour]), bytes);
}

INLINE V merge(V r, V g, V b, __mmask64 green_places, __mmask64 blue_places)
{
    return _mm512_mask_mov_epi8(_mm512_mask_mov_epi8(r, green_places, g), blue_places, b);
}

/* A bit for each of the first n of 64 bytes; n may be negative or more. */
INLINE __mmask64 first_bytes(int64_t n)
{
    return n < 0 ? 0 : n > 63 ? ~UINT64_C(0) : _bzhi_u64(~UINT64_C(0), (uint32_t)n);
}

INLINE void put_vectors(const V out[3], uint8_t *rgb)
{
    for (int i = 0; i < 3; i++)
        _mm512_storeu_si512(rgb + 64 * i, out[i]);
}

INLINE void put_bytes(const V out[3], int64_t n, uint8_t *rgb)
{
    for (int i = 0; i < 3; i++)
        _mm512_mask_storeu_epi8(rgb + 64 * i, first_bytes(n - 64 * i), out[i]);
}

INLINE void interleave(V r, V g, V b, V ret[3])
{
    r = placed(r, 0);
    g = placed(g, 1);
    b = placed(b, 2);
    ret[0] = merge(r, g, b, THIRD_1, THIRD_2);
    ret[1] = merge(r, g, b, THIRD_0, THIRD_1);
    ret[2] = merge(r, g, b, THIRD_2, THIRD_0);
}

INLINE void put_pixels(V r, V g, V b, uint8_t *rgb)
{
    V out[3];
    interleave(r, g, b, out);
    put_vectors(out, rgb);
}

INLINE void put_some(V r, V g, V b, uint32_t n, uint8_t *rgb)
{
    V out[3];
    interleave(r, g, b, out);
    put_bytes(out, 3 * (int64_t)n, rgb);
}

#endif
