/* SPDX-License-Identifier: Apache-2.0 */
/* A blend of several images in single precision, cut off to bytes in the end, as torchvision's
 * AugMix has it. Built without fused multiply-add (meson.build). */
#include <string.h>

#include "ops/pixels/pixels.h"

/* The sums, then the image that all chains begin with. */
uint64_t pen__blend_scratch(uint32_t width, uint32_t height, uint32_t channels)
{
    return (uint64_t)width * height * channels * (sizeof(float) + 1);
}

void pen__pixels_blend(const PenPixels *image, const PenStep *step, void *scratch)
{
    size_t n = (size_t)image->width * image->height * image->channels;
    float weight = step->u.weight, *sums = scratch;
    uint8_t *first = (uint8_t *)(sums + n), *data = image->data;
    switch (step->kind) {
    case PEN_STEP_BLEND_BEGIN:
        for (size_t i = 0; i < n; i++)
            sums[i] = weight * data[i];
        memcpy(first, data, n);
        break;
    case PEN_STEP_BLEND_ADD:
        for (size_t i = 0; i < n; i++)
            sums[i] += weight * data[i];
        memcpy(data, first, n);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            data[i] = (uint8_t)(int32_t)sums[i];
        break;
    }
}
