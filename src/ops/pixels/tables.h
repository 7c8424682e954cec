/* SPDX-License-Identifier: Apache-2.0 */
/* What a point step makes of each of the 256 values, as Pillow's ImageOps and ImageEnhance and
 * torchvision's adjust_gamma have it. The same on every machine. */
#ifndef PEN_OPS_PIXELS_TABLES_H
#define PEN_OPS_PIXELS_TABLES_H

#include "ops/sample/sample_plan.h"

/* counts: how often each value occurs, for equalize and autocontrast; mean: for contrast. */
void pen__point_table(const PenStep *step, const uint32_t counts[256], int32_t mean,
                      uint8_t ret[256]);

#endif
