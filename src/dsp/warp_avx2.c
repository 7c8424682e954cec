/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels of RGB: the numbers of C, in vectors. A pixel is loaded with the byte behind it. */
#include <immintrin.h>
#include <string.h>

#include "base/attr.h"
#include "dsp/dsp_impl.h"
#include "dsp/warp_impl.h"

/* Offsets have 31 bits. */
static int is_small(const PenWarpRows *r)
{
    const PenBox *held = &r->warp->held;
    return r->channels == 3 && (uint64_t)held->w * held->h * 3 < INT32_MAX;
}

static int32_t fill_of(const PenWarp *w)
{
    return w->fill[0] | w->fill[1] << 8 | w->fill[2] << 16;
}

/* Four pixels of four bytes each become the first 12 bytes. */
static __m128i packed(__m128i pixels)
{
    return _mm_shuffle_epi8(pixels,
                            _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
}

/* The result of n pixels, of which 16 bytes may be written where `wide` says so. */
static void put(uint8_t *dst, __m128i pixels, uint32_t n, int wide)
{
    uint8_t row[16];
    if (wide) {
        _mm_storeu_si128((__m128i *)(void *)dst, packed(pixels));
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)row, packed(pixels));
    memcpy(dst, row, (size_t)n * 3);
}

static __m256i clamped(__m256i v, __m256i last)
{
    return _mm256_min_epi32(_mm256_max_epi32(v, _mm256_setzero_si256()), last);
}

/* -1 where 0 <= v < size. */
static __m256i is_inside(__m256i v, __m256i size)
{
    return _mm256_and_si256(_mm256_cmpgt_epi32(v, _mm256_set1_epi32(-1)),
                            _mm256_cmpgt_epi32(size, v));
}

void pen__warp_fixed_avx2(const PenWarpRows *r, uint8_t *dst)
{
    const PenWarp *w = r->warp;
    const PenBox *held = &w->held;
    if (!is_small(r)) {
        pen__warp_fixed_c(r, dst);
        return;
    }
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i width = _mm256_set1_epi32((int)w->from_width);
    const __m256i height = _mm256_set1_epi32((int)w->from_height);
    const __m256i left = _mm256_set1_epi32((int)held->x), top = _mm256_set1_epi32((int)held->y);
    const __m256i last_x = _mm256_set1_epi32((int)held->w - 1);
    const __m256i last_y = _mm256_set1_epi32((int)held->h - 1);
    const __m256i stride = _mm256_set1_epi32((int)held->w * 3), three = _mm256_set1_epi32(3);
    const __m256i fill = _mm256_set1_epi32(fill_of(w));
    const __m256i step_x = _mm256_set1_epi32(r->step[0]), step_y = _mm256_set1_epi32(r->step[1]);
    __m256i first = _mm256_add_epi32(lane, _mm256_set1_epi32((int)w->window.x));
    __m256i x = _mm256_add_epi32(_mm256_set1_epi32(r->at[0]), _mm256_mullo_epi32(first, step_x));
    __m256i y = _mm256_add_epi32(_mm256_set1_epi32(r->at[1]), _mm256_mullo_epi32(first, step_y));
    for (uint32_t i = 0, n = w->window.w; i < n; i += 8, dst += 24) {
        __m256i column = _mm256_srai_epi32(x, 16), row = _mm256_srai_epi32(y, 16);
        __m256i seen = _mm256_and_si256(is_inside(column, width), is_inside(row, height));
        __m256i pixels = fill;
        if (!_mm256_testz_si256(seen, seen)) {
            column = clamped(_mm256_sub_epi32(column, left), last_x);
            row = clamped(_mm256_sub_epi32(row, top), last_y);
            __m256i at = _mm256_add_epi32(_mm256_mullo_epi32(row, stride),
                                          _mm256_mullo_epi32(column, three));
            pixels = _mm256_i32gather_epi32((const int *)(const void *)r->pixels, at, 1);
            pixels = _mm256_blendv_epi8(fill, pixels, seen);
        }
        put(dst, _mm256_castsi256_si128(pixels), PEN_MIN(n - i, 4u), i + 6 <= n);
        if (i + 4 < n)
            put(dst + 12, _mm256_extracti128_si256(pixels, 1), PEN_MIN(n - i - 4, 4u), i + 10 <= n);
        x = _mm256_add_epi32(x, _mm256_slli_epi32(step_x, 3));
        y = _mm256_add_epi32(y, _mm256_slli_epi32(step_y, 3));
    }
}

/* ---- bilinear -------------------------------------------------------------------------------- */

typedef struct Place { /* of four pixels */
    __m256d x, y;
    __m256d seen;
} Place;

static __m256d linear(const double a[3], __m256d x, double y)
{
    __m256d sum = _mm256_add_pd(_mm256_mul_pd(_mm256_set1_pd(a[0]), x), _mm256_set1_pd(a[1] * y));
    return _mm256_add_pd(sum, _mm256_set1_pd(a[2]));
}

static __m256d is_between(__m256d v, uint32_t size)
{
    return _mm256_and_pd(_mm256_cmp_pd(v, _mm256_setzero_pd(), _CMP_GE_OQ),
                         _mm256_cmp_pd(v, _mm256_set1_pd(size), _CMP_LT_OQ));
}

static Place place(const PenWarp *w, __m256d x, double y)
{
    Place p = {.x = linear(w->a, x, y), .y = linear(w->a + 3, x, y)};
    if (w->perspective) {
        const double a[3] = {w->a[6], w->a[7], 1};
        __m256d depth = linear(a, x, y);
        p.x = _mm256_div_pd(p.x, depth);
        p.y = _mm256_div_pd(p.y, depth);
    }
    p.seen = _mm256_and_pd(is_between(p.x, w->from_width), is_between(p.y, w->from_height));
    return p;
}

