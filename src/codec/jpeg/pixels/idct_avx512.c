/* SPDX-License-Identifier: Apache-2.0 */
/* Four blocks at a time, of either order. When some are missing, the last one is done again. */
#include <immintrin.h>

#include "codec/jpeg/pixels/pixels_impl.h"

#define V __m512i
#define OP(name) _mm512_##name
#define _mm512_and_si _mm512_and_si512

#include "codec/jpeg/pixels/idct_x86.h"

typedef struct Four {
    int16_t *coefs[4];
    uint8_t *to[4];
} Four;

INLINE Four four_of(int16_t *coefs, const PenJpegBlock *blocks, uint32_t i, uint32_t n,
                    uint8_t *plane)
{
    Four f;
    for (uint32_t j = 0; j < 4; j++) {
        const PenJpegBlock *b = &blocks[i + j < n ? i + j : n - 1];
        f.coefs[j] = coefs + 64 * (size_t)b->from;
        f.to[j] = plane + b->to;
    }
    return f;
}

/* ---- from memory, whatever the order, to rows ----------------------------------------------- */

/* How the upper or lower half of a block in natural order is picked from one in zigzag order: the
 * places, and which of them are in its second half. */
typedef struct Pick {
    V places;
    __mmask64 second;
} Pick;

static const uint8_t zigzag[64] __attribute__((aligned(64))) = {
    0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42, 3,  8,  12, 17, 25, 30,
    41, 43, 9,  11, 18, 24, 31, 40, 44, 53, 10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38,
    46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63};

INLINE Pick pick_of(const uint8_t *places)
{
    V k = _mm512_cvtepu8_epi16(_mm256_load_si256((const __m256i *)places));
    V second = _mm512_movm_epi16(_mm512_test_epi16_mask(k, _mm512_set1_epi16(32)));
    V low = _mm512_slli_epi16(_mm512_and_si512(k, _mm512_set1_epi16(31)), 1);
    V bytes = _mm512_or_si512(low, _mm512_slli_epi16(low, 8));
    return (Pick){_mm512_or_si512(bytes, _mm512_set1_epi16(0x100)), _mm512_movepi8_mask(second)};
}

INLINE V pick(const Pick *p, V first, V second)
{
    V v = _mm512_permutexvar_epi8(p->places, first);
    return _mm512_mask_permutexvar_epi8(v, p->second, p->places, second);
}

