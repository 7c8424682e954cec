/* SPDX-License-Identifier: Apache-2.0 */
/* A sample_plan in the making: operations say what they want, and what can be done in one pass is
 * joined. */
#ifndef PEN_OPS_SAMPLE_DRAFT_H
#define PEN_OPS_SAMPLE_DRAFT_H

#include "base/error.h"
#include "ops/sample/sample_plan.h"

typedef struct PenSampleDraft {
    PenSamplePlan *sample_plan;
    uint32_t width, height; /* of the image at this point */
    PenPass *pass;          /* that can still be added to; NULL: none */
    PenWarp *warp;          /* the same; never both */
    int resized;            /* that pass changes the size */
    int nearest;            /* whatever the filter: it is a mask */
    int normalized;         /* from here on the result is meant */
    int shrinks;            /* the first resize may choose a smaller size to decode at */
    uint32_t crop;          /* which of those of three_crop */
} PenSampleDraft;

/* A box, which may reach out of the image: `fill` is there. */
int pen__draft_crop_to(PenSampleDraft *d, int64_t x, int64_t y, PenBox size, uint8_t fill,
                       PenError *reterr);
int pen__draft_resize_to(PenSampleDraft *d, uint32_t width, uint32_t height, int filter,
                         PenError *reterr);
int pen__draft_mirror(PenSampleDraft *d, int x, int y, PenError *reterr);
/* An affine or perspective map to an image of the same size: its coefficients, filter and fill; the
 * rest is set here. A mask takes the nearest pixels. */
int pen__draft_warp(PenSampleDraft *d, const PenWarp *map, PenError *reterr);
/* A step that is no pass. */
int pen__draft_step(PenSampleDraft *d, const PenStep *what, PenError *reterr);
/* Every sample_plan begins with a pass. */
int pen__draft_end(PenSampleDraft *d, PenError *reterr);
/* Behind the last operation: passes make only what the warps behind them need. */
void pen__draft_narrow(PenSampleDraft *d);
/* What an image decoded at a smaller size has before the first pixel of a side, in pixels of the
 * image: its last pixel may be incomplete, and is the first one when it is mirrored. */
uint32_t pen__draft_ahead(uint32_t side, uint32_t shrink, int mirrored);

#endif
