/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing of whole 8-bit images, through dsp/stream.h. */
#ifndef PEN_DSP_RESAMPLE_H
#define PEN_DSP_RESAMPLE_H

#include <stdint.h>

#include <penstock/decode.h> /* PEN_FILTER_* */

#include "base/error.h"

/* Rows of interleaved 8-bit samples, without gaps; no bytes need to follow them. */
typedef struct PenRaster {
    uint8_t *data;
    uint32_t width, height, channels; /* 1 to 4 channels */
} PenRaster;

/* Fills dst->data; its size says what is wanted, its channels are those of `src`. */
int pen__raster_resample(const PenRaster *src, const PenRaster *dst, int filter, PenError *reterr);

#endif
