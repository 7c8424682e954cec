/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/pixels/pixels.h"

void pen__pixels_erase(const PenPixels *image, const PenStep *step)
{
    const PenBox *box = &step->u.erase.box;
    uint32_t c = image->channels;
    for (uint32_t y = box->y; y < box->y + box->h; y++) {
        uint8_t *to = image->data + ((size_t)y * image->width + box->x) * c;
        for (uint32_t x = 0; x < box->w; x++, to += c)
            memcpy(to, step->u.erase.value, c);
    }
}
