/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of tone_c.c, 32 values at a time, or 96 where channels differ. */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "base/attr.h"
#include "dsp/dsp_impl.h"

PEN_INLINE __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

PEN_INLINE void store(uint8_t *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

/* ---- tables ---- */

/* 16 values of a table are one shuffle, which gives 0 where its index is negative. Indices go down
 * by 16 from shuffle to shuffle: all up to the value's own 16 take part, and because each is stored
 * as its difference (xor) from the one before, only the last one is left. Values from 128 on are
 * negative, and stay so in a saturating subtraction; with their highest bit flipped it is the other
 * way round. */
typedef struct Shuffles {
    __m128i of[16];
} Shuffles;

static void make_shuffles(const uint8_t table[256], Shuffles *ret)
{
    for (int k = 0; k < 16; k++) {
        __m128i v = _mm_loadu_si128((const __m128i *)(table + 16 * k));
        if (k % 8)
            v = _mm_xor_si128(v, _mm_loadu_si128((const __m128i *)(table + 16 * (k - 1))));
        ret->of[k] = v;
    }
}

PEN_INLINE __m256i look_up(const Shuffles *s, __m256i x)
{
    const __m256i down = _mm256_set1_epi8(16);
    __m256i high = _mm256_xor_si256(x, _mm256_set1_epi8(-128)), sum = _mm256_setzero_si256();
    for (int k = 0; k < 8; k++) {
        __m256i a = _mm256_broadcastsi128_si256(s->of[k]);
        __m256i b = _mm256_broadcastsi128_si256(s->of[k + 8]);
        sum = _mm256_xor_si256(sum, _mm256_shuffle_epi8(a, x));
        sum = _mm256_xor_si256(sum, _mm256_shuffle_epi8(b, high));
        x = _mm256_subs_epi8(x, down);
        high = _mm256_subs_epi8(high, down);
    }
    return sum;
}

static size_t look_up_one(uint8_t *p, size_t bytes, const uint8_t table[256])
{
    Shuffles s;
    size_t i = 0;
    make_shuffles(table, &s);
    for (; i + 32 <= bytes; i += 32)
        store(p + i, look_up(&s, load(p + i)));
    return i;
}

/* Bytes whose place in 32 is `first`, `first` + 3, ... */
static __m256i thirds(int first)
{
    uint8_t mask[32];
    for (int i = 0; i < 32; i++)
        mask[i] = i % 3 == first ? 255 : 0;
    return load(mask);
}

/* One from each of three, where its mask is. */
PEN_INLINE __m256i join(__m256i a, __m256i b, __m256i c, const __m256i masks[3])
{
    a = _mm256_and_si256(a, masks[0]);
    b = _mm256_and_si256(b, masks[1]);
    c = _mm256_and_si256(c, masks[2]);
    return _mm256_or_si256(_mm256_or_si256(a, b), c);
}

/* In three vectors of interleaved pixels, the bytes of a channel are in places that differ between
 * the three: a vector of one channel is joined from them, and they from these, without a shuffle.
 */
static size_t look_up_three(uint8_t *p, size_t bytes, const uint8_t tables[3][256])
{
    const __m256i r[3] = {thirds(0), thirds(1), thirds(2)};
    const __m256i g[3] = {r[1], r[2], r[0]}, b[3] = {r[2], r[0], r[1]};
    Shuffles s[3];
    size_t i = 0;
    for (int c = 0; c < 3; c++)
        make_shuffles(tables[c], &s[c]);
    for (; i + 96 <= bytes; i += 96) {
        __m256i x = load(p + i), y = load(p + i + 32), z = load(p + i + 64);
        __m256i red = look_up(&s[0], join(x, y, z, r));
        __m256i green = look_up(&s[1], join(x, y, z, g));
        __m256i blue = look_up(&s[2], join(x, y, z, b));
        store(p + i, join(red, green, blue, r));
        store(p + i + 32, join(blue, red, green, r));
        store(p + i + 64, join(green, blue, red, r));
    }
    return i;
}

void pen__lookup_avx2(uint8_t *p, size_t n, uint32_t channels, const uint8_t tables[][256])
{
    size_t done, bytes = n * channels;
    bool is_one = channels == 1 || (memcmp(tables[0], tables[1], 256) == 0 &&
                                    memcmp(tables[0], tables[2], 256) == 0);
    done = is_one ? look_up_one(p, bytes, tables[0]) : look_up_three(p, bytes, tables);
    if (is_one)
        pen__lookup_c(p + done, bytes - done, 1, tables);
    else
        pen__lookup_c(p + done, (bytes - done) / 3, 3, tables);
}

/* ---- invert, posterize, solarize ---- */

void pen__fold_avx2(uint8_t *p, size_t n, uint8_t mask, uint8_t from, uint8_t flip)
{
    const __m256i masks = _mm256_set1_epi8((char)mask), flips = _mm256_set1_epi8((char)flip);
    const __m256i first = _mm256_set1_epi8((char)from);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i v = _mm256_and_si256(load(p + i), masks);
        __m256i is_from = _mm256_cmpeq_epi8(_mm256_max_epu8(v, first), v);
        store(p + i, _mm256_xor_si256(v, _mm256_and_si256(is_from, flips)));
    }
    pen__fold_c(p + i, n - i, mask, from, flip);
}

/* ---- the least and the largest ---- */

/* Three vectors in turn: in each of them a place always has the same channel. */
void pen__extremes_avx2(const uint8_t *p, size_t n, uint32_t channels, uint8_t low[],
                        uint8_t high[])
{
    __m256i least[3], most[3];
    size_t i = 0, bytes = n * channels;
    for (int k = 0; k < 3; k++) {
        least[k] = _mm256_set1_epi8(-1);
        most[k] = _mm256_setzero_si256();
    }
    for (; i + 96 <= bytes; i += 96)
        for (int k = 0; k < 3; k++) {
            __m256i v = load(p + i + 32 * k);
            least[k] = _mm256_min_epu8(least[k], v);
            most[k] = _mm256_max_epu8(most[k], v);
        }
    pen__extremes_c((const uint8_t *)least, 96 / channels, channels, low, high);
    uint8_t low_of_most[3], high_of_most[3];
    pen__extremes_c((const uint8_t *)most, 96 / channels, channels, low_of_most, high_of_most);
    uint8_t low_of_rest[3], high_of_rest[3];
    pen__extremes_c(p + i, (bytes - i) / channels, channels, low_of_rest, high_of_rest);
    for (uint32_t c = 0; c < channels; c++) {
        low[c] = PEN_MIN(low[c], low_of_rest[c]);
        high[c] = PEN_MAX(high_of_most[c], high_of_rest[c]);
    }
}
