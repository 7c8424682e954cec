/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a kept video as pixels. */
#ifndef PEN_MANAGE_VIDEO_PIXELS_H
#define PEN_MANAGE_VIDEO_PIXELS_H

#include <penstock/pack.h>

#include "ops/run/program.h"

/* What pen_pack_pixels has prepared. */
typedef struct PenPixelsTo {
    const PenProgram *program; /* delivers the pixels of a frame, upright and complete */
    PenDecodeContext *context;
    uint8_t *pixels;
    uint64_t each; /* bytes of one frame */
} PenPixelsTo;

/* The clip of the sample is a video. */
int pen__video_pixels(PenPack *pack, const PenPixelRange *what, const PenPixelsTo *to,
                      PenError *reterr);

#endif
