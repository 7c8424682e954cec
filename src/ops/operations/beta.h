/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a gamma or a beta distribution, the same on every machine. A try takes two draws and
 * more than 9 of 10 succeed; after 64 that failed the result is the most likely value. */
#ifndef PEN_OPS_OPERATIONS_BETA_H
#define PEN_OPS_OPERATIONS_BETA_H

#include "ops/operations/draw.h"

/* Of scale 1. 1e-3 <= shape <= 1e6; results below e^-700 are 0. */
double pen__draw_gamma(PenDraw *d, double shape);
/* From 0 to 1. 1e-3 <= a, b <= 1e6. */
double pen__draw_beta(PenDraw *d, double a, double b);

#endif
