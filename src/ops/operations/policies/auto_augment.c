/* SPDX-License-Identifier: Apache-2.0 */
/* AutoAugment (Cubuk et al., 2018): the policies found for ImageNet, CIFAR-10 and SVHN. */
#include "ops/operations/policies/augment.h"

enum { PAIRS = 25, BINS = 10 };
enum { POLICY, FILTER, FILL };

/* In the order of `policies`. */
const PenParam pen__params_auto_augment[3] = {
    {"policy", PEN_PARAM_WORD, 0, 0, "imagenet", "imagenet cifar10 svhn",
     "data set that the policy was found on"},
    PEN_AUGMENT_FILTER("nearest"),
    PEN_AUGMENT_FILL,
};

typedef struct Part {
    uint8_t kind;   /* a PenAugment */
    uint8_t tenths; /* of the probability */
    uint8_t bin;
} Part;

/* Short names for the tables. */
enum {
    SHEAR_X = PEN_AUGMENT_SHEAR_X,
    SHEAR_Y = PEN_AUGMENT_SHEAR_Y,
    TRANSLATE_X = PEN_AUGMENT_TRANSLATE_X,
    TRANSLATE_Y = PEN_AUGMENT_TRANSLATE_Y,
    ROTATE = PEN_AUGMENT_ROTATE,
    BRIGHTNESS = PEN_AUGMENT_BRIGHTNESS,
    COLOR = PEN_AUGMENT_COLOR,
    CONTRAST = PEN_AUGMENT_CONTRAST,
    SHARPNESS = PEN_AUGMENT_SHARPNESS,
    POSTERIZE = PEN_AUGMENT_POSTERIZE,
    SOLARIZE = PEN_AUGMENT_SOLARIZE,
    AUTOCONTRAST = PEN_AUGMENT_AUTOCONTRAST,
    EQUALIZE = PEN_AUGMENT_EQUALIZE,
    INVERT = PEN_AUGMENT_INVERT,
};

