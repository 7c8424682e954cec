/* SPDX-License-Identifier: Apache-2.0 */
/* Maps whose parameters are drawn as torchvision's RandomRotation, RandomAffine and
 * RandomPerspective draw them. */
#include <math.h>

#include "ops/language/lex.h"
#include "ops/operations/affine.h"
#include "ops/operations/op.h"

enum { ROTATE_DEGREES, ROTATE_INTERPOLATION, ROTATE_FILL, ROTATE_CENTER };
enum { DEGREES, TRANSLATE, SCALE, SHEAR, INTERPOLATION, FILL, CENTER };
enum { DISTORTION, P, SEEN_INTERPOLATION, SEEN_FILL };

#define FILL_HELP "value where there is no image: one number, or one per channel"
#define CENTER_HELP "x,y of the pixel that stays in place; none: the center of the image"
#define MOST_DEGREES 3600
#define MOST_SHEAR 89

const PenParam pen__params_random_rotation[4] = {
    {"degrees", PEN_PARAM_FACTOR, -MOST_DEGREES, MOST_DEGREES, NULL, NULL,
     "range of the angle; x means -x,x"},
    {"interpolation", PEN_PARAM_WORD, 0, 0, "nearest", PEN_WARP_WORDS, "interpolation filter"},
    {"fill", PEN_PARAM_INTS, 0, 255, "0", NULL, FILL_HELP},
    {"center", PEN_PARAM_NUMBERS, -65535, 65535, "none", "none", CENTER_HELP},
};

const PenParam pen__params_random_affine[7] = {
    {"degrees", PEN_PARAM_FACTOR, -MOST_DEGREES, MOST_DEGREES, NULL, NULL,
     "range of the angle; x means -x,x"},
    {"translate", PEN_PARAM_NUMBERS, 0, 1, "0,0", NULL,
     "largest shift in x and y, as fractions of the width and the height"},
    {"scale", PEN_PARAM_RANGE, 0.001, 1000, "1,1", NULL, "range of the factor"},
    {"shear", PEN_PARAM_NUMBERS, -MOST_SHEAR, MOST_SHEAR, "0", NULL,
     "range of the angle along x; x means -x,x; four numbers: the ranges along x and y"},
    {"interpolation", PEN_PARAM_WORD, 0, 0, "nearest", PEN_WARP_WORDS, "interpolation filter"},
    {"fill", PEN_PARAM_INTS, 0, 255, "0", NULL, FILL_HELP},
    {"center", PEN_PARAM_NUMBERS, -65535, 65535, "none", "none", CENTER_HELP},
};

const PenParam pen__params_random_perspective[4] = {
    {"distortion_scale", PEN_PARAM_FLOAT, 0, 1, "0.5", NULL,
     "most that a corner moves, as a fraction of half the side"},
    {"p", PEN_PARAM_FLOAT, 0, 1, "0.5", NULL, "probability"},
    {"interpolation", PEN_PARAM_WORD, 0, 0, "bilinear", PEN_WARP_WORDS, "interpolation filter"},
    {"fill", PEN_PARAM_INTS, 0, 255, "0", NULL, FILL_HELP},
};

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_center(const char *op, const PenParamValue *center, uint32_t column,
                        PenError *reterr)
{
    if (!center->n || center->n == 2)
        return PEN_OK;
    return pen__spec_fail(reterr, column, "%s: center: expected x,y, found %u number%s", op,
                          center->n, center->n == 1 ? "" : "s");
}

int pen__check_rotation(const PenParamValue *values, uint32_t column, PenError *reterr)
{
    return check_center("random_rotation", &values[ROTATE_CENTER], column, reterr);
}

int pen__check_affine(const PenParamValue *values, uint32_t column, PenError *reterr)
{
    const PenParamValue *shear = &values[SHEAR];
    if (values[TRANSLATE].n != 2)
        return pen__spec_fail(reterr, column,
                              "random_affine: translate: expected x,y, found %u number%s",
                              values[TRANSLATE].n, values[TRANSLATE].n == 1 ? "" : "s");
    if (shear->n != 1 && shear->n != 2 && shear->n != 4)
        return pen__spec_fail(
            reterr, column, "random_affine: shear: expected 1, 2 or 4 numbers, found %u", shear->n);
    if (shear->n == 1 && shear->v[0] < 0)
        return pen__spec_fail(reterr, column,
                              "random_affine: shear: expected at least 0, or low,high");
    for (uint32_t i = 1; i < shear->n; i += 2)
        if (shear->v[i - 1] > shear->v[i])
            return pen__spec_fail(reterr, column,
                                  "random_affine: shear: expected the lower number first");
    return check_center("random_affine", &values[CENTER], column, reterr);
}

