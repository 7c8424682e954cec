/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes and points of an image, moved to where its sample plan moves the pixels.
 *
 * Coordinates are those of the upright image (EXIF's orientation applied) and continuous: pixel i
 * reaches from i to i + 1, so the right edge of an image is its width. Relative ones are fractions
 * of the width and the height. The numbers are float32, the arithmetic is double precision without
 * fused multiply-add (meson.build), so that every machine has the same results. */
#ifndef PEN_OPS_SAMPLE_FOLLOW_H
#define PEN_OPS_SAMPLE_FOLLOW_H

#include "base/error.h"
#include "ops/sample/sample_plan.h"

typedef enum PenCoordinates {                        /* what the numbers of a row are */
                              PEN_COORDS_XYXY = 1,   /* left, top, right, bottom */
                              PEN_COORDS_XYWH = 2,   /* left, top, width, height */
                              PEN_COORDS_CXCYWH = 3, /* center, width, height */
                              PEN_COORDS_POINTS = 4  /* x, y of each point */
} PenCoordinates;

typedef struct PenFollowRule {
    PenCoordinates stored, wanted; /* points stay points */
    int stored_relative, wanted_relative;
    uint32_t points; /* of a row of points */
    int clip;        /* to the part of the image that the result shows */
    int drop;        /* rows that are not visible, and boxes that are smaller than this: */
    double min_size, min_area; /* pixels of the result */
    double min_visibility;     /* visible part of the box's area */
} PenFollowRule;

/* Float32 numbers of a row. */
uint32_t pen__follow_width(const PenFollowRule *rule);

/* Changes the `n` rows in place. Those that are kept move to the front; ret_kept, of n numbers,
 * gets which ones they were and may be NULL. A box that is none (not finite, or a negative width or
 * height) is dropped, or without `drop` an error. */
int pen__follow_rows(const PenFollowRule *rule, const PenSamplePlan *plan, float *rows, uint32_t n,
                     int64_t *ret_kept, uint32_t *ret_n, PenError *reterr);

#endif
