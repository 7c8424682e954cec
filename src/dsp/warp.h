/* SPDX-License-Identifier: Apache-2.0 */
/* Affine and perspective maps of an image, byte for byte those of Pillow's Image.transform: pixel
 * (x, y) of what comes out is taken at ((a0 x + a1 y + a2) / w, (a3 x + a4 y + a5) / w) of what
 * comes in, with w = a6 x + a7 y + 1 of a perspective and w = 1 of an affine map, all measured at
 * the middles of pixels. */
#ifndef PEN_DSP_WARP_H
#define PEN_DSP_WARP_H

#include <penstock/decode.h>
#include <stddef.h>

typedef struct PenWarp {
    double a[8];
    int32_t filter;                   /* PEN_FILTER_NEAREST, _BILINEAR or _BICUBIC */
    uint8_t perspective;              /* 0: a[6] and a[7] are of no effect */
    uint8_t flip_x, flip_y;           /* of the window */
    uint8_t fill[4];                  /* where there is no image, for each channel */
    uint32_t from_width, from_height; /* of what comes in */
    uint32_t width, height;           /* of what comes out */
    PenBox held;   /* the part of what comes in that there is: at least what the window needs */
    PenBox window; /* the part of what comes out that is made */
} PenWarp;

/* Rows of the window, made one by one from the top. */
typedef struct PenWarpRows {
    const PenWarp *warp;
    const uint8_t *pixels; /* of `held`, rows without gaps; PEN_SLACK more may be read */
    uint32_t channels;     /* 1 to 4 */
    int32_t way;           /* one of Pillow's, see warp.c */
    uint32_t y;            /* in what comes out */
    int32_t step[2];       /* 16.16, from pixel to pixel in x and y */
    int32_t row_step[2];   /* from row to row */
    int32_t at[2];         /* of the first pixel of what comes out in this row */
    double sum[2];         /* the same in double precision */
} PenWarpRows;

void pen__warp_start(PenWarpRows *rows, const PenWarp *warp, const uint8_t *pixels,
                     uint32_t channels);
/* The next row, of window.w pixels. With flip_y, rows come from the bottom. */
void pen__warp_row(PenWarpRows *rows, uint8_t *dst);

/* The pixels of what comes in that the window needs, at least one. */
PenBox pen__warp_needs(const PenWarp *warp);

/* Where a point of what comes in is in the window, in continuous coordinates. Points behind the
 * horizon of a perspective are far away. */
void pen__warp_point(const PenWarp *warp, double x, double y, double *ret_x, double *ret_y);

#endif
