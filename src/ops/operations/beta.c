/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build), with the functions of boxes.h: every machine
 * rounds alike. */
#include "ops/operations/beta.h"

#include <math.h>

#include "ops/operations/boxes.h"

enum { TRIES = 64, EXP_LIMIT = 700 /* of pen__real_exp */ };

/* Above 0, so that it has a logarithm. */
static double draw_positive(PenDraw *d)
{
    return 1 - pen__draw_uniform(d, 0, 1);
}

/* By Marsaglia's polar method: a point of the unit disc. */
static double draw_normal(PenDraw *d)
{
    for (int i = 0; i < TRIES; i++) {
        double x = pen__draw_uniform(d, -1, 1), y = pen__draw_uniform(d, -1, 1);
        double s = x * x + y * y;
        if (s > 0 && s < 1)
            return x * sqrt(-2 * pen__real_log(s) / s);
    }
    return 0;
}

/* Marsaglia and Tsang, A simple method for generating gamma variables, 2000. shape >= 1 */
static double draw_large(PenDraw *d, double shape)
{
    double most = shape - 1.0 / 3, c = 1 / sqrt(9 * most);
    for (int i = 0; i < TRIES; i++) {
        double x = draw_normal(d), root = 1 + c * x, v = root * root * root;
        double u = pen__real_log(draw_positive(d));
        if (v > 0 && u < x * x / 2 + most * (1 - v + pen__real_log(v)))
            return most * v;
    }
    return most;
}

/* The logarithm of a gamma variable: for a small shape the variable itself can be too small. */
static double draw_log_gamma(PenDraw *d, double shape)
{
    if (shape >= 1)
        return pen__real_log(draw_large(d, shape));
    double large = pen__real_log(draw_large(d, shape + 1));
    return large + pen__real_log(draw_positive(d)) / shape;
}

double pen__draw_gamma(PenDraw *d, double shape)
{
    if (shape >= 1)
        return draw_large(d, shape);
    double log_gamma = draw_log_gamma(d, shape);
    return log_gamma > -EXP_LIMIT ? pen__real_exp(log_gamma) : 0;
}

double pen__draw_beta(PenDraw *d, double a, double b)
{
    double x = draw_log_gamma(d, a), y = draw_log_gamma(d, b), more = y - x;
    if (more >= EXP_LIMIT)
        return 0;
    return more <= -EXP_LIMIT ? 1 : 1 / (1 + pen__real_exp(more));
}
