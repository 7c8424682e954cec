/* SPDX-License-Identifier: Apache-2.0 */
/* The formula of yuv.h, pixel by pixel. */
#include "base/bytes.h"
#include "codec/picture/yuv_impl.h"

static uint8_t clip_u8(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

PEN_INLINE int32_t term(int32_t factor, int32_t x)
{
    return (factor * x + (1 << 14)) >> 15;
}

PEN_INLINE int32_t sample(const PenYuvFactors *f, const uint8_t *plane, PenYuvKind kind, size_t i)
{
    return kind.is_wide ? PEN_MIN(pen__load16(plane + 2 * i), f->most) : plane[i];
}

PEN_INLINE int32_t luma(const PenYuvRow *row, PenYuvKind kind, size_t i)
{
    const PenYuvFactors *f = row->factors;
    return term(f->y, (sample(f, row->y, kind, i) - f->black) * (1 << (15 - f->depth))) + 32;
}

PEN_INLINE int32_t chroma(const PenYuvFactors *f, const uint8_t *plane, PenYuvKind kind, size_t i)
{
    return (sample(f, plane, kind, i) - (1 << (f->depth - 1))) * (1 << (16 - f->depth));
}

PEN_INLINE void pixel(const PenYuvRow *row, PenYuvKind kind, size_t i, uint8_t *rgb)
{
    const PenYuvFactors *f = row->factors;
    size_t at = kind.is_half ? (i + row->odd_x) / 2 : i;
    int32_t y = luma(row, kind, i);
    int32_t u = chroma(f, row->u, kind, at), v = chroma(f, row->v, kind, at);
    rgb[0] = clip_u8((y + term(f->rv, v)) >> 6);
    rgb[1] = clip_u8((y + term(f->gu, u) + term(f->gv, v)) >> 6);
    rgb[2] = clip_u8((y + term(f->bu, u)) >> 6);
}

PEN_INLINE void make_row(const PenYuvRow *row, PenYuvKind kind, uint8_t *pixels)
{
    for (size_t i = 0; i < row->n; i++)
        if (kind.is_gray)
            pixels[i] = clip_u8(luma(row, kind, i) >> 6);
        else
            pixel(row, kind, i, pixels + 3 * i);
}

PEN_YUV_TIER(c, make_row)
