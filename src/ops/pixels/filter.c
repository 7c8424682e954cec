/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/turbo/turbo.h"
#include "ops/pixels/pixels.h"

uint64_t pen__pixels_scratch(const PenStep *step, uint32_t width, uint32_t height,
                             uint32_t channels)
{
    switch (step->kind) {
    case PEN_STEP_SHARPNESS:
        return 2 * ((uint64_t)width * channels + PEN_SLACK);
    case PEN_STEP_BLUR:
        return pen__blur_scratch(step, width, height, channels);
    case PEN_STEP_JPEG:
        return pen__turbo_degrade_bytes(width, height, channels);
    default:
        return 0;
    }
}

int pen__pixels_filter(const PenPixels *image, const PenStep *step, void *scratch, PenError *reterr)
{
    switch (step->kind) {
    case PEN_STEP_SHARPNESS:
        pen__pixels_sharpness(image, step, scratch);
        return PEN_OK;
    case PEN_STEP_BLUR:
        pen__pixels_blur(image, step, scratch);
        return PEN_OK;
    default:
        return pen__turbo_degrade(image, step->u.value, &pen__limits_default, scratch, reterr);
    }
}

uint64_t pen__pixels_filter_memory(const PenStep *step, uint32_t width, uint32_t channels)
{
    return step->kind == PEN_STEP_JPEG ? pen__turbo_degrade_memory(width, channels) : 0;
}