/* Four rows of each of four blocks to four blocks of each of four rows. */
INLINE void rows_of(const V block[4], V ret[4])
{
    V a = _mm512_shuffle_i32x4(block[0], block[1], 0x44);
    V b = _mm512_shuffle_i32x4(block[0], block[1], 0xee);
    V c = _mm512_shuffle_i32x4(block[2], block[3], 0x44);
    V d = _mm512_shuffle_i32x4(block[2], block[3], 0xee);
    ret[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    ret[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
    ret[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    ret[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

INLINE V half_of(const int16_t *block, int half)
{
    return _mm512_load_si512(block + 32 * half);
}

/* ---- to memory ------------------------------------------------------------------------------ */

INLINE void clear(const Four *f, int halves)
{
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < halves; half++)
            _mm512_store_si512(f->coefs[i] + 32 * half, _mm512_setzero_si512());
}

INLINE void store_rows(__m128i rows, uint8_t *to, size_t stride)
{
    _mm_storel_epi64((__m128i *)to, rows);
    _mm_storeh_pi((__m64 *)(to + stride), _mm_castsi128_ps(rows));
}

INLINE void store(const Four *f, const V rows[4], size_t stride)
{
    for (size_t i = 0; i < 4; i++) {
        size_t at = 2 * i * stride;
        store_rows(_mm512_castsi512_si128(rows[i]), f->to[0] + at, stride);
        store_rows(_mm512_extracti32x4_epi32(rows[i], 1), f->to[1] + at, stride);
        store_rows(_mm512_extracti32x4_epi32(rows[i], 2), f->to[2] + at, stride);
        store_rows(_mm512_extracti32x4_epi32(rows[i], 3), f->to[3] + at, stride);
    }
}

/* ---- kernels -------------------------------------------------------------------------------- */

INLINE bool is_beyond(V first_row)
{
    V b = beyond(first_row);
    return __builtin_expect(_mm512_test_epi16_mask(b, b) != 0, 0);
}

INLINE void full(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n, const uint16_t *quant,
                 uint8_t *plane, size_t stride, bool zz)
{
    V q0 = _mm512_loadu_si512(quant), q1 = _mm512_loadu_si512(quant + 32);
    Pick pick0 = pick_of(zigzag), pick1 = pick_of(zigzag + 32);
    for (uint32_t i = 0; i < n; i += 4) {
        Four f = four_of(coefs, blocks, i, n, plane);
        V top[4], bottom[4], x[8], out[4];
        for (int j = 0; j < 4; j++) {
            V first = half_of(f.coefs[j], 0), second = half_of(f.coefs[j], 1);
            top[j] = _mm512_mullo_epi16(zz ? pick(&pick0, first, second) : first, q0);
            bottom[j] = _mm512_mullo_epi16(zz ? pick(&pick1, first, second) : second, q1);
        }
        rows_of(top, x);
        rows_of(bottom, x + 4);
        if (is_beyond(x[0])) {
            PenIdctFn *c = zz ? pen__idct_full_zigzag_c : pen__idct_full_c;
            c(coefs, blocks + i, n - i < 4 ? n - i : 4, quant, plane, stride);
            continue;
        }
        clear(&f, 2);
        full_idct(x, out);
        store(&f, out, stride);
    }
}

/* In zigzag order, too, all of the class is in the first half of a block. What is picked for the
 * four columns at the right is wrong, and not used. */
INLINE void top4(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n, const uint16_t *quant,
                 uint8_t *plane, size_t stride, bool zz)
{
    V q = _mm512_loadu_si512(quant);
    Pick pick0 = pick_of(zigzag);
    for (uint32_t i = 0; i < n; i += 4) {
        Four f = four_of(coefs, blocks, i, n, plane);
        V top[4], x[4], out[4];
        for (int j = 0; j < 4; j++) {
            V half = half_of(f.coefs[j], 0);
            top[j] = zz ? _mm512_permutexvar_epi8(pick0.places, half) : half;
            top[j] = _mm512_mullo_epi16(top[j], q);
        }
        rows_of(top, x);
        if (is_beyond(x[0])) {
            PenIdctFn *c = zz ? pen__idct_full_zigzag_c : pen__idct_full_c;
            c(coefs, blocks + i, n - i < 4 ? n - i : 4, quant, plane, stride);
            continue;
        }
        clear(&f, 1);
        top4_idct(x, out);
        store(&f, out, stride);
    }
}

void pen__idct_full_avx512(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                           const uint16_t *quant, uint8_t *plane, size_t stride)
{
    full(coefs, blocks, n, quant, plane, stride, false);
}

void pen__idct_full_zigzag_avx512(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                                  const uint16_t *quant, uint8_t *plane, size_t stride)
{
    full(coefs, blocks, n, quant, plane, stride, true);
}

void pen__idct_top4_avx512(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                           const uint16_t *quant, uint8_t *plane, size_t stride)
{
    top4(coefs, blocks, n, quant, plane, stride, false);
}

void pen__idct_top4_zigzag_avx512(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                                  const uint16_t *quant, uint8_t *plane, size_t stride)
{
    top4(coefs, blocks, n, quant, plane, stride, true);
}

/* ---- classes -------------------------------------------------------------------------------- */

/* `inside`: a bit for every place of the top left quarter. */
INLINE void classify(const int16_t *coefs, uint32_t n, uint8_t *ret_classes, uint64_t inside)
{
    for (uint32_t i = 0; i < n; i++, coefs += 64) {
        V a = half_of(coefs, 0), b = half_of(coefs, 1);
        uint64_t used = (uint64_t)_mm512_test_epi16_mask(b, b) << 32 | _mm512_test_epi16_mask(a, a);
        ret_classes[i] = (uint8_t)(((used & ~UINT64_C(1)) == 0) + ((used & ~inside) == 0));
    }
}

void pen__classify_avx512(const int16_t *coefs, uint32_t n, uint8_t *ret_classes)
{
    classify(coefs, n, ret_classes, 0x0f0f0f0f);
}

void pen__classify_zigzag_avx512(const int16_t *coefs, uint32_t n, uint8_t *ret_classes)
{
    classify(coefs, n, ret_classes, 0x1063bff);
}
