/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of a JPEG, by libjpeg-turbo as Pillow uses it: 4:2:0, exact integer transforms. */
#include <string.h>

#include "codec/jpeg/turbo/turbo.h"
#include "ops/pixels/pixels.h"

int pen__pixels_jpeg(const PenPixels *image, const PenStep *step, PenError *reterr)
{
    PenBuf encoded = {0};
    PenPixels decoded = {0};
    int r = pen__turbo_encode(image, step->u.value, &pen__limits_default, &encoded, reterr);
    if (r == PEN_OK)
        r = pen__turbo_decode(encoded.data, encoded.bytes, &pen__limits_default, &decoded, reterr);
    if (r == PEN_OK)
        memcpy(image->data, decoded.data, (size_t)image->width * image->height * image->channels);
    pen__buf_free(&encoded);
    pen__pixels_free(&decoded);
    return r;
}

uint64_t pen__pixels_jpeg_memory(uint32_t width, uint32_t height, uint32_t channels)
{
    uint64_t w = (uint64_t)width + 16, h = (uint64_t)height + 16;
    /* Coefficients, the encoded image, which doubles as it grows, and the decoded one. */
    return w * h * (channels * (2 + 6) + channels) + 64 * w * channels + (256u << 10);
}
