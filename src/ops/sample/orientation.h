/* SPDX-License-Identifier: Apache-2.0 */
/* EXIF's eight orientations: what is stored has to be turned or mirrored to stand upright. */
#ifndef PEN_OPS_SAMPLE_ORIENTATION_H
#define PEN_OPS_SAMPLE_ORIENTATION_H

#include <stddef.h>

#include "ops/sample/sample_plan.h"

/* Anything but 2-8 is upright already. */
int pen__turn_needed(uint8_t orientation);

/* The entire upright image, as a box: 5-8 swap width and height. */
PenBox pen__turn_upright(const PenImageShape *shape);

/* Is the upright image's left (its top) at the end of the stored rows (columns)? */
int pen__turn_mirrors_x(uint8_t orientation);
int pen__turn_mirrors_y(uint8_t orientation);

/* A box of the upright image as one of the stored image. */
PenBox pen__turn_box(const PenImageShape *shape, PenBox b);

/* Row `y` of a stored region of w x h pixels, laid into the upright image of that region (h x w
 * when it swaps). */
typedef struct PenTurn {
    uint8_t orientation;
    uint32_t w, h, channels;
    uint8_t *upright;
} PenTurn;

void pen__turn_row(const PenTurn *t, uint32_t y, const uint8_t *row);

#endif
