/* SPDX-License-Identifier: Apache-2.0 */
#include "dsp/dsp.h"
#include "ops/pixels/pixels.h"

void pen__pixels_colour(const PenPixels *image, const PenStep *step)
{
    const PenDsp *dsp = pen__dsp();
    size_t n = (size_t)image->width * image->height;
    int32_t factor = step->u.factor;
    if (image->channels != 3)
        return;
    switch (step->kind) {
    case PEN_STEP_BRIGHTNESS:
        dsp->brightness(image->data, n, factor);
        break;
    case PEN_STEP_CONTRAST: /* about the mean of the grey image, rounded */
        dsp->contrast(image->data, n, factor,
                      (int32_t)((2 * dsp->grey_sum(image->data, n) + n) / (2 * n)));
        break;
    case PEN_STEP_SATURATION:
        dsp->saturation(image->data, n, factor);
        break;
    case PEN_STEP_HUE:
        dsp->hue(image->data, n, factor);
        break;
    default:
        dsp->grey(image->data, n);
        break;
    }
}

void pen__pixels_channels(const PenPixels *image, const PenStep *step)
{
    size_t n = (size_t)image->width * image->height;
    const uint8_t *of = step->u.channels;
    uint8_t *p = image->data;
    for (size_t i = 0; image->channels == 3 && i < n; i++, p += 3) {
        uint8_t from[3] = {p[0], p[1], p[2]};
        p[0] = from[of[0]];
        p[1] = from[of[1]];
        p[2] = from[of[2]];
    }
}
