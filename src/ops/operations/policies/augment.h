/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that RandAugment and its relatives choose from, and their magnitudes, as
 * torchvision's autoaugment.py publishes them for PIL images. Rounded alike on every machine. */
#ifndef PEN_OPS_OPERATIONS_POLICIES_AUGMENT_H
#define PEN_OPS_OPERATIONS_POLICIES_AUGMENT_H

#include <stdbool.h>

#include "ops/operations/affine.h"
#include "ops/operations/op.h"

typedef enum PenAugment {
    PEN_AUGMENT_IDENTITY,
    PEN_AUGMENT_SHEAR_X,
    PEN_AUGMENT_SHEAR_Y,
    PEN_AUGMENT_TRANSLATE_X,
    PEN_AUGMENT_TRANSLATE_Y,
    PEN_AUGMENT_ROTATE,
    PEN_AUGMENT_BRIGHTNESS,
    PEN_AUGMENT_COLOR,
    PEN_AUGMENT_CONTRAST,
    PEN_AUGMENT_SHARPNESS,
    PEN_AUGMENT_POSTERIZE,
    PEN_AUGMENT_SOLARIZE,
    PEN_AUGMENT_AUTOCONTRAST,
    PEN_AUGMENT_EQUALIZE,
    PEN_AUGMENT_INVERT
} PenAugment;

/* Magnitudes rise evenly from 0, in so many bins, to these numbers. */
typedef struct PenAugmentSpace {
    uint32_t bins;
    double shear;                    /* tangent of the angle */
    double translate_x, translate_y; /* pixels */
    double rotate;                   /* degrees */
    double factor;                   /* of brightness, color, contrast and sharpness: 1 +- m */
    int32_t bits, fewer_bits;        /* of posterize, in the first bin; and how many fewer in the
                                      * last */
} PenAugmentSpace;

/* Magnitudes of this one are as likely positive as negative. */
bool pen__augment_is_signed(PenAugment kind);
double pen__augment_magnitude(const PenAugmentSpace *space, PenAugment kind, uint32_t bin);

/* Adds at most one step. `how` has the filter and the fill of what moves pixels. Of a mask's plan
 * it is the moves alone. */
int pen__draft_augment(PenSampleDraft *d, PenAugment kind, double magnitude, const PenWarp *how,
                       PenError *reterr);

#define PEN_AUGMENT_FILTER(initial)                                                                \
    {                                                                                              \
        "interpolation", PEN_PARAM_WORD, 0, 0, initial, PEN_WARP_WORDS,                            \
            "filter of what moves pixels"                                                          \
    }
#define PEN_AUGMENT_FILL                                                                           \
    {                                                                                              \
        "fill", PEN_PARAM_INTS, 0, 255, "0", NULL,                                                 \
            "value where there is no image: one number, or one per channel"                        \
    }

#endif
