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
