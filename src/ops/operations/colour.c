/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/operations/boxes.h"
#include "ops/operations/op.h"

const PenParam pen__params_color_jitter[4] = {
    {"brightness", PEN_PARAM_FACTOR, 0, 100, "0", NULL, "range of the factor; x means 1-x,1+x"},
    {"contrast", PEN_PARAM_FACTOR, 0, 100, "0", NULL, "range of the factor; x means 1-x,1+x"},
    {"saturation", PEN_PARAM_FACTOR, 0, 100, "0", NULL, "range of the factor; x means 1-x,1+x"},
    {"hue", PEN_PARAM_FACTOR, -0.5, 0.5, "0", NULL, "range of the hue shift; x means -x,x"},
};

const PenParam pen__params_grayscale[1] = {
    {"p", PEN_PARAM_FLOAT, 0, 1, "1", NULL, "probability"},
};

/* All four are drawn whether they are wanted or not: switching one on leaves the others as they
 * were. */
int pen__draft_color_jitter(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                            PenError *reterr)
{
    static const int32_t kinds[4] = {PEN_STEP_BRIGHTNESS, PEN_STEP_CONTRAST, PEN_STEP_SATURATION,
                                     PEN_STEP_HUE};
    uint32_t order[4] = {0, 1, 2, 3};
    int32_t factor[4];
    int r = PEN_OK;
    for (uint32_t i = 3; i > 0; i--) {
        uint32_t j = (uint32_t)pen__draw_below(draw, i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (int i = 0; i < 3; i++)
        factor[i] = pen__sample_factor(draw, values[i].v[0], values[i].v[1]);
    factor[3] = pen__sample_hue(draw, values[3].v[0], values[3].v[1]);
    for (int i = 0; r == PEN_OK && i < 4; i++) {
        uint32_t which = order[i];
        double neutral = which == 3 ? 0 : 1;
        PenStep step = {.kind = kinds[which], .u.factor = factor[which]};
        if (values[which].v[0] != neutral || values[which].v[1] != neutral)
            r = pen__draft_step(d, &step, reterr);
    }
    return r;
}

int pen__draft_grayscale(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                         PenError *reterr)
{
    PenStep step = {.kind = PEN_STEP_GREY};
    return pen__draw_happens(draw, values[0].v[0]) ? pen__draft_step(d, &step, reterr) : PEN_OK;
}
