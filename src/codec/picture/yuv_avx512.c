/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/pixels/vectors_avx512.h"
#include "codec/picture/yuv_impl.h"

/* Value i of the even and of the odd samples is at this place of 64. */
#define EVEN(i, odd) (2 * (i) + (odd))
#define ALL_WORDS(of, x)                                                                           \
    {                                                                                              \
        EIGHT(of, 0, x), EIGHT(of, 8, x), EIGHT(of, 16, x), EIGHT(of, 24, x)                       \
    }

static const uint16_t words[2][32]
    __attribute__((aligned(64))) = {ALL_WORDS(EVEN, 0), ALL_WORDS(EVEN, 1)};

PEN_INLINE Wide split_words(const uint8_t *p)
{
    V a = load(p), b = load(p + 64);
    return (Wide){_mm512_permutex2var_epi16(a, _mm512_load_si512(words[0]), b),
                  _mm512_permutex2var_epi16(a, _mm512_load_si512(words[1]), b)};
}

PEN_INLINE V in_order(V bytes)
{
    const __m128i order = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(order));
}

PEN_INLINE void put_gray(V bytes, uint8_t *pixels)
{
    _mm512_storeu_si512(pixels, in_order(bytes));
}

PEN_INLINE void put_some_gray(V bytes, uint32_t n, uint8_t *pixels)
{
    _mm512_mask_storeu_epi8(pixels, first_bytes(n), in_order(bytes));
}

/* Needs the above. */
#include "codec/picture/yuv_x86.h"

PEN_YUV_TIER(avx512, make_row)
