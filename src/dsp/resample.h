/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing of 8-bit images, bit for bit what torch.nn.functional.interpolate does on uint8 tensors
 * with antialias=True (int16 weights, horizontal pass first); nearest as torch's "nearest". */
#ifndef PEN_DSP_RESAMPLE_H
#define PEN_DSP_RESAMPLE_H

#include <stdint.h>

#include "base/error.h"

enum { PEN_FILTER_BILINEAR = 0, PEN_FILTER_NEAREST = 1 };

/* Rows of interleaved 8-bit samples, without gaps. */
typedef struct PenRaster {
    uint8_t *data;
    uint32_t width, height, channels; /* 1 to 4 channels */
} PenRaster;

/* Fills dst->data; its size says what is wanted, its channels are those of `src`. */
int pen__raster_resample(const PenRaster *src, const PenRaster *dst, int filter, PenError *reterr);

#endif
