/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the tiers share. */
#ifndef PEN_CODEC_PICTURE_YUV_IMPL_H
#define PEN_CODEC_PICTURE_YUV_IMPL_H

#include <stddef.h>
#include <string.h>

#include "base/attr.h"
#include "codec/picture/yuv.h"

PenYuvFn pen__yuv_full_8_c, pen__yuv_full_16_c, pen__yuv_half_8_c, pen__yuv_half_16_c,
    pen__yuv_gray_8_c, pen__yuv_gray_16_c;
PenYuvFn pen__yuv_full_8_avx2, pen__yuv_full_16_avx2, pen__yuv_half_8_avx2, pen__yuv_half_16_avx2,
    pen__yuv_gray_8_avx2, pen__yuv_gray_16_avx2;
PenYuvFn pen__yuv_full_8_avx512, pen__yuv_full_16_avx512, pen__yuv_half_8_avx512,
    pen__yuv_half_16_avx512, pen__yuv_gray_8_avx512, pen__yuv_gray_16_avx512;
PenYuvFn pen__yuv_full_8_neon, pen__yuv_full_16_neon, pen__yuv_half_8_neon, pen__yuv_half_16_neon,
    pen__yuv_gray_8_neon, pen__yuv_gray_16_neon;

/* How samples are stored. The kernels are made from one function, for which it is a constant. */
typedef struct PenYuvKind {
    bool is_wide; /* samples of 16 bits */
    bool is_half; /* chroma of half width */
    bool is_gray; /* luma alone */
} PenYuvKind;

PEN_INLINE size_t pen__yuv_bytes(PenYuvKind kind, uint32_t samples)
{
    return (size_t)samples << kind.is_wide;
}

/* The row without its first `n` pixels; n is even unless chroma has full width or x is odd. */
PEN_INLINE PenYuvRow pen__yuv_behind(const PenYuvRow *row, PenYuvKind kind, uint32_t n)
{
    PenYuvRow rest = *row;
    size_t chroma = pen__yuv_bytes(kind, kind.is_half ? (n + 1) / 2 : n);
    rest.y += pen__yuv_bytes(kind, n);
    rest.n -= n;
    rest.odd_x = false;
    if (!kind.is_gray) {
        rest.u += chroma;
        rest.v += chroma;
    }
    return rest;
}

enum { PEN_YUV_MOST_PIXELS = 64 }; /* that a vector kernel makes at once */

/* The last samples of a row, in memory that can be read beyond them. */
typedef struct PenYuvTail {
    uint8_t y[2 * PEN_YUV_MOST_PIXELS], u[2 * PEN_YUV_MOST_PIXELS], v[2 * PEN_YUV_MOST_PIXELS];
} PenYuvTail;

/* Makes `row`, of less than PEN_YUV_MOST_PIXELS pixels, point to a copy. */
PEN_INLINE void pen__yuv_copy(PenYuvRow *row, PenYuvKind kind, PenYuvTail *to)
{
    size_t chroma = pen__yuv_bytes(kind, kind.is_half ? (row->n + 1) / 2 : row->n);
    memset(to, 0, sizeof *to);
    memcpy(to->y, row->y, pen__yuv_bytes(kind, row->n));
    row->y = to->y;
    if (kind.is_gray)
        return;
    memcpy(to->u, row->u, chroma);
    memcpy(to->v, row->v, chroma);
    row->u = to->u;
    row->v = to->v;
}

/* The six kernels of a tier, from make(row, kind, pixels). */
#define PEN_YUV_TIER(tier, make)                                                                   \
    void pen__yuv_full_8_##tier(const PenYuvRow *row, uint8_t *pixels)                             \
    {                                                                                              \
        make(row, (PenYuvKind){0}, pixels);                                                        \
    }                                                                                              \
    void pen__yuv_full_16_##tier(const PenYuvRow *row, uint8_t *pixels)                            \
    {                                                                                              \
        make(row, (PenYuvKind){.is_wide = true}, pixels);                                          \
    }                                                                                              \
    void pen__yuv_half_8_##tier(const PenYuvRow *row, uint8_t *pixels)                             \
    {                                                                                              \
        make(row, (PenYuvKind){.is_half = true}, pixels);                                          \
    }                                                                                              \
    void pen__yuv_half_16_##tier(const PenYuvRow *row, uint8_t *pixels)                            \
    {                                                                                              \
        make(row, (PenYuvKind){.is_half = true, .is_wide = true}, pixels);                         \
    }                                                                                              \
    void pen__yuv_gray_8_##tier(const PenYuvRow *row, uint8_t *pixels)                             \
    {                                                                                              \
        make(row, (PenYuvKind){.is_gray = true}, pixels);                                          \
    }                                                                                              \
    void pen__yuv_gray_16_##tier(const PenYuvRow *row, uint8_t *pixels)                            \
    {                                                                                              \
        make(row, (PenYuvKind){.is_gray = true, .is_wide = true}, pixels);                         \
    }

#endif
