/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on images, and memory for their pixels. */
#include <string.h>

#include "base/bytes.h"
#include "codec/codec_impl.h"

const PenLimits pen__limits_default = {
    .max_pixels = (uint64_t)64 << 20,
    .max_memory_bytes = (uint64_t)512 << 20,
    .max_scans = 100,
};

int pen__limits_check(const PenLimits *limits, uint64_t width, uint64_t height, const char *part,
                      PenError *reterr)
{
    uint64_t pixels;
    if (!width || !height)
        return pen__fail(reterr, PEN_E_DECODE, part,
                         "size: expected at least 1 x 1 pixels, found %llu x %llu",
                         (unsigned long long)width, (unsigned long long)height);
    if (pen__mul_over(width, height, &pixels) || pixels > limits->max_pixels)
        return pen__fail(reterr, PEN_E_LIMIT, part,
                         "size: expected at most %llu pixels, found %llu x %llu",
                         (unsigned long long)limits->max_pixels, (unsigned long long)width,
                         (unsigned long long)height);
    return PEN_OK;
}

int pen__pixels_alloc(const PenLimits *limits, uint32_t width, uint32_t height, uint32_t channels,
                      const char *part, PenPixels *ret, PenError *reterr)
{
    uint64_t bytes;
    if (pen__mul_over((uint64_t)width * channels, height, &bytes) ||
        bytes > limits->max_memory_bytes || bytes > SIZE_MAX / 2)
        return pen__fail(reterr, PEN_E_LIMIT, part,
                         "size: expected pixels of at most %llu bytes, found %u x %u of %u bytes",
                         (unsigned long long)limits->max_memory_bytes, width, height, channels);
    uint8_t *data = pen__alloc((size_t)bytes + PEN_SLACK);
    if (!data)
        return pen__fail_memory(reterr, part, "pixels");
    memset(data + bytes, 0, PEN_SLACK);
    *ret = (PenPixels){.data = data, .width = width, .height = height, .channels = channels};
    return PEN_OK;
}

void pen__pixels_free(PenPixels *p)
{
    pen__free_large(p->data, (size_t)p->width * p->height * p->channels);
    *p = (PenPixels){0};
}
