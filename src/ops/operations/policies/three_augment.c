/* SPDX-License-Identifier: Apache-2.0 */
/* 3-Augment of DeiT III (Touvron et al., 2022). */
#include "ops/operations/boxes.h"
#include "ops/operations/op.h"

/* Beyond seven pixels a Gaussian of sigma 2 has no weight that shows. */
enum { THRESHOLD = 128, KERNEL = 15 };

const PenParam pen__params_three_augment[1] = {
    {"color_jitter", PEN_PARAM_FACTOR, 0, 100, "0.3", NULL,
     "range of the factors of brightness, contrast and saturation; x means 1-x,1+x"},
};

int pen__draft_three_augment(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                             PenError *reterr)
{
    PenStep steps[3] = {{.kind = PEN_STEP_GREY},
                        {.kind = PEN_STEP_SOLARIZE, .u.value = THRESHOLD},
                        {.kind = PEN_STEP_BLUR, .u.blur = {.width = KERNEL, .height = KERNEL}}};
    uint32_t which = (uint32_t)pen__draw_below(draw, 3);
    steps[2].u.blur.sigma = pen__draw_uniform(draw, 0.1, 2);
    int r = pen__draft_step(d, &steps[which], reterr);
    PenParamValue jitter[4] = {values[0], values[0], values[0], {.n = 2}};
    return r < 0 ? r : pen__draft_color_jitter(d, jitter, draw, reterr);
}
