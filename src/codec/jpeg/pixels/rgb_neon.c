/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen pixels at a time, even and odd ones apart until the end. */
#include <arm_neon.h>
#include <string.h>

#include "codec/jpeg/pixels/pixels_impl.h"

enum { PIXELS = 16 };

typedef struct Wide {
    int16x8_t even, odd;
} Wide;

INLINE int16x8_t widen(uint8x8_t v)
{
    return vreinterpretq_s16_u16(vmovl_u8(v));
}

INLINE int16x8_t times_3(int16x8_t v)
{
    return vaddq_s16(v, vaddq_s16(v, v));
}

/* ---- colour (the factors are those of rgb_x86.h) ------------------------------------- */

INLINE uint8x8_t red(int16x8_t y, int16x8_t cr)
{
    return vqmovun_s16(vaddq_s16(vaddq_s16(y, cr), vqrdmulhq_n_s16(cr, 13173)));
}

INLINE uint8x8_t blue(int16x8_t y, int16x8_t cb)
{
    int16x8_t part = vqrdmulhq_n_s16(cb, -7471);
    return vqmovun_s16(vaddq_s16(vaddq_s16(y, part), vaddq_s16(cb, cb)));
}

INLINE int16x4_t green_part(int16x4_t cb, int16x4_t cr)
{
    return vrshrn_n_s32(vmlal_n_s16(vmull_n_s16(cb, -11277), cr, -23401), 15);
}

INLINE uint8x8_t green(int16x8_t y, int16x8_t cb, int16x8_t cr)
{
    int16x4_t low = green_part(vget_low_s16(cb), vget_low_s16(cr));
    int16x4_t high = green_part(vget_high_s16(cb), vget_high_s16(cr));
    return vqmovun_s16(vaddq_s16(y, vcombine_s16(low, high)));
}

INLINE uint8x16_t join(uint8x8_t even, uint8x8_t odd)
{
    return vcombine_u8(vzip1_u8(even, odd), vzip2_u8(even, odd));
}

INLINE void put_chunk(const uint8_t *bytes, Wide cb, Wide cr, uint32_t left, uint8_t *rgb)
{
    uint8x8x2_t y = vld2_u8(bytes);
    int16x8_t even = widen(y.val[0]), odd = widen(y.val[1]);
    uint8x16x3_t out = {{
        join(red(even, cr.even), red(odd, cr.odd)),
        join(green(even, cb.even, cr.even), green(odd, cb.odd, cr.odd)),
        join(blue(even, cb.even), blue(odd, cb.odd)),
    }};
    if (left >= PIXELS) {
        vst3q_u8(rgb, out);
        return;
    }
    uint8_t whole[3 * PIXELS];
    vst3q_u8(whole, out);
    memcpy(rgb, whole, 3 * (size_t)left);
}

/* ---- chroma, less 128 ----------------------------------------------------------------------- */

INLINE int16x8_t settle(int16x8_t sum, int bias)
{
    return vshrq_n_s16(vaddq_s16(sum, vdupq_n_s16((int16_t)(bias - 512))), 2);
}

INLINE Wide chroma_444(const uint8_t *c)
{
    uint8x8x2_t v = vld2_u8(c);
    int16x8_t middle = vdupq_n_s16(128);
    return (Wide){vsubq_s16(widen(v.val[0]), middle), vsubq_s16(widen(v.val[1]), middle)};
}

INLINE Wide chroma_440(const uint8_t *near, const uint8_t *far, int bias)
{
    uint8x8x2_t a = vld2_u8(near), b = vld2_u8(far);
    return (Wide){settle(vaddq_s16(times_3(widen(a.val[0])), widen(b.val[0])), bias),
                  settle(vaddq_s16(times_3(widen(a.val[1])), widen(b.val[1])), bias)};
}

