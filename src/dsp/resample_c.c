/* SPDX-License-Identifier: Apache-2.0 */
/* The reference. Sums are of integers, so that any order of adding gives the same pixels. */
#include <string.h>

#include "base/attr.h"
#include "dsp/axis.h"
#include "dsp/dsp_impl.h"

enum { CHUNK = 256 /* samples of a row that are summed up at a time */ };

/* `channels` is a constant wherever these are inlined, so that the sums stay in registers. */
#define EACH_CHANNEL _Pragma("GCC unroll 4") for (size_t c = 0; c < channels; c++)

/* Three bytes are moved as four: the next pixel, or the slack, takes the fourth. */
PEN_INLINE void pick_row(const uint8_t *src, uint8_t *dst, const PenAxis *a, size_t channels)
{
    for (size_t x = 0; x < a->n; x++)
        memcpy(dst + x * channels, src + a->at[x], channels == 3 ? 4 : channels);
}

PEN_INLINE void sum_row(const uint8_t *src, uint8_t *dst, const PenAxis *a, size_t channels)
{
    const uint32_t precision = a->precision;
    for (size_t x = 0; x < a->n; x++, dst += channels) {
        const uint8_t *p = src + a->at[x];
        const int16_t *w = a->weights + x * a->taps, *end = w + a->count[x];
        int32_t sum[4];
        EACH_CHANNEL sum[c] = 1 << (precision - 1);
        for (; w < end; w++, p += channels)
            EACH_CHANNEL sum[c] += p[c] * *w;
        EACH_CHANNEL dst[c] = pen__clip_u8(sum[c] >> precision);
    }
}

PEN_INLINE void across(const uint8_t *src, uint8_t *dst, const PenAxis *a, size_t channels)
{
    if (a->precision)
        sum_row(src, dst, a, channels);
    else
        pick_row(src, dst, a, channels);
}

void pen__across_c(const uint8_t *src, uint8_t *dst, const PenAxis *a, uint32_t channels)
{
    switch (channels) {
    case 1:
        across(src, dst, a, 1);
        break;
    case 2:
        across(src, dst, a, 2);
        break;
    case 3:
        across(src, dst, a, 3);
        break;
    default:
        across(src, dst, a, 4);
        break;
    }
}

void pen__across_two_c(const uint8_t *const src[2], uint8_t *const dst[2], const PenAxis *a,
                       uint32_t channels)
{
    pen__across_c(src[0], dst[0], a, channels);
    pen__across_c(src[1], dst[1], a, channels);
}

/* Up to CHUNK samples from `from` on. Always inlined: with a constant n it is made of vectors. */
PEN_INLINE void down_chunk(const uint8_t *const *rows, const int16_t *weights, uint32_t n_rows,
                           uint32_t precision, size_t from, uint8_t *dst, size_t n)
{
    int32_t sum[CHUNK];
    for (size_t i = 0; i < n; i++)
        sum[i] = 1 << (precision - 1);
    for (uint32_t j = 0; j < n_rows; j++) {
        const uint8_t *src = rows[j] + from;
        const int32_t w = weights[j];
        for (size_t i = 0; i < n; i++)
            sum[i] += src[i] * w;
    }
    for (size_t i = 0; i < n; i++)
        dst[from + i] = pen__clip_u8(sum[i] >> precision);
}

void pen__down_c(const uint8_t *const *rows, const int16_t *weights, uint32_t n_rows,
                 uint32_t precision, uint8_t *dst, size_t n)
{
    size_t i = 0;
    for (; i + CHUNK <= n; i += CHUNK)
        down_chunk(rows, weights, n_rows, precision, i, dst, CHUNK);
    down_chunk(rows, weights, n_rows, precision, i, dst, n - i);
}
