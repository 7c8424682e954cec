/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build). */
#include "ops/operations/policies/augment.h"

#include <math.h>

#include "ops/operations/trig.h"

bool pen__augment_is_signed(PenAugment kind)
{
    return kind >= PEN_AUGMENT_SHEAR_X && kind <= PEN_AUGMENT_SHARPNESS;
}

/* Of numbers from `start` to `end`, in single precision from the nearer end, as torch.linspace has
 * it: the product and the sum are rounded once. */
static double even_step(double start, double end, uint32_t n, uint32_t i)
{
    float first = (float)start, last = (float)end, step = (last - first) / (float)(n - 1);
    double way = (double)step * (i < n / 2 ? i : n - 1 - i);
    return (float)(i < n / 2 ? first + way : last - way);
}

static double posterize_bits(const PenAugmentSpace *space, uint32_t bin)
{
    float per_bit = (float)((space->bins - 1) / (double)space->fewer_bits);
    return space->bits - (int32_t)rintf((float)bin / per_bit);
}

double pen__augment_magnitude(const PenAugmentSpace *space, PenAugment kind, uint32_t bin)
{
    switch (kind) {
    case PEN_AUGMENT_SHEAR_X:
    case PEN_AUGMENT_SHEAR_Y:
        return even_step(0, space->shear, space->bins, bin);
    case PEN_AUGMENT_TRANSLATE_X:
        return even_step(0, space->translate_x, space->bins, bin);
    case PEN_AUGMENT_TRANSLATE_Y:
        return even_step(0, space->translate_y, space->bins, bin);
    case PEN_AUGMENT_ROTATE:
        return even_step(0, space->rotate, space->bins, bin);
    case PEN_AUGMENT_BRIGHTNESS:
    case PEN_AUGMENT_COLOR:
    case PEN_AUGMENT_CONTRAST:
    case PEN_AUGMENT_SHARPNESS:
        return even_step(0, space->factor, space->bins, bin);
    case PEN_AUGMENT_POSTERIZE:
        return posterize_bits(space, bin);
    case PEN_AUGMENT_SOLARIZE:
        return even_step(255, 0, space->bins, bin);
    default:
        return 0;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Shears are about the first corner. */
static int draft_affine(PenSampleDraft *d, PenAugment kind, double magnitude, PenWarp w,
                        PenError *reterr)
{
    bool shears = kind == PEN_AUGMENT_SHEAR_X || kind == PEN_AUGMENT_SHEAR_Y;
    int axis = kind == PEN_AUGMENT_SHEAR_Y || kind == PEN_AUGMENT_TRANSLATE_Y;
    PenAffine map = {.scale = 1};
    if (shears) {
        map.shear[axis] = pen__real_degrees(pen__real_atan(magnitude));
    } else {
        map.center[0] = d->width * 0.5;
        map.center[1] = d->height * 0.5;
        map.translate[axis] = trunc(magnitude);
    }
    pen__affine_inverse(&map, w.a);
    return pen__draft_warp(d, &w, reterr);
}

static int draft_colour(PenSampleDraft *d, PenAugment kind, double magnitude, PenError *reterr)
{
    static const int32_t kinds[] = {
        [PEN_AUGMENT_BRIGHTNESS] = PEN_STEP_BRIGHTNESS,
        [PEN_AUGMENT_COLOR] = PEN_STEP_SATURATION,
        [PEN_AUGMENT_CONTRAST] = PEN_STEP_CONTRAST,
        [PEN_AUGMENT_SHARPNESS] = PEN_STEP_SHARPNESS,
        [PEN_AUGMENT_POSTERIZE] = PEN_STEP_POSTERIZE,
        [PEN_AUGMENT_SOLARIZE] = PEN_STEP_SOLARIZE,
        [PEN_AUGMENT_AUTOCONTRAST] = PEN_STEP_AUTOCONTRAST,
        [PEN_AUGMENT_EQUALIZE] = PEN_STEP_EQUALIZE,
        [PEN_AUGMENT_INVERT] = PEN_STEP_INVERT,
    };
    PenStep step = {.kind = kinds[kind]};
    if (pen__augment_is_signed(kind))
        step.u.factor = (int32_t)rint((1 + magnitude) * 65536);
    else if (kind == PEN_AUGMENT_POSTERIZE)
        step.u.value = (int32_t)magnitude;
    else if (kind == PEN_AUGMENT_SOLARIZE)
        step.u.value = (int32_t)ceil(magnitude);
    return d->nearest ? PEN_OK : pen__draft_step(d, &step, reterr);
}

int pen__draft_augment(PenSampleDraft *d, PenAugment kind, double magnitude, const PenWarp *how,
                       PenError *reterr)
{
    if (kind == PEN_AUGMENT_IDENTITY)
        return PEN_OK;
    if (kind == PEN_AUGMENT_ROTATE) /* by less than 180 degrees, which would be flips */
        return pen__draft_rotate(d, magnitude, NULL, how, reterr);
    if (kind < PEN_AUGMENT_ROTATE)
        return draft_affine(d, kind, magnitude, *how, reterr);
    return draft_colour(d, kind, magnitude, reterr);
}
