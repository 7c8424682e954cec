/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a plan other than passes do to an image: rows without gaps, of which PEN_SLACK
 * bytes behind the last one may be read. */
#ifndef PEN_OPS_PIXELS_PIXELS_H
#define PEN_OPS_PIXELS_PIXELS_H

#include <stdbool.h>

#include "codec/codec.h"
#include "ops/sample/sample_plan.h"

/* Each changes the image in place. An image of one channel has no colours to change. */
void pen__pixels_colour(const PenPixels *image, const PenStep *step);
void pen__pixels_channels(const PenPixels *image, const PenStep *step);
void pen__pixels_erase(const PenPixels *image, const PenStep *step);
/* To an image of pad->w x pad->h pixels. */
void pen__pixels_pad(const PenPixels *image, const PenPad *pad, uint8_t *dst);

/* Steps that replace each value by another: n of them at once, which cost as much as one. */
bool pen__step_is_point(const PenStep *step);
void pen__pixels_points(const PenPixels *image, const PenStep *steps, uint32_t n);

/* Steps that need memory: so many bytes, and PEN_SLACK behind them. 0: none. */
uint64_t pen__pixels_scratch(const PenStep *step, uint32_t width, uint32_t height,
                             uint32_t channels);
void pen__pixels_sharpness(const PenPixels *image, const PenStep *step, void *scratch);
void pen__pixels_blur(const PenPixels *image, const PenStep *step, void *scratch);
uint64_t pen__blur_scratch(const PenStep *step, uint32_t width, uint32_t height, uint32_t channels);
/* Runs one of them. */
int pen__pixels_filter(const PenPixels *image, const PenStep *step, void *scratch,
                       PenError *reterr);
/* What that allocates beside its scratch at most. */
uint64_t pen__pixels_filter_memory(const PenStep *step, uint32_t width, uint32_t channels);

/* A step of PEN_STEP_BLEND_*, with memory that stays from the first to the last one. */
void pen__pixels_blend(const PenPixels *image, const PenStep *step, void *scratch);
uint64_t pen__blend_scratch(uint32_t width, uint32_t height, uint32_t channels);

#endif
