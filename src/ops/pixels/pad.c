/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "ops/pixels/pixels.h"

/* Which of n pixels is shown `at` pixels from the first; the image is mirrored as often as needed.
 */
static uint32_t shown(int32_t mode, int64_t at, uint32_t n)
{
    int64_t last = (int64_t)n - 1, period = mode == PEN_PAD_REFLECT ? 2 * last : 2 * (int64_t)n;
    if (at >= 0 && at <= last)
        return (uint32_t)at;
    if (mode == PEN_PAD_EDGE || last <= 0)
        return (uint32_t)(at < 0 ? 0 : last);
    at = (at % period + period) % period;
    return (uint32_t)(at <= last ? at : period - at - (mode == PEN_PAD_SYMMETRIC));
}

static void put(uint8_t *to, const uint8_t *from, uint32_t channels)
{
    memcpy(to, from, channels);
}

static void pad_row(const PenPad *pad, const uint8_t *from, uint8_t *to, uint32_t c)
{
    const PenBox *image = &pad->image;
    bool is_fill = pad->mode == PEN_PAD_CONSTANT;
    memcpy(to + (size_t)image->x * c, from, (size_t)image->w * c);
    for (uint32_t x = 0; x < pad->w; x++)
        if (x < image->x || x >= image->x + image->w)
            put(to + (size_t)x * c,
                is_fill ? pad->fill
                        : from + (size_t)shown(pad->mode, (int64_t)x - image->x, image->w) * c,
                c);
}

void pen__pixels_pad(const PenPixels *image, const PenPad *pad, uint8_t *dst)
{
    uint32_t c = image->channels;
    size_t stride = (size_t)pad->w * c;
    for (uint32_t y = 0; y < pad->h; y++) {
        uint8_t *to = dst + y * stride;
        bool is_border = y < pad->image.y || y >= pad->image.y + pad->image.h;
        uint32_t row = shown(pad->mode, (int64_t)y - pad->image.y, pad->image.h);
        if (!is_border || pad->mode != PEN_PAD_CONSTANT) {
            pad_row(pad, image->data + (size_t)row * image->width * c, to, c);
            continue;
        }
        for (uint32_t x = 0; x < pad->w; x++)
            put(to + (size_t)x * c, pad->fill, c);
    }
}
