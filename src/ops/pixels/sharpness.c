/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dsp/dsp.h"
#include "ops/pixels/pixels.h"

/* Pillow copies the border; an image without anything inside of it stays as it is. Each row is
 * kept until the next one has been made from it. */
void pen__pixels_sharpness(const PenPixels *image, const PenStep *step, void *scratch)
{
    size_t stride = (size_t)image->width * image->channels;
    uint8_t *kept[2] = {scratch, (uint8_t *)scratch + stride + PEN_SLACK};
    if (image->width < 3 || image->height < 3)
        return;
    memcpy(kept[0], image->data, stride);
    for (uint32_t y = 1; y + 1 < image->height; y++) {
        uint8_t *row = image->data + y * stride;
        memcpy(kept[y % 2], row, stride);
        const uint8_t *rows[3] = {kept[(y - 1) % 2], kept[y % 2], row + stride};
        pen__dsp()->sharpen(rows, row, stride, image->channels, step->u.factor);
    }
}
