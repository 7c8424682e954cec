/* SPDX-License-Identifier: Apache-2.0 */
/* Four pixels at a time: pairs of inputs, widened to 16 bits, times pairs of weights. There are no
 * tails: entries of a table are there in fours, and rows have slack to read from and write to. */
#include <immintrin.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "dsp/axis.h"
#include "dsp/dsp_impl.h"

PEN_INLINE __m128i load16(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

PEN_INLINE __m128i load8(const void *p)
{
    return _mm_loadl_epi64((const __m128i *)p);
}

PEN_INLINE __m128i load4(const void *p)
{
    return _mm_cvtsi32_si128((int)pen__load32(p));
}

PEN_INLINE __m256i join(__m128i low, __m128i high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Bytes of a load of 16 that are the inputs `a` and `b` of a pair, channel by channel. */
#define LANE3(a, b)                                                                                \
    (char)(a), -1, (char)(b), -1, (char)((a) + 1), -1, (char)((b) + 1), -1, (char)((a) + 2), -1,   \
        (char)((b) + 2), -1, -1, -1, -1, -1
#define LANE4(a, b)                                                                                \
    (char)(a), -1, (char)(b), -1, (char)((a) + 1), -1, (char)((b) + 1), -1, (char)((a) + 2), -1,   \
        (char)((b) + 2), -1, (char)((a) + 3), -1, (char)((b) + 3), -1

typedef struct Masks {
    __m256i pair[2]; /* of the first two inputs of a load, of the next two */
    __m256i pack;    /* results of two pixels without gaps */
} Masks;

PEN_INLINE Masks masks_of(size_t channels)
{
    const __m128i a3 = _mm_setr_epi8(LANE3(0, 3)), b3 = _mm_setr_epi8(LANE3(6, 9));
    const __m128i a4 = _mm_setr_epi8(LANE4(0, 4)), b4 = _mm_setr_epi8(LANE4(8, 12));
    const __m128i pack = _mm_setr_epi8(0, 1, 2, 4, 5, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    return channels == 3 ? (Masks){{join(a3, a3), join(b3, b3)}, join(pack, pack)}
                         : (Masks){{join(a4, a4), join(b4, b4)}, _mm256_setzero_si256()};
}

/* The weights t to t + 3 of four outputs, `taps` apart. */
PEN_INLINE __m256i load_weights(const int16_t *w, size_t taps, size_t t)
{
    if (taps == 4)
        return _mm256_loadu_si256((const __m256i *)w);
    return join(_mm_unpacklo_epi64(load8(w + t), load8(w + taps + t)),
                _mm_unpacklo_epi64(load8(w + 2 * taps + t), load8(w + 3 * taps + t)));
}

/* Sums of four outputs: 0 and 2 in `a`, 1 and 3 in `b`. */
typedef struct Sums {
    __m256i a, b;
} Sums;

PEN_INLINE __m256i add_pair(__m256i sum, __m256i pixels, __m256i mask, __m256i weights)
{
    __m256i words = _mm256_shuffle_epi8(pixels, mask);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(words, weights));
}

PEN_INLINE Sums sum_group(const uint8_t *src, const uint32_t *at, const int16_t *w, size_t taps,
                          __m256i half, const Masks *m, size_t channels)
{
    const uint8_t *p[4] = {src + at[0], src + at[1], src + at[2], src + at[3]};
    Sums s = {half, half};
    size_t t = 0;
    for (; t + 4 <= taps; t += 4) {
        size_t o = t * channels;
        __m256i a = join(load16(p[0] + o), load16(p[2] + o));
        __m256i b = join(load16(p[1] + o), load16(p[3] + o));
        __m256i weights = load_weights(w, taps, t);
        s.a = add_pair(s.a, a, m->pair[0], _mm256_shuffle_epi32(weights, 0x00));
        s.b = add_pair(s.b, b, m->pair[0], _mm256_shuffle_epi32(weights, 0xaa));
        s.a = add_pair(s.a, a, m->pair[1], _mm256_shuffle_epi32(weights, 0x55));
        s.b = add_pair(s.b, b, m->pair[1], _mm256_shuffle_epi32(weights, 0xff));
    }
    if (t < taps) {
        size_t o = t * channels;
        __m256i a = join(load8(p[0] + o), load8(p[2] + o));
        __m256i b = join(load8(p[1] + o), load8(p[3] + o));
        __m256i wa = join(load4(w + t), load4(w + 2 * taps + t));
        __m256i wb = join(load4(w + taps + t), load4(w + 3 * taps + t));
        s.a = add_pair(s.a, a, m->pair[0], _mm256_shuffle_epi32(wa, 0));
        s.b = add_pair(s.b, b, m->pair[0], _mm256_shuffle_epi32(wb, 0));
    }
    return s;
}

PEN_INLINE void sum_row(const uint8_t *src, uint8_t *dst, const PenAxis *x, size_t taps,
                        size_t channels)
{
    const Masks m = masks_of(channels);
    const __m256i half = _mm256_set1_epi32(1 << (x->precision - 1));
    const __m128i shift = _mm_cvtsi32_si128((int)x->precision);
    const int16_t *w = x->weights;
    for (size_t i = 0; i < x->n; i += 4, w += 4 * taps, dst += 4 * channels) {
        Sums s = sum_group(src, x->at + i, w, taps, half, &m, channels);
        s.a = _mm256_sra_epi32(s.a, shift);
        s.b = _mm256_sra_epi32(s.b, shift);
        __m256i v = _mm256_packs_epi32(s.a, s.b);
        v = _mm256_packus_epi16(v, v);
        if (channels == 3)
            v = _mm256_shuffle_epi8(v, m.pack);
        _mm_storel_epi64((__m128i *)dst, _mm256_castsi256_si128(v));
        _mm_storel_epi64((__m128i *)(dst + 2 * channels), _mm256_extracti128_si256(v, 1));
    }
}

/* Of one channel: four outputs of four inputs each are 16 words. */
static void sum_row_1(const uint8_t *src, uint8_t *dst, const PenAxis *x)
{
    const __m256i half = _mm256_set1_epi32(1 << (x->precision - 1));
    const __m128i shift = _mm_cvtsi32_si128((int)x->precision);
    const size_t taps = x->taps;
    const int16_t *w = x->weights;
    for (size_t i = 0; i < x->n; i += 4, w += 4 * taps, dst += 4) {
        const uint32_t *at = x->at + i;
        __m256i sum = _mm256_setzero_si256();
        for (size_t t = 0; t < taps; t += 4) {
            const uint8_t *p = src + t;
            __m128i low = _mm_unpacklo_epi32(load4(p + at[0]), load4(p + at[1]));
            __m128i high = _mm_unpacklo_epi32(load4(p + at[2]), load4(p + at[3]));
            __m256i words = _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(low, high));
            __m256i weights =
                t + 4 <= taps
                    ? load_weights(w, taps, t)
                    : join(_mm_unpacklo_epi64(load4(w + t), load4(w + taps + t)),
                           _mm_unpacklo_epi64(load4(w + 2 * taps + t), load4(w + 3 * taps + t)));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(words, weights));
        }
        sum = _mm256_add_epi32(_mm256_hadd_epi32(sum, sum), half);
        sum = _mm256_packs_epi32(_mm256_sra_epi32(sum, shift), sum);
        sum = _mm256_packus_epi16(sum, sum);
        __m128i v =
            _mm_unpacklo_epi16(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        pen__store32(dst, (uint32_t)_mm_cvtsi128_si32(v));
    }
}

void pen__across_avx2(const uint8_t *src, uint8_t *dst, const PenAxis *x, uint32_t channels)
{
    if (!x->precision || channels == 2)
        pen__across_c(src, dst, x, channels);
    else if (channels == 1)
        sum_row_1(src, dst, x);
    else if (channels == 4)
        sum_row(src, dst, x, x->taps, 4);
    else if (x->taps == 4)
        sum_row(src, dst, x, 4, 3);
    else
        sum_row(src, dst, x, x->taps, 3);
}

/* ---- two rows ------------------------------------------------------------------------------- */

/* One of them in each half. Both have the same weights, so that a weight goes to all of a vector
 * and no shuffle is needed for it: the more weights an output has, the more of them that spares. */
PEN_INLINE void sum_two(const uint8_t *const src[2], const uint32_t *at, const int16_t *w,
                        size_t taps, size_t channels, const Masks *m, __m256i s[4])
{
    size_t t = 0;
    for (; t + 4 <= taps; t += 4)
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            size_t o = at[i] + t * channels;
            __m256i pixels = join(load16(src[0] + o), load16(src[1] + o));
            const int16_t *p = w + i * taps + t;
            s[i] = add_pair(s[i], pixels, m->pair[0], _mm256_set1_epi32((int)pen__load32(p)));
            s[i] = add_pair(s[i], pixels, m->pair[1], _mm256_set1_epi32((int)pen__load32(p + 2)));
        }
    if (t < taps)
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            size_t o = at[i] + t * channels;
            __m256i pixels = join(load8(src[0] + o), load8(src[1] + o));
            __m256i weights = _mm256_set1_epi32((int)pen__load32(w + i * taps + t));
            s[i] = add_pair(s[i], pixels, m->pair[0], weights);
        }
}

