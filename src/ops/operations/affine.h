/* SPDX-License-Identifier: Apache-2.0 */
/* Coefficients of maps as torchvision and Pillow make them, rounded alike on every machine. */
#ifndef PEN_OPS_OPERATIONS_AFFINE_H
#define PEN_OPS_OPERATIONS_AFFINE_H

#include <stdint.h>

#include "ops/language/value.h"
#include "ops/sample/draft.h"

typedef struct PenAffine {
    double center[2];    /* x, y, in pixels */
    double angle;        /* degrees, clockwise */
    double translate[2]; /* pixels */
    double scale;        /* other than 0 */
    double shear[2];     /* degrees, along x and y */
} PenAffine;

/* torchvision's _get_inverse_affine_matrix. */
void pen__affine_inverse(const PenAffine *map, double ret[6]);

/* The matrix of Pillow's Image.rotate, counterclockwise, about a center in pixels; where that
 * copies or transposes the image, see pen__rotate_quarters. */
void pen__rotate_inverse(double degrees, const double center[2], double ret[6]);
/* How many quarters of a turn Image.rotate turns by without a matrix, counterclockwise; -1: by a
 * matrix. `centered`: about the center of the image. */
int pen__rotate_quarters(double degrees, int centered, uint32_t width, uint32_t height);

/* A map with these values of parameters, and no coefficients yet. */
PenWarp pen__warp_with(const PenParamValue *filter, const PenParamValue *fill);
/* Image.rotate, about a center in pixels; NULL: the center of the image. */
int pen__draft_rotate(PenSampleDraft *d, double degrees, const double center[2], const PenWarp *how,
                      PenError *reterr);

/* torchvision's _get_perspective_coeffs of an image whose corners move to `to`: top left, top
 * right, bottom right, bottom left, each x, y. Its least squares are solved exactly, and rounded to
 * float as there. 0: there is no such map, or three corners lie on one line. */
int pen__perspective_inverse(const int32_t to[4][2], uint32_t width, uint32_t height,
                             double ret[8]);

#endif
