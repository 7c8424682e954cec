/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes drawn at random by torchvision's published algorithms, and the arithmetic they need. No
 * function of the C library is used whose last bit may differ from machine to machine. */
#ifndef PEN_OPS_OPERATIONS_BOXES_H
#define PEN_OPS_OPERATIONS_BOXES_H

#include <penstock/decode.h>

#include "dsp/real.h"
#include "ops/operations/draw.h"

typedef struct PenSampleRule {
    double scale[2]; /* share of the area */
    double ratio[2]; /* width / height */
} PenSampleRule;

/* RandomResizedCrop: ten tries, then the centre at the nearest ratio allowed. */
PenBox pen__sample_crop(PenDraw *d, uint32_t width, uint32_t height, const PenSampleRule *rule);
/* RandomErasing: ten tries, then none (w = 0). Here the ratio is that of height to width. */
PenBox pen__sample_erase(PenDraw *d, uint32_t width, uint32_t height, const PenSampleRule *rule);

/* A random factor as 16.16 fixed point. */
int32_t pen__sample_factor(PenDraw *d, double low, double high);
/* A random shift of hue, of -0.5 to 0.5 turns, as 0-255. */
int32_t pen__sample_hue(PenDraw *d, double low, double high);

#endif
