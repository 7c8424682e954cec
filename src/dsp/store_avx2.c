/* SPDX-License-Identifier: Apache-2.0 */
/* Values are computed where the table says that this gives its very values, which costs less than
 * looking them up. */
#include <immintrin.h>

#include <penstock/loader.h>

#include "base/attr.h"
#include "dsp/dsp_impl.h"

PEN_INLINE __m128i load16(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

/* Per lane, what belongs to its channel. */
typedef struct Steps {
    __m256 mean, inverse, rest;
} Steps;

PEN_INLINE __m256 value_of(__m256i x, const Steps *s)
{
    const __m256 inverse = _mm256_set1_ps(PEN_INVERSE_255);
    const __m256 rest = _mm256_set1_ps(PEN_INVERSE_255_REST);
    __m256 v = _mm256_cvtepi32_ps(x);
    v = _mm256_sub_ps(_mm256_fmadd_ps(v, inverse, _mm256_mul_ps(v, rest)), s->mean);
    return _mm256_fmadd_ps(v, s->inverse, _mm256_mul_ps(v, s->rest));
}

/* To nearest, ties to even, on the upper half of each lane. */
PEN_INLINE __m128i to_bf16(__m256 v)
{
    __m256i x = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));
    x = _mm256_add_epi32(x, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    x = _mm256_srli_epi32(x, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}

/* Eight values to element i. `dtype` is a constant wherever this is inlined. */
PEN_INLINE void put(void *dst, size_t i, __m256 v, int dtype)
{
    uint16_t *half = (uint16_t *)dst + i;
    if (dtype == PEN_F32)
        _mm256_storeu_ps((float *)dst + i, v);
    else if (dtype == PEN_F16)
        _mm_storeu_si128((__m128i *)half, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    else
        _mm_storeu_si128((__m128i *)half, to_bf16(v));
}

static void *element(const PenStoreTable *t, void *dst, size_t i)
{
    return (uint8_t *)dst + i * t->element_bytes;
}

/* Interleaved: the fewest vectors that are whole pixels. What is left over goes through the table.
 */
PEN_INLINE uint32_t store_rows(const PenStoreTable *t, const uint8_t *row, uint32_t n, void *dst,
                               int dtype)
{
    const size_t block = t->channels == 3 ? 24 : 8, all = (size_t)n * t->channels;
    Steps s[3];
    for (size_t i = 0; i < 3; i++)
        s[i] = (Steps){_mm256_loadu_ps(t->means + i * 8), _mm256_loadu_ps(t->inverses + i * 8),
                       _mm256_loadu_ps(t->rests + i * 8)};
    size_t done = 0;
    for (; done + block <= all; done += block)
        for (size_t i = 0; i * 8 < block; i++) {
            __m128i x = _mm_loadl_epi64((const __m128i *)(row + done + i * 8));
            put(dst, done + i * 8, value_of(_mm256_cvtepu8_epi32(x), &s[i]), dtype);
        }
    return (uint32_t)(done / t->channels);
}

/* Planes of three: of eight pixels, four in each half, the bytes of a channel are shuffled to where
 * they are numbers of 32 bits. */
PEN_INLINE uint32_t store_planes(const PenStoreTable *t, const uint8_t *row, uint32_t n, void *dst,
                                 size_t plane, int dtype)
{
    const __m256i first =
        _mm256_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1, 0, -1, -1, -1,
                         3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1);
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i masks[3] = {first, _mm256_add_epi32(first, one),
                              _mm256_add_epi32(first, _mm256_add_epi32(one, one))};
    Steps s[3];
    for (uint32_t c = 0; c < 3; c++)
        s[c] = (Steps){_mm256_set1_ps(t->mean[c]), _mm256_set1_ps(t->inverse[c]),
                       _mm256_set1_ps(t->rest[c])};
    uint32_t done = 0;
    for (; done + 8 <= n; done += 8, row += 24) {
        __m256i x =
            _mm256_inserti128_si256(_mm256_castsi128_si256(load16(row)), load16(row + 12), 1);
        for (uint32_t c = 0; c < 3; c++)
            put(dst, c * plane + done, value_of(_mm256_shuffle_epi8(x, masks[c]), &s[c]), dtype);
    }
    return done;
}

PEN_INLINE uint32_t store_most(const PenStoreTable *t, const uint8_t *row, uint32_t n, void *dst,
                               size_t plane, int dtype)
{
    if (!t->by_steps)
        return 0;
    if (!plane || t->channels == 1)
        return store_rows(t, row, n, dst, dtype);
    return t->channels == 3 ? store_planes(t, row, n, dst, plane, dtype) : 0;
}

void pen__store_avx2(const PenStoreTable *t, const uint8_t *row, uint32_t n, void *dst,
                     size_t plane_stride)
{
    uint32_t done = 0;
    if (t->dtype == PEN_U8 && plane_stride) {
        pen__planes_u8_avx2(row, t->channels, n, dst, plane_stride);
        return;
    }
    if (t->dtype == PEN_F32)
        done = store_most(t, row, n, dst, plane_stride, PEN_F32);
    else if (t->dtype == PEN_F16)
        done = store_most(t, row, n, dst, plane_stride, PEN_F16);
    else if (t->dtype == PEN_BF16)
        done = store_most(t, row, n, dst, plane_stride, PEN_BF16);
    size_t at = plane_stride ? done : (size_t)done * t->channels;
    pen__store_c(t, row + (size_t)done * t->channels, n - done, element(t, dst, at), plane_stride);
}

/* Of 16 pixels each of three loads has some bytes of every channel: [channel][load]. */
static const int8_t planes_masks[3][3][16] = {
    {{0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13}},
    {{1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14}},
    {{2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15}}};

PEN_INLINE __m128i gather(const __m128i x[3], int c)
{
    const int8_t(*m)[16] = planes_masks[c];
    __m128i v = _mm_shuffle_epi8(x[0], load16(m[0]));
    v = _mm_or_si128(v, _mm_shuffle_epi8(x[1], load16(m[1])));
    return _mm_or_si128(v, _mm_shuffle_epi8(x[2], load16(m[2])));
}

void pen__planes_u8_avx2(const uint8_t *row, uint32_t channels, uint32_t n, uint8_t *dst,
                         size_t plane_stride)
{
    uint32_t done = 0;
    if (channels == 3)
        for (; done + 16 <= n; done += 16, row += 48) {
            const __m128i x[3] = {load16(row), load16(row + 16), load16(row + 32)};
            for (int c = 0; c < 3; c++)
                _mm_storeu_si128((__m128i *)(dst + (size_t)c * plane_stride + done), gather(x, c));
        }
    pen__planes_u8_c(row, channels, n - done, dst + done, plane_stride);
}