/* ---- drafts ---------------------------------------------------------------------------------- */

static void set_center(const PenSampleDraft *d, const PenParamValue *center, double ret[2])
{
    ret[0] = center->n ? center->v[0] : d->width * 0.5;
    ret[1] = center->n ? center->v[1] : d->height * 0.5;
}

int pen__draft_random_rotation(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                               PenError *reterr)
{
    const PenParamValue *degrees = &values[ROTATE_DEGREES], *center = &values[ROTATE_CENTER];
    double angle = pen__draw_uniform(draw, degrees->v[0], degrees->v[1]);
    PenWarp how = pen__warp_with(&values[ROTATE_INTERPOLATION], &values[ROTATE_FILL]);
    d->shrinks = 0;
    return pen__draft_rotate(d, angle, center->n ? center->v : NULL, &how, reterr);
}

/* Whole pixels, halves to the even number. */
static double draw_shift(PenDraw *draw, double most)
{
    return rint(pen__draw_uniform(draw, -most, most));
}

static double draw_shear(PenDraw *draw, const PenParamValue *shear, uint32_t axis)
{
    if (shear->n == 1)
        return pen__draw_uniform(draw, -shear->v[0], shear->v[0]) * (axis == 0);
    double low = 2 * axis < shear->n ? shear->v[2 * axis] : 0;
    double high = 2 * axis < shear->n ? shear->v[2 * axis + 1] : 0;
    return pen__draw_uniform(draw, low, high);
}

/* All are drawn whether they are wanted or not: switching one on leaves the others as they were. */
int pen__draft_random_affine(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                             PenError *reterr)
{
    const double *translate = values[TRANSLATE].v;
    PenWarp w = pen__warp_with(&values[INTERPOLATION], &values[FILL]);
    PenAffine map;
    set_center(d, &values[CENTER], map.center);
    map.angle = pen__draw_uniform(draw, values[DEGREES].v[0], values[DEGREES].v[1]);
    map.translate[0] = draw_shift(draw, translate[0] * d->width);
    map.translate[1] = draw_shift(draw, translate[1] * d->height);
    map.scale = pen__draw_uniform(draw, values[SCALE].v[0], values[SCALE].v[1]);
    map.shear[0] = draw_shear(draw, &values[SHEAR], 0);
    map.shear[1] = draw_shear(draw, &values[SHEAR], 1);
    pen__affine_inverse(&map, w.a);
    return pen__draft_warp(d, &w, reterr);
}

static int32_t draw_corner(PenDraw *draw, uint32_t side, uint32_t most, int at_end)
{
    uint32_t by = (uint32_t)pen__draw_below(draw, (uint64_t)most + 1);
    return (int32_t)(at_end ? side - most - 1 + by : by);
}

int pen__draft_random_perspective(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                                  PenError *reterr)
{
    double scale = values[DISTORTION].v[0];
    uint32_t half_width = d->width / 2, half_height = d->height / 2;
    uint32_t most_x = (uint32_t)(scale * half_width), most_y = (uint32_t)(scale * half_height);
    PenWarp w = pen__warp_with(&values[SEEN_INTERPOLATION], &values[SEEN_FILL]);
    int32_t to[4][2];
    d->shrinks = 0;
    if (!pen__draw_happens(draw, values[P].v[0]))
        return PEN_OK;
    for (int i = 0; i < 4; i++) { /* clockwise from the top left */
        to[i][0] = draw_corner(draw, d->width, most_x, i == 1 || i == 2);
        to[i][1] = draw_corner(draw, d->height, most_y, i >= 2);
    }
    w.perspective = 1;
    return pen__perspective_inverse(to, d->width, d->height, w.a) ? pen__draft_warp(d, &w, reterr)
                                                                  : PEN_OK;
}
