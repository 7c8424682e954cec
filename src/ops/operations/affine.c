/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build). */
#include "ops/operations/affine.h"

#include <math.h>

#include "ops/operations/trig.h"

void pen__affine_inverse(const PenAffine *map, double ret[6])
{
    double rot = pen__real_radians(map->angle);
    double sx = pen__real_radians(map->shear[0]), sy = pen__real_radians(map->shear[1]);
    double cos_sy = pen__real_cos(sy), tan_sx = pen__real_tan(sx);
    double cos_turn = pen__real_cos(rot - sy), sin_turn = pen__real_sin(rot - sy);
    double a = cos_turn / cos_sy, b = -cos_turn * tan_sx / cos_sy - pen__real_sin(rot);
    double c = sin_turn / cos_sy, d = -sin_turn * tan_sx / cos_sy + pen__real_cos(rot);
    double x = -map->center[0] - map->translate[0], y = -map->center[1] - map->translate[1];
    ret[0] = d / map->scale;
    ret[1] = -b / map->scale;
    ret[3] = -c / map->scale;
    ret[4] = a / map->scale;
    ret[2] = 0.0 / map->scale + (ret[0] * x + ret[1] * y) + map->center[0];
    ret[5] = 0.0 / map->scale + (ret[3] * x + ret[4] * y) + map->center[1];
}

PenWarp pen__warp_with(const PenParamValue *filter, const PenParamValue *fill)
{
    PenWarp w = {.filter = (int32_t)filter->word};
    for (uint32_t i = 0; i < PEN_LEN(w.fill); i++)
        w.fill[i] = (uint8_t)fill->v[fill->n == 1 ? 0 : i];
    return w;
}

/* ---- Image.rotate ---------------------------------------------------------------------------- */

/* Python's round(x, 15) of |x| <= 1: the nearest multiple of 10^-15, halves to the even one. */
static double round_15(double x)
{
    int exponent;
    int64_t bits = (int64_t)ldexp(frexp(fabs(x), &exponent), 53);
    int shift = 53 - exponent;
    if (shift > 110)
        return x < 0 ? -0.0 : 0.0;
    __int128 wide = (__int128)bits * 1000000000000000;
    __int128 whole = wide >> shift, rest = wide - (whole << shift),
             half = (__int128)1 << (shift - 1);
    whole += rest > half || (rest == half && (whole & 1));
    double result = (double)(int64_t)whole / 1e15;
    return x < 0 ? -result : result;
}

/* Of [0, 360). */
static double full_turn(double degrees)
{
    double rest = fmod(degrees, 360);
    return rest < 0 ? rest + 360 : rest;
}

int pen__rotate_quarters(double degrees, int centered, uint32_t width, uint32_t height)
{
    double angle = full_turn(degrees);
    if (!centered)
        return -1;
    if (angle == 0 || angle == 180)
        return angle == 0 ? 0 : 2;
    if ((angle == 90 || angle == 270) && width == height)
        return angle == 90 ? 1 : 3;
    return -1;
}

void pen__rotate_inverse(double degrees, const double center[2], double ret[6])
{
    double angle = -pen__real_radians(full_turn(degrees));
    double c = round_15(pen__real_cos(angle)), s = round_15(pen__real_sin(angle));
    double minus = round_15(-pen__real_sin(angle)), x = -center[0] - 0, y = -center[1] - 0;
    ret[0] = c;
    ret[1] = s;
    ret[3] = minus;
    ret[4] = c;
    ret[2] = c * x + s * y + 0.0 + center[0];
    ret[5] = minus * x + c * y + 0.0 + center[1];
}

/* A square that Pillow transposes: all of its pixels move to middles of others. */
static int draft_quarter(PenSampleDraft *d, int turn, PenWarp w, PenError *reterr)
{
    w.filter = PEN_FILTER_NEAREST;
    w.a[1] = -turn;
    w.a[3] = turn;
    w.a[2] = turn > 0 ? d->width : 0;
    w.a[5] = turn > 0 ? 0 : d->height;
    return pen__draft_warp(d, &w, reterr);
}

int pen__draft_rotate(PenSampleDraft *d, double degrees, const double center[2], const PenWarp *how,
                      PenError *reterr)
{
    const double middle[2] = {d->width * 0.5, d->height * 0.5};
    int quarters = pen__rotate_quarters(degrees, !center, d->width, d->height);
    PenWarp w = *how;
    if (quarters == 0)
        return PEN_OK;
    if (quarters == 2)
        return pen__draft_mirror(d, 1, 1, reterr);
    if (quarters > 0)
        return draft_quarter(d, quarters == 1 ? 1 : -1, w, reterr);
    pen__rotate_inverse(degrees, center ? center : middle, w.a);
    return pen__draft_warp(d, &w, reterr);
}

/* ---- perspective ----------------------------------------------------------------------------- */

typedef __int128 Wide;

/* a b - c d; corners have 16 bits, so nothing here exceeds 125. */
static Wide cross(Wide a, Wide b, Wide c, Wide d)
{
    return a * b - c * d;
}

/* The map of the unit square to the corners, times its determinant: the first row of its matrix for
 * one coordinate. */
static void square_row(const int32_t to[4][2], int axis, Wide g, Wide h, Wide all, Wide ret[3])
{
    ret[0] = (to[1][axis] - to[0][axis]) * all + g * to[1][axis];
    ret[1] = (to[3][axis] - to[0][axis]) * all + h * to[3][axis];
    ret[2] = to[0][axis] * all;
}

/* Do three of the corners lie on one line? */
static int is_flat(const int32_t to[4][2])
{
    int flat = 0;
    for (int i = 0; i < 4; i++) {
        const int32_t *a = to[i], *b = to[(i + 1) % 4], *c = to[(i + 2) % 4];
        flat |= !cross(b[0] - a[0], c[1] - a[1], c[0] - a[0], b[1] - a[1]);
    }
    return flat;
}

/* Heckbert's map of the unit square to a quadrilateral, in integers, and its inverse. */
int pen__perspective_inverse(const int32_t to[4][2], uint32_t width, uint32_t height, double ret[8])
{
    Wide side[2], right[2], bottom[2], x[3], y[3];
    for (int i = 0; i < 2; i++) {
        side[i] = (Wide)to[0][i] - to[1][i] + to[2][i] - to[3][i];
        right[i] = to[1][i] - to[2][i];
        bottom[i] = to[3][i] - to[2][i];
    }
    Wide all = cross(right[0], bottom[1], bottom[0], right[1]);
    Wide g = cross(side[0], bottom[1], bottom[0], side[1]);
    Wide h = cross(right[0], side[1], side[0], right[1]);
    square_row(to, 0, g, h, all, x);
    square_row(to, 1, g, h, all, y);
    Wide unit = cross(x[0], y[1], x[1], y[0]), w = (Wide)width - 1, v = (Wide)height - 1;
    if (!unit || w <= 0 || v <= 0 || is_flat(to))
        return 0;
    Wide inverse[8] = {
        cross(y[1], all, y[2], h) * w,     cross(x[2], h, x[1], all) * w,
        cross(x[1], y[2], x[2], y[1]) * w, cross(y[2], g, y[0], all) * v,
        cross(x[0], all, x[2], g) * v,     cross(x[2], y[0], x[0], y[2]) * v,
        cross(y[0], h, y[1], g),           cross(x[1], g, x[0], h),
    };
    for (int i = 0; i < 8; i++)
        ret[i] = (float)((double)inverse[i] / (double)unit);
    return 1;
}
