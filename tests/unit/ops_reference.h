/* SPDX-License-Identifier: Apache-2.0 */
/* Operations one by one on whole images, straight from their descriptions: what sample plans are
 * compared with. */
#ifndef PEN_TESTS_UNIT_OPS_REFERENCE_H
#define PEN_TESTS_UNIT_OPS_REFERENCE_H

#include "codec/region/region.h"
#include "ops/operations/draw.h"
#include "ops/pipeline/spec.h"

typedef struct Pic {
    uint8_t *data; /* free() it */
    uint32_t w, h, c;
} Pic;

uint8_t *pic_at(const Pic *p, int64_t x, int64_t y);

/* Decoded whole, in this colour, and turned upright. Aborts when it cannot. */
Pic pic_decode(const PenEncoded *e, int colour, int orientation);

/* All but normalize and tensor. */
void pic_apply(Pic *p, const PenSpecOp *op, PenDraw *d, int is_mask);

#endif
