/* SPDX-License-Identifier: Apache-2.0 */
/* Upsampling and colour, pixel by pixel. Chroma of half size is brought to full size by triangle
 * filters (weights 3 and 1 across, down, or both), as libjpeg's "fancy upsampling" does. */
#include "codec/jpeg/pixels/pixels_impl.h"

static uint8_t clip_u8(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void to_rgb(int32_t y, int32_t cb, int32_t cr, uint8_t *rgb)
{
    enum { HALF = 1 << 15 };
    cb -= 128;
    cr -= 128;
    rgb[0] = clip_u8(y + ((91881 * cr + HALF) >> 16));
    rgb[1] = clip_u8(y + ((-22554 * cb - 46802 * cr + HALF) >> 16));
    rgb[2] = clip_u8(y + ((116130 * cb + HALF) >> 16));
}

typedef struct Chroma {
    const uint8_t *near, *far;
} Chroma;

INLINE int32_t down(const Chroma *c, int sampling, ptrdiff_t i)
{
    return sampling == PEN_JPEG_420 ? 3 * c->near[i] + c->far[i] : c->near[i];
}

/* Of pixel k: the sample above it and, once, the one on its other side; beyond the image's ends
 * the sample above it again. */
INLINE uint8_t across(const PenJpegRow *row, const Chroma *c, int sampling, uint32_t k)
{
    ptrdiff_t i = (ptrdiff_t)(((uint64_t)k + row->odd_x) >> 1);
    ptrdiff_t last = (ptrdiff_t)(((uint64_t)row->n - 1 + row->odd_x) >> 1);
    bool right = (k + row->odd_x) & 1;
    ptrdiff_t other = right ? i + 1 : i - 1;
    if ((other < 0 && row->first) || (other > last && row->last))
        other = i;
    int32_t sum = 3 * down(c, sampling, i) + down(c, sampling, other);
    if (sampling == PEN_JPEG_420)
        return (uint8_t)((sum + (right ? 7 : 8)) >> 4);
    return (uint8_t)((sum + (right ? 2 : 1)) >> 2);
}

INLINE uint8_t chroma(const PenJpegRow *row, const Chroma *c, int sampling, uint32_t k)
{
    if (sampling == PEN_JPEG_444)
        return c->near[k];
    if (sampling == PEN_JPEG_440)
        return (uint8_t)((3 * c->near[k] + c->far[k] + (row->odd_y ? 2 : 1)) >> 2);
    if (row->plain)
        return c->near[((uint64_t)k + row->odd_x) >> 1];
    return across(row, c, sampling, k);
}

INLINE void pixel(const PenJpegRow *row, int sampling, uint32_t k, uint8_t *rgb)
{
    Chroma cb = {row->cb, row->cb_far}, cr = {row->cr, row->cr_far};
    to_rgb(row->y[k], chroma(row, &cb, sampling, k), chroma(row, &cr, sampling, k), rgb);
}

void pen__rgb_pixel(const PenJpegRow *row, int sampling, uint32_t k, uint8_t *rgb)
{
    pixel(row, sampling, k, rgb);
}

void pen__rgb_444_c(const PenJpegRow *row, uint8_t *rgb)
{
    for (uint32_t k = 0; k < row->n; k++)
        pixel(row, PEN_JPEG_444, k, rgb + 3 * (size_t)k);
}

void pen__rgb_422_c(const PenJpegRow *row, uint8_t *rgb)
{
    for (uint32_t k = 0; k < row->n; k++)
        pixel(row, PEN_JPEG_422, k, rgb + 3 * (size_t)k);
}

void pen__rgb_440_c(const PenJpegRow *row, uint8_t *rgb)
{
    for (uint32_t k = 0; k < row->n; k++)
        pixel(row, PEN_JPEG_440, k, rgb + 3 * (size_t)k);
}

void pen__rgb_420_c(const PenJpegRow *row, uint8_t *rgb)
{
    for (uint32_t k = 0; k < row->n; k++)
        pixel(row, PEN_JPEG_420, k, rgb + 3 * (size_t)k);
}

void pen__grey_rgb_c(const uint8_t *y, uint32_t n, uint8_t *rgb)
{
    for (uint32_t k = 0; k < n; k++, rgb += 3)
        rgb[0] = rgb[1] = rgb[2] = y[k];
}