PEN_INLINE void sum_rows(const uint8_t *const src[2], uint8_t *const dst[2], const PenAxis *x,
                         size_t taps, size_t channels)
{
    const Masks m = masks_of(channels);
    const __m128i pack3 = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m256i half = _mm256_set1_epi32(1 << (x->precision - 1));
    const __m128i shift = _mm_cvtsi32_si128((int)x->precision);
    const int16_t *w = x->weights;
    for (size_t i = 0; i < x->n; i += 4, w += 4 * taps) {
        __m256i s[4] = {half, half, half, half};
        sum_two(src, x->at + i, w, taps, channels, &m, s);
        for (size_t k = 0; k < 4; k++)
            s[k] = _mm256_sra_epi32(s[k], shift);
        __m256i v =
            _mm256_packus_epi16(_mm256_packs_epi32(s[0], s[1]), _mm256_packs_epi32(s[2], s[3]));
        if (channels == 3)
            v = _mm256_shuffle_epi8(v, join(pack3, pack3));
        _mm_storeu_si128((__m128i *)(dst[0] + i * channels), _mm256_castsi256_si128(v));
        _mm_storeu_si128((__m128i *)(dst[1] + i * channels), _mm256_extracti128_si256(v, 1));
    }
}

void pen__across_two_avx2(const uint8_t *const src[2], uint8_t *const dst[2], const PenAxis *x,
                          uint32_t channels)
{
    if (!x->precision || channels < 3) {
        pen__across_avx2(src[0], dst[0], x, channels);
        pen__across_avx2(src[1], dst[1], x, channels);
    } else if (channels == 4) {
        sum_rows(src, dst, x, x->taps, 4);
    } else if (x->taps == 4) {
        sum_rows(src, dst, x, 4, 3);
    } else {
        sum_rows(src, dst, x, x->taps, 3);
    }
}

