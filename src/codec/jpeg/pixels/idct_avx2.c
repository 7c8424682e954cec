/* SPDX-License-Identifier: Apache-2.0 */
/* Two blocks at a time. When their number is odd, the last one is done twice. */
#include <immintrin.h>

#include "codec/jpeg/pixels/pixels_impl.h"

#define V __m256i
#define OP(name) _mm256_##name
#define _mm256_and_si _mm256_and_si256

#include "codec/jpeg/pixels/idct_x86.h"

typedef struct Two {
    int16_t *coefs[2];
    uint8_t *to[2];
} Two;

INLINE Two two_of(int16_t *coefs, const PenJpegBlock *blocks, uint32_t i, uint32_t n,
                  uint8_t *plane)
{
    const PenJpegBlock *a = &blocks[i], *b = &blocks[i + (i + 1 < n)];
    return (Two){{coefs + 64 * (size_t)a->from, coefs + 64 * (size_t)b->from},
                 {plane + a->to, plane + b->to}};
}

INLINE V load_row(const Two *t, int row, const uint16_t *quant)
{
    __m128i low = _mm_load_si128((const __m128i *)(t->coefs[0] + 8 * row));
    __m128i high = _mm_load_si128((const __m128i *)(t->coefs[1] + 8 * row));
    __m128i q = _mm_loadu_si128((const __m128i *)(quant + 8 * row));
    return _mm256_mullo_epi16(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1),
                              _mm256_broadcastsi128_si256(q));
}

INLINE void clear(const Two *t, int rows)
{
    for (int i = 0; i < 2; i++)
        for (int row = 0; row < rows; row += 2)
            _mm256_store_si256((__m256i *)(t->coefs[i] + 8 * row), _mm256_setzero_si256());
}

INLINE void store_rows(__m128i rows, uint8_t *to, size_t stride)
{
    _mm_storel_epi64((__m128i *)to, rows);
    _mm_storeh_pi((__m64 *)(to + stride), _mm_castsi128_ps(rows));
}

INLINE void store(const Two *t, const V rows[4], size_t stride)
{
    for (size_t i = 0; i < 4; i++) {
        store_rows(_mm256_castsi256_si128(rows[i]), t->to[0] + 2 * i * stride, stride);
        store_rows(_mm256_extracti128_si256(rows[i], 1), t->to[1] + 2 * i * stride, stride);
    }
}

INLINE bool is_beyond(V first_row)
{
    V b = beyond(first_row);
    return __builtin_expect(!_mm256_testz_si256(b, b), 0);
}

/* `rows` is a constant wherever this is inlined: the rows of coefficients that may not be zero. */
INLINE void idct(int rows, int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                 const uint16_t *quant, uint8_t *plane, size_t stride)
{
    for (uint32_t i = 0; i < n; i += 2) {
        Two t = two_of(coefs, blocks, i, n, plane);
        V x[8], out[4];
        for (int row = 0; row < rows; row++)
            x[row] = load_row(&t, row, quant);
        if (is_beyond(x[0])) {
            pen__idct_full_c(coefs, blocks + i, n - i < 2 ? n - i : 2, quant, plane, stride);
            continue;
        }
        clear(&t, rows);
        if (rows == 8)
            full_idct(x, out);
        else
            top4_idct(x, out);
        store(&t, out, stride);
    }
}

void pen__idct_full_avx2(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                         const uint16_t *quant, uint8_t *plane, size_t stride)
{
    idct(8, coefs, blocks, n, quant, plane, stride);
}

void pen__idct_top4_avx2(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                         const uint16_t *quant, uint8_t *plane, size_t stride)
{
    idct(4, coefs, blocks, n, quant, plane, stride);
}

/* Everything but the first coefficient, and of it what is outside of the top left quarter. */
void pen__classify_avx2(const int16_t *coefs, uint32_t n, uint8_t *ret_classes)
{
    const V not_first =
        _mm256_setr_epi16(0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const V right = _mm256_setr_epi16(0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0, -1, -1, -1, -1);
    for (uint32_t i = 0; i < n; i++, coefs += 64) {
        const V *rows = (const V *)coefs;
        V top = _mm256_or_si256(_mm256_and_si256(_mm256_load_si256(rows), not_first),
                                _mm256_load_si256(rows + 1));
        V bottom = _mm256_or_si256(_mm256_load_si256(rows + 2), _mm256_load_si256(rows + 3));
        V any = _mm256_or_si256(top, bottom);
        V far = _mm256_or_si256(_mm256_and_si256(top, right), bottom);
        ret_classes[i] = (uint8_t)(_mm256_testz_si256(any, any) + _mm256_testz_si256(far, far));
    }
}
