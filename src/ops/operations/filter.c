/* SPDX-License-Identifier: Apache-2.0 */
/* Operations in which a pixel depends on those around it. */
#include "ops/operations/boxes.h"
#include "ops/operations/op.h"

enum { LARGEST_KERNEL = 255 };

const PenParam pen__params_random_adjust_sharpness[2] = {
    {"sharpness_factor", PEN_PARAM_FLOAT, 0, 100, NULL, NULL,
     "0: smooth, 1: unchanged, 2: twice as sharp"},
    {"p", PEN_PARAM_FLOAT, 0, 1, "0.5", NULL, "probability"},
};

const PenParam pen__params_gaussian_blur[2] = {
    {"kernel_size", PEN_PARAM_SIZE, 1, LARGEST_KERNEL, NULL, NULL,
     "height,width of the kernel in pixels, or one number for both; odd"},
    {"sigma", PEN_PARAM_DRAWN, 0.01, 1000, "0.1,2", NULL,
     "standard deviation in pixels; of low,high, one is drawn for each image"},
};

const PenParam pen__params_jpeg[1] = {
    {"quality", PEN_PARAM_DRAWN, 1, 100, NULL, NULL,
     "quality of the JPEG, an integer; of low,high, one is drawn for each image"},
};

int pen__check_gaussian_blur(const PenParamValue *values, uint32_t column, PenError *reterr)
{
    for (int i = 0; i < 2; i++)
        if ((int)values[0].v[i] % 2 == 0)
            return pen__spec_fail(reterr, column,
                                  "gaussian_blur: kernel_size: expected odd numbers, found %d",
                                  (int)values[0].v[i]);
    return PEN_OK;
}

int pen__check_jpeg(const PenParamValue *values, uint32_t column, PenError *reterr)
{
    for (int i = 0; i < 2; i++)
        if (values[0].v[i] != (double)(int)values[0].v[i])
            return pen__spec_fail(reterr, column, "jpeg: quality: expected integers, found %g",
                                  values[0].v[i]);
    return PEN_OK;
}

int pen__draft_random_adjust_sharpness(PenSampleDraft *d, const PenParamValue *values,
                                       PenDraw *draw, PenError *reterr)
{
    PenStep step = {.kind = PEN_STEP_SHARPNESS};
    bool happens = pen__draw_happens(draw, values[1].v[0]);
    step.u.factor = pen__sample_factor(draw, values[0].v[0], values[0].v[0]);
    return happens ? pen__draft_step(d, &step, reterr) : PEN_OK;
}

int pen__draft_gaussian_blur(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                             PenError *reterr)
{
    PenStep step = {.kind = PEN_STEP_BLUR};
    step.u.blur.height = (uint32_t)values[0].v[0];
    step.u.blur.width = (uint32_t)values[0].v[1];
    step.u.blur.sigma = pen__draw_uniform(draw, values[1].v[0], values[1].v[1]);
    return pen__draft_step(d, &step, reterr);
}

int pen__draft_jpeg(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw, PenError *reterr)
{
    uint64_t low = (uint64_t)values[0].v[0], high = (uint64_t)values[0].v[1];
    PenStep step = {.kind = PEN_STEP_JPEG};
    step.u.value = (int32_t)(low + pen__draw_below(draw, high - low + 1));
    return pen__draft_step(d, &step, reterr);
}