/* ---- down ----------------------------------------------------------------------------------- */

/* Sums of 32 bytes, in the order in which unpacking and packing leaves them. */
typedef struct Block {
    __m256i v[4];
} Block;

PEN_INLINE void add_rows(Block *s, __m256i a, __m256i b, __m256i weights)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    __m256i words[4] = {_mm256_unpacklo_epi8(low, zero), _mm256_unpackhi_epi8(low, zero),
                        _mm256_unpacklo_epi8(high, zero), _mm256_unpackhi_epi8(high, zero)};
    for (int i = 0; i < 4; i++)
        s->v[i] = _mm256_add_epi32(s->v[i], _mm256_madd_epi16(words[i], weights));
}

PEN_INLINE __m256i finish(const Block *s, __m128i shift)
{
    __m256i low =
        _mm256_packs_epi32(_mm256_sra_epi32(s->v[0], shift), _mm256_sra_epi32(s->v[1], shift));
    __m256i high =
        _mm256_packs_epi32(_mm256_sra_epi32(s->v[2], shift), _mm256_sra_epi32(s->v[3], shift));
    return _mm256_packus_epi16(low, high);
}

PEN_INLINE __m256i load32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

void pen__down_avx2(const uint8_t *const *rows, const int16_t *weights, uint32_t n_rows,
                    uint32_t precision, uint8_t *dst, size_t n)
{
    const __m256i half = _mm256_set1_epi32(1 << (precision - 1));
    const __m128i shift = _mm_cvtsi32_si128((int)precision);
    for (size_t i = 0; i < n; i += 32) {
        Block s = {{half, half, half, half}};
        uint32_t j = 0;
        for (; j + 2 <= n_rows; j += 2)
            add_rows(&s, load32(rows[j] + i), load32(rows[j + 1] + i),
                     _mm256_set1_epi32((int)pen__load32(weights + j)));
        if (j < n_rows)
            add_rows(&s, load32(rows[j] + i), _mm256_setzero_si256(),
                     _mm256_set1_epi32((uint16_t)weights[j]));
        _mm256_storeu_si256((__m256i *)(dst + i), finish(&s, shift));
    }
}
