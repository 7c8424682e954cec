/* SPDX-License-Identifier: Apache-2.0 */
/* mixup and cutmix: what is drawn for a batch or a sample. By torchvision's published algorithms;
 * no function of the C library is used whose last bit may differ from machine to machine. */
#ifndef PEN_OPS_OPERATIONS_MIX_H
#define PEN_OPS_OPERATIONS_MIX_H

#include <penstock/decode.h>

#include "ops/operations/draw.h"

enum { PEN_MIX_NONE = 0, PEN_MIX_MIXUP = 1, PEN_MIX_CUTMIX = 2 };

typedef struct PenMixRule {
    struct {
        double alpha; /* 0: the operation is not given */
        double p;
    } mixup, cutmix;
    int32_t per_sample;
} PenMixRule;

typedef struct PenMixDraw {
    int32_t kind;  /* PEN_MIX_* */
    double lambda; /* share of the sample itself; the rest is its partner's */
    PenBox box;    /* of cutmix: the part that comes from the partner; may be empty */
} PenMixDraw;

/* `position` is that of the batch or of the sample. */
PenMixDraw pen__mix_draw(const PenMixRule *rule, PenDrawKey key, uint64_t position, uint32_t width,
                         uint32_t height);

#endif