static const Part policies[3][PAIRS][2] = {
    {
        /* imagenet */
        {{POSTERIZE, 4, 8}, {ROTATE, 6, 9}},  {{SOLARIZE, 6, 5}, {AUTOCONTRAST, 6, 0}},
        {{EQUALIZE, 8, 0}, {EQUALIZE, 6, 0}}, {{POSTERIZE, 6, 7}, {POSTERIZE, 6, 6}},
        {{EQUALIZE, 4, 0}, {SOLARIZE, 2, 4}}, {{EQUALIZE, 4, 0}, {ROTATE, 8, 8}},
        {{SOLARIZE, 6, 3}, {EQUALIZE, 6, 0}}, {{POSTERIZE, 8, 5}, {EQUALIZE, 10, 0}},
        {{ROTATE, 2, 3}, {SOLARIZE, 6, 8}},   {{EQUALIZE, 6, 0}, {POSTERIZE, 4, 6}},
        {{ROTATE, 8, 8}, {COLOR, 4, 0}},      {{ROTATE, 4, 9}, {EQUALIZE, 6, 0}},
        {{EQUALIZE, 0, 0}, {EQUALIZE, 8, 0}}, {{INVERT, 6, 0}, {EQUALIZE, 10, 0}},
        {{COLOR, 6, 4}, {CONTRAST, 10, 8}},   {{ROTATE, 8, 8}, {COLOR, 10, 2}},
        {{COLOR, 8, 8}, {SOLARIZE, 8, 7}},    {{SHARPNESS, 4, 7}, {INVERT, 6, 0}},
        {{SHEAR_X, 6, 5}, {EQUALIZE, 10, 0}}, {{COLOR, 4, 0}, {EQUALIZE, 6, 0}},
        {{EQUALIZE, 4, 0}, {SOLARIZE, 2, 4}}, {{SOLARIZE, 6, 5}, {AUTOCONTRAST, 6, 0}},
        {{INVERT, 6, 0}, {EQUALIZE, 10, 0}},  {{COLOR, 6, 4}, {CONTRAST, 10, 8}},
        {{EQUALIZE, 8, 0}, {EQUALIZE, 6, 0}},
    },
    {
        /* cifar10 */
        {{INVERT, 1, 0}, {CONTRAST, 2, 6}},          {{ROTATE, 7, 2}, {TRANSLATE_X, 3, 9}},
        {{SHARPNESS, 8, 1}, {SHARPNESS, 9, 3}},      {{SHEAR_Y, 5, 8}, {TRANSLATE_Y, 7, 9}},
        {{AUTOCONTRAST, 5, 0}, {EQUALIZE, 9, 0}},    {{SHEAR_Y, 2, 7}, {POSTERIZE, 3, 7}},
        {{COLOR, 4, 3}, {BRIGHTNESS, 6, 7}},         {{SHARPNESS, 3, 9}, {BRIGHTNESS, 7, 9}},
        {{EQUALIZE, 6, 0}, {EQUALIZE, 5, 0}},        {{CONTRAST, 6, 7}, {SHARPNESS, 6, 5}},
        {{COLOR, 7, 7}, {TRANSLATE_X, 5, 8}},        {{EQUALIZE, 3, 0}, {AUTOCONTRAST, 4, 0}},
        {{TRANSLATE_Y, 4, 3}, {SHARPNESS, 2, 6}},    {{BRIGHTNESS, 9, 6}, {COLOR, 2, 8}},
        {{SOLARIZE, 5, 2}, {INVERT, 0, 0}},          {{EQUALIZE, 2, 0}, {AUTOCONTRAST, 6, 0}},
        {{EQUALIZE, 2, 0}, {EQUALIZE, 6, 0}},        {{COLOR, 9, 9}, {EQUALIZE, 6, 0}},
        {{AUTOCONTRAST, 8, 0}, {SOLARIZE, 2, 8}},    {{BRIGHTNESS, 1, 3}, {COLOR, 7, 0}},
        {{SOLARIZE, 4, 5}, {AUTOCONTRAST, 9, 0}},    {{TRANSLATE_Y, 9, 9}, {TRANSLATE_Y, 7, 9}},
        {{AUTOCONTRAST, 9, 0}, {SOLARIZE, 8, 3}},    {{EQUALIZE, 8, 0}, {INVERT, 1, 0}},
        {{TRANSLATE_Y, 7, 9}, {AUTOCONTRAST, 9, 0}},
    },
    {
        /* svhn */
        {{SHEAR_X, 9, 4}, {INVERT, 2, 0}},       {{SHEAR_Y, 9, 8}, {INVERT, 7, 0}},
        {{EQUALIZE, 6, 0}, {SOLARIZE, 6, 6}},    {{INVERT, 9, 0}, {EQUALIZE, 6, 0}},
        {{EQUALIZE, 6, 0}, {ROTATE, 9, 3}},      {{SHEAR_X, 9, 4}, {AUTOCONTRAST, 8, 0}},
        {{SHEAR_Y, 9, 8}, {INVERT, 4, 0}},       {{SHEAR_Y, 9, 5}, {SOLARIZE, 2, 6}},
        {{INVERT, 9, 0}, {AUTOCONTRAST, 8, 0}},  {{EQUALIZE, 6, 0}, {ROTATE, 9, 3}},
        {{SHEAR_X, 9, 4}, {SOLARIZE, 3, 3}},     {{SHEAR_Y, 8, 8}, {INVERT, 7, 0}},
        {{EQUALIZE, 9, 0}, {TRANSLATE_Y, 6, 6}}, {{INVERT, 9, 0}, {EQUALIZE, 6, 0}},
        {{CONTRAST, 3, 3}, {ROTATE, 8, 4}},      {{INVERT, 8, 0}, {TRANSLATE_Y, 0, 2}},
        {{SHEAR_Y, 7, 6}, {SOLARIZE, 4, 8}},     {{INVERT, 6, 0}, {ROTATE, 8, 4}},
        {{SHEAR_Y, 3, 7}, {TRANSLATE_X, 9, 3}},  {{SHEAR_X, 1, 6}, {INVERT, 6, 0}},
        {{SOLARIZE, 7, 2}, {TRANSLATE_Y, 6, 7}}, {{SHEAR_Y, 8, 4}, {INVERT, 8, 0}},
        {{SHEAR_X, 7, 9}, {TRANSLATE_Y, 8, 3}},  {{SHEAR_Y, 8, 5}, {AUTOCONTRAST, 7, 0}},
        {{SHEAR_X, 7, 2}, {INVERT, 1, 0}},
    },
};

/* The pair, then for each of the two whether it happens and its sign. */
int pen__draft_auto_augment(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                            PenError *reterr)
{
    PenAugmentSpace space = {.bins = BINS,
                             .shear = 0.3,
                             .translate_x = 150.0 / 331.0 * d->width,
                             .translate_y = 150.0 / 331.0 * d->height,
                             .rotate = 30,
                             .factor = 0.9,
                             .bits = 8,
                             .fewer_bits = 4};
    PenWarp how = pen__warp_with(&values[FILTER], &values[FILL]);
    const Part *pair = policies[values[POLICY].word][pen__draw_below(draw, PAIRS)];
    int r = PEN_OK;
    for (int i = 0; r == PEN_OK && i < 2; i++) {
        PenAugment kind = (PenAugment)pair[i].kind;
        bool happens = pen__draw_happens(draw, pair[i].tenths / 10.0);
        bool is_negative = pen__draw_below(draw, 2) == 0 && pen__augment_is_signed(kind);
        double magnitude = pen__augment_magnitude(&space, kind, pair[i].bin);
        if (happens)
            r = pen__draft_augment(d, kind, is_negative ? -magnitude : magnitude, &how, reterr);
    }
    return r;
}
