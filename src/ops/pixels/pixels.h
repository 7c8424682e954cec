/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a plan other than passes do to an image: rows without gaps, of which PEN_SLACK
 * bytes behind the last one may be read. */
#ifndef PEN_OPS_PIXELS_PIXELS_H
#define PEN_OPS_PIXELS_PIXELS_H

#include "codec/codec.h"
#include "ops/sample/sample_plan.h"

/* Each changes the image in place. */
void pen__pixels_colour(const PenPixels *image, const PenStep *step);
void pen__pixels_erase(const PenPixels *image, const PenStep *step);

#endif
