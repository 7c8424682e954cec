/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/operations/boxes.h"
#include "ops/operations/op.h"

const PenParam pen__params_random_erasing[4] = {
    {"p", PEN_PARAM_FLOAT, 0, 1, "0.5", NULL, "probability"},
    {"scale", PEN_PARAM_RANGE, 0, 1, "0.02,0.33", NULL,
     "area of the rectangle, as a fraction of the image"},
    {"ratio", PEN_PARAM_RANGE, 0.001, 1000, "0.3,3.3", NULL, "height / width of the rectangle"},
    {"value", PEN_PARAM_FLOATS, -1e6, 1e6, "0", NULL,
     "fill value: 0-255 before normalize, any number after it"},
};

static int add_to_result(PenSampleDraft *d, PenBox box, PenError *reterr)
{
    PenSamplePlan *sample_plan = d->sample_plan;
    if (sample_plan->n_erase == PEN_MAX_ERASE)
        return pen__fail(reterr, PEN_E_LIMIT, "ops/sample_plan",
                         "pipeline: more than %d random_erasing after normalize", PEN_MAX_ERASE);
    sample_plan->erase[sample_plan->n_erase++] = box;
    return PEN_OK;
}

int pen__draft_random_erasing(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                              PenError *reterr)
{
    const PenParamValue *value = &values[3];
    PenSampleRule rule = {
        .scale = {values[1].v[0], values[1].v[1]},
        .ratio = {values[2].v[0], values[2].v[1]},
    };
    PenBox box = {.w = 0};
    if (pen__draw_happens(draw, values[0].v[0]))
        box = pen__sample_erase(draw, d->width, d->height, &rule);
    if (d->normalized)
        return add_to_result(d, box, reterr);
    if (!box.w)
        return PEN_OK;
    PenStep step = {.kind = PEN_STEP_ERASE, .u.erase.box = box};
    for (uint32_t i = 0; i < PEN_LEN(step.u.erase.value); i++)
        step.u.erase.value[i] = (uint8_t)value->v[value->n == 1 ? 0 : i];
    return pen__draft_step(d, &step, reterr);
}
