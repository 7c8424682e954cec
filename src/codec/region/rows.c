/* SPDX-License-Identifier: Apache-2.0 */
/* What all region decoders do with their rows: buffers, and conversion to the requested channels.
 */
#include "codec/region/region_impl.h"

static const char where[] = "codec/region";

int pen__region_reserve(PenBuf *buf, size_t bytes, PenError *reterr)
{
    buf->bytes = 0;
    if (pen__buf_reserve(buf, bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, where, "rows of pixels");
    return PEN_OK;
}

int pen__region_check_mask(const PenRegion *region, uint32_t channels, PenError *reterr)
{
    if (region->colour != PEN_COLOUR_MASK || channels == 1)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "mask: expected 1 channel (gray or palette), found %u; store masks as PNG",
                     channels);
}

static void grey_to_rgb(const uint8_t *in, uint8_t *out, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++, out += 3)
        out[0] = out[1] = out[2] = in[i];
}

static void rgba_to_rgb(const uint8_t *in, uint8_t *out, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++, in += 4, out += 3) {
        out[0] = in[0];
        out[1] = in[1];
        out[2] = in[2];
    }
}

/* Pillow's "L": the weights of ITU-R 601-2 in 1/65536. */
static inline uint8_t luma(const uint8_t *rgb)
{
    return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

static void rgb_to_grey(const uint8_t *in, uint8_t *out, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++)
        out[i] = luma(in + 3 * i);
}

static void rgba_to_grey(const uint8_t *in, uint8_t *out, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++)
        out[i] = luma(in + 4 * i);
}

typedef void (*ConvertFn)(const uint8_t *in, uint8_t *out, size_t pixels);

/* NULL when there is nothing to do. */
static ConvertFn choose_conversion(int32_t colour, uint32_t channels)
{
    if (colour == PEN_COLOUR_RGB)
        return channels == 1 ? grey_to_rgb : channels == 4 ? rgba_to_rgb : NULL;
    return channels == 3 ? rgb_to_grey : channels == 4 ? rgba_to_grey : NULL;
}

int pen__rows_give(PenDecoder *d, const PenRegion *region, const PenRowSpan *span, PenError *reterr)
{
    ConvertFn convert = choose_conversion(region->colour, span->channels);
    if (!convert)
        return region->rows(region->ctx, span->data, span->stride, span->n, reterr);
    size_t stride = (size_t)region->box.w * (region->colour == PEN_COLOUR_RGB ? 3 : 1);
    int r = pen__region_reserve(&d->converted, stride * PEN_REGION_ROWS, reterr);
    const uint8_t *in = span->data;
    for (uint32_t left = span->n, n; left && r >= 0; left -= n) {
        n = PEN_MIN(left, (uint32_t)PEN_REGION_ROWS);
        for (uint32_t i = 0; i < n; i++, in += span->stride)
            convert(in, d->converted.data + i * stride, region->box.w);
        r = region->rows(region->ctx, d->converted.data, stride, n, reterr);
    }
    return r;
}