static __m128i clamped4(__m128i v, int32_t add, int32_t last)
{
    v = _mm_add_epi32(v, _mm_set1_epi32(add));
    return _mm_min_epi32(_mm_max_epi32(v, _mm_setzero_si128()), _mm_set1_epi32(last));
}

/* Pixels at four places, and their neighbours on the right. */
static void load_pairs(const uint8_t *from, __m128i at, __m128i *ret_left, __m128i *ret_right)
{
    int32_t i[4];
    int64_t p[4];
    _mm_storeu_si128((__m128i *)(void *)i, at);
    for (int k = 0; k < 4; k++)
        memcpy(&p[k], from + i[k], 8);
    __m128 a = _mm_castsi128_ps(_mm_set_epi64x(p[1], p[0]));
    __m128 b = _mm_castsi128_ps(_mm_set_epi64x(p[3], p[2]));
    *ret_left = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88));
    a = _mm_castsi128_ps(_mm_srli_epi64(_mm_castps_si128(a), 24));
    b = _mm_castsi128_ps(_mm_srli_epi64(_mm_castps_si128(b), 24));
    *ret_right = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88));
}

static __m256d between(__m256d a, __m256d b, __m256d d)
{
    return _mm256_add_pd(a, _mm256_mul_pd(_mm256_sub_pd(b, a), d));
}

/* A channel of four pixels, in the lowest bytes. */
static __m128i mixed(const __m128i p[4], __m256d dx, __m256d dy)
{
    const __m128i byte = _mm_set1_epi32(255);
    __m256d v[4];
    for (int i = 0; i < 4; i++)
        v[i] = _mm256_cvtepi32_pd(_mm_and_si128(p[i], byte));
    return _mm256_cvttpd_epi32(between(between(v[0], v[1], dx), between(v[2], v[3], dx), dy));
}

/* At both ends of a row the nearest pixel counts alone: it is one of a pair then, with all of the
 * weight, and what comes out is the same. */
static __m256d weighed(__m256d dx, __m128i column, int32_t last)
{
    __m256i first = _mm256_cvtepi32_epi64(_mm_cmpgt_epi32(_mm_setzero_si128(), column));
    __m256i end = _mm256_cvtepi32_epi64(_mm_cmpgt_epi32(column, _mm_set1_epi32(last)));
    dx = _mm256_andnot_pd(_mm256_castsi256_pd(first), dx);
    return _mm256_blendv_pd(dx, _mm256_set1_pd(1), _mm256_castsi256_pd(end));
}

static __m128i sampled(const PenWarpRows *r, const Place *p)
{
    const PenBox *held = &r->warp->held;
    const __m256d half = _mm256_set1_pd(0.5);
    const __m128i stride = _mm_set1_epi32((int)held->w * 3);
    int32_t last_x = (int32_t)held->w - 2, last_y = (int32_t)held->h - 1;
    __m256d x = _mm256_sub_pd(p->x, half), y = _mm256_sub_pd(p->y, half);
    __m256d left = _mm256_floor_pd(x), top = _mm256_floor_pd(y), dy = _mm256_sub_pd(y, top);
    __m128i column = _mm256_cvttpd_epi32(left), row = _mm256_cvttpd_epi32(top), at[4];
    column = _mm_sub_epi32(column, _mm_set1_epi32((int)held->x));
    __m256d dx = weighed(_mm256_sub_pd(x, left), column, last_x);
    column = clamped4(column, 0, last_x);
    column = _mm_add_epi32(column, _mm_add_epi32(column, column));
    row = _mm_sub_epi32(row, _mm_set1_epi32((int)held->y));
    for (int i = 0; i < 2; i++) {
        __m128i line = _mm_mullo_epi32(clamped4(row, i, last_y), stride);
        load_pairs(r->pixels, _mm_add_epi32(line, column), &at[2 * i], &at[2 * i + 1]);
    }
    __m128i all = mixed(at, dx, dy);
    for (int i = 0; i < 4; i++)
        at[i] = _mm_srli_epi32(at[i], 8);
    all = _mm_or_si128(all, _mm_slli_epi32(mixed(at, dx, dy), 8));
    for (int i = 0; i < 4; i++)
        at[i] = _mm_srli_epi32(at[i], 8);
    return _mm_or_si128(all, _mm_slli_epi32(mixed(at, dx, dy), 16));
}

void pen__warp_bilinear_avx2(const PenWarpRows *r, uint8_t *dst)
{
    const PenWarp *w = r->warp;
    if (!is_small(r) || w->held.w < 2) {
        pen__warp_general(r, dst);
        return;
    }
    const __m128i fill = _mm_set1_epi32(fill_of(w));
    const __m256d lane = _mm256_setr_pd(0.5, 1.5, 2.5, 3.5);
    for (uint32_t i = 0, n = w->window.w; i < n; i += 4, dst += 12) {
        Place p = place(w, _mm256_add_pd(_mm256_set1_pd(w->window.x + i), lane), r->y + 0.5);
        __m128i pixels = fill;
        if (!_mm256_testz_pd(p.seen, p.seen)) {
            __m256i wide = _mm256_permutevar8x32_epi32(_mm256_castpd_si256(p.seen),
                                                       _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
            pixels = _mm_blendv_epi8(fill, sampled(r, &p), _mm256_castsi256_si128(wide));
        }
        put(dst, pixels, PEN_MIN(n - i, 4u), i + 6 <= n);
    }
}
