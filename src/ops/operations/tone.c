/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on single pixels: each value, or each pixel's channels. */
#include <math.h>

#include "ops/operations/op.h"

#define P_HALF                                                                                     \
    {                                                                                              \
        "p", PEN_PARAM_FLOAT, 0, 1, "0.5", NULL, "probability"                                     \
    }

const PenParam pen__params_random_invert[1] = {P_HALF};
const PenParam pen__params_random_equalize[1] = {P_HALF};
const PenParam pen__params_random_autocontrast[1] = {P_HALF};

const PenParam pen__params_random_posterize[2] = {
    {"bits", PEN_PARAM_INT, 0, 8, NULL, NULL, "bits that are kept of each value"},
    P_HALF,
};

const PenParam pen__params_random_solarize[2] = {
    {"threshold", PEN_PARAM_FLOAT, 0, 256, NULL, NULL, "values from this one on are inverted"},
    P_HALF,
};

const PenParam pen__params_adjust_gamma[2] = {
    {"gamma", PEN_PARAM_DRAWN, 0, 100, NULL, NULL,
     "exponent; above 1, shadows become darker; of low,high, one is drawn for each image"},
    {"gain", PEN_PARAM_FLOAT, 0, 100, "1", NULL, "factor"},
};

const PenParam pen__params_random_channel_permutation[1] = {
    {"p", PEN_PARAM_FLOAT, 0, 1, "1", NULL, "probability"},
};

static int draft_perhaps(PenSampleDraft *d, const PenParamValue *p, PenDraw *draw, PenStep step,
                         PenError *reterr)
{
    return pen__draw_happens(draw, p->v[0]) ? pen__draft_step(d, &step, reterr) : PEN_OK;
}

int pen__draft_random_invert(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                             PenError *reterr)
{
    return draft_perhaps(d, &values[0], draw, (PenStep){.kind = PEN_STEP_INVERT}, reterr);
}

int pen__draft_random_equalize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                               PenError *reterr)
{
    return draft_perhaps(d, &values[0], draw, (PenStep){.kind = PEN_STEP_EQUALIZE}, reterr);
}

int pen__draft_random_autocontrast(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                                   PenError *reterr)
{
    return draft_perhaps(d, &values[0], draw, (PenStep){.kind = PEN_STEP_AUTOCONTRAST}, reterr);
}

int pen__draft_random_posterize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                                PenError *reterr)
{
    PenStep step = {.kind = PEN_STEP_POSTERIZE, .u.value = (int32_t)values[0].v[0]};
    return draft_perhaps(d, &values[1], draw, step, reterr);
}

int pen__draft_random_solarize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                               PenError *reterr)
{
    PenStep step = {.kind = PEN_STEP_SOLARIZE, .u.value = (int32_t)ceil(values[0].v[0])};
    return draft_perhaps(d, &values[1], draw, step, reterr);
}

int pen__draft_adjust_gamma(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                            PenError *reterr)
{
    PenStep step = {.kind = PEN_STEP_GAMMA};
    step.u.gamma.gamma = pen__draw_uniform(draw, values[0].v[0], values[0].v[1]);
    step.u.gamma.gain = values[1].v[0];
    return pen__draft_step(d, &step, reterr);
}

int pen__draft_random_channel_permutation(PenSampleDraft *d, const PenParamValue *values,
                                          PenDraw *draw, PenError *reterr)
{
    PenStep step = {.kind = PEN_STEP_CHANNELS, .u.channels = {0, 1, 2}};
    uint8_t *of = step.u.channels;
    bool happens = pen__draw_happens(draw, values[0].v[0]);
    for (uint32_t i = 2; i > 0; i--) {
        uint32_t j = (uint32_t)pen__draw_below(draw, i + 1);
        uint8_t kept = of[i];
        of[i] = of[j];
        of[j] = kept;
    }
    return happens ? pen__draft_step(d, &step, reterr) : PEN_OK;
}