INLINE Wide chroma_422(const uint8_t *c)
{
    int16x8_t middle = times_3(widen(vld1_u8(c)));
    return (Wide){settle(vaddq_s16(middle, widen(vld1_u8(c - 1))), 1),
                  settle(vaddq_s16(middle, widen(vld1_u8(c + 1))), 2)};
}

INLINE int16x8_t sum_at(const uint8_t *near, const uint8_t *far)
{
    return vaddq_s16(times_3(widen(vld1_u8(near))), widen(vld1_u8(far)));
}

INLINE Wide chroma_420(const uint8_t *near, const uint8_t *far)
{
    int16x8_t middle = times_3(sum_at(near, far));
    int16x8_t even = vaddq_s16(middle, sum_at(near - 1, far - 1));
    int16x8_t odd = vaddq_s16(middle, sum_at(near + 1, far + 1));
    return (Wide){vshrq_n_s16(vaddq_s16(even, vdupq_n_s16(8 - 2048)), 4),
                  vshrq_n_s16(vaddq_s16(odd, vdupq_n_s16(7 - 2048)), 4)};
}

/* ---- rows ----------------------------------------------------------------------------------- */

INLINE Wide chroma(const PenJpegRow *r, int sampling, bool cr, uint32_t k)
{
    const uint8_t *near = cr ? r->cr : r->cb, *far = cr ? r->cr_far : r->cb_far;
    switch (sampling) {
    case PEN_JPEG_444:
        return chroma_444(near + k);
    case PEN_JPEG_440:
        return chroma_440(near + k, far + k, r->odd_y ? 2 : 1);
    case PEN_JPEG_422:
        return chroma_422(near + k / 2);
    default:
        return chroma_420(near + k / 2, far + k / 2);
    }
}

INLINE void pixels(const PenJpegRow *r, int sampling, uint8_t *rgb)
{
    for (uint32_t k = 0; k < r->n; k += PIXELS)
        put_chunk(r->y + k, chroma(r, sampling, false, k), chroma(r, sampling, true, k), r->n - k,
                  rgb + 3 * (size_t)k);
}

/* Chroma of half width, as in rgb_x86.h: the pixels at the ends of the image once more. */
INLINE void halved(const PenJpegRow *row, int sampling, uint8_t *rgb)
{
    PenJpegRow r = *row;
    if (row->odd_x) {
        pen__rgb_pixel(row, sampling, 0, rgb);
        r.y++, r.cb++, r.cr++, r.n--;
        if (sampling == PEN_JPEG_420)
            r.cb_far++, r.cr_far++;
    }
    pixels(&r, sampling, rgb + 3 * row->odd_x);
    if (row->first)
        pen__rgb_pixel(row, sampling, 0, rgb);
    if (row->last)
        pen__rgb_pixel(row, sampling, row->n - 1, rgb + 3 * ((size_t)row->n - 1));
}

void pen__rgb_444_neon(const PenJpegRow *row, uint8_t *rgb)
{
    pixels(row, PEN_JPEG_444, rgb);
}

void pen__rgb_440_neon(const PenJpegRow *row, uint8_t *rgb)
{
    pixels(row, PEN_JPEG_440, rgb);
}

void pen__rgb_422_neon(const PenJpegRow *row, uint8_t *rgb)
{
    if (row->plain)
        pen__rgb_422_c(row, rgb);
    else
        halved(row, PEN_JPEG_422, rgb);
}

void pen__rgb_420_neon(const PenJpegRow *row, uint8_t *rgb)
{
    if (row->plain)
        pen__rgb_420_c(row, rgb);
    else
        halved(row, PEN_JPEG_420, rgb);
}

void pen__grey_rgb_neon(const uint8_t *y, uint32_t n, uint8_t *rgb)
{
    for (; n >= PIXELS; n -= PIXELS, y += PIXELS, rgb += 3 * PIXELS) {
        uint8x16_t v = vld1q_u8(y);
        vst3q_u8(rgb, ((uint8x16x3_t){{v, v, v}}));
    }
    pen__grey_rgb_c(y, n, rgb);
}
