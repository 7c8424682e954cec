/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build), so that every machine rounds alike. */
#include <math.h>

#include "base/attr.h"
#include "ops/operations/beta.h"
#include "ops/operations/mix.h"
#include "ops/operations/op.h"

typedef struct Range {
    uint32_t from, to;
} Range;

/* Around a random centre, cut off at the edges. */
static Range draw_range(PenDraw *d, uint32_t side, double half)
{
    uint32_t centre = (uint32_t)pen__draw_below(d, side), reach = (uint32_t)(half * side);
    return (Range){centre > reach ? centre - reach : 0, PEN_MIN(centre + reach, side)};
}

static void draw_box(PenDraw *d, uint32_t width, uint32_t height, PenMixDraw *ret)
{
    double half = 0.5 * sqrt(1 - ret->lambda), all = (double)width * height;
    Range x = draw_range(d, width, half), y = draw_range(d, height, half);
    ret->box = (PenBox){.x = x.from, .y = y.from, .w = x.to - x.from, .h = y.to - y.from};
    ret->lambda = 1 - (double)ret->box.w * ret->box.h / all;
}

PenMixDraw pen__mix_draw(const PenMixRule *rule, PenDrawKey key, uint64_t position, uint32_t width,
                         uint32_t height)
{
    PenDraw d = pen__draw_start(key, position, PEN_DRAW_ID_mixup, 0); /* chooses between both */
    PenMixDraw ret = {.lambda = 1};
    double u = pen__draw_uniform(&d, 0, 1);
    if (u < rule->mixup.p) {
        ret.kind = PEN_MIX_MIXUP;
        ret.lambda = pen__draw_beta(&d, rule->mixup.alpha, rule->mixup.alpha);
    } else if (u < rule->mixup.p + rule->cutmix.p) {
        ret.kind = PEN_MIX_CUTMIX;
        ret.lambda = pen__draw_beta(&d, rule->cutmix.alpha, rule->cutmix.alpha);
        draw_box(&d, width, height, &ret);
    }
    return ret;
}
