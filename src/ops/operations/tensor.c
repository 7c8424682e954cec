/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a pipeline. They add no step: the program knows what they say. */
#include "ops/operations/op.h"

const PenParam pen__params_decode[1] = {
    {"mode", PEN_PARAM_WORD, 0, 0, "rgb", "rgb gray", "channels; masks have one whatever it says"},
};

const PenParam pen__params_normalize[2] = {
    {"mean", PEN_PARAM_FLOATS, -1000, 1000, "0.485,0.456,0.406", NULL,
     "of values in 0-1, for each channel; ImageNet's"},
    {"std", PEN_PARAM_FLOATS, 1e-6, 1e6, "0.229,0.224,0.225", NULL,
     "of values in 0-1, for each channel; ImageNet's"},
};

/* In the order of PenDtype. */
const PenParam pen__params_tensor[2] = {
    {"dtype", PEN_PARAM_WORD, 0, 0, "auto", "auto u8 f16 bf16 f32 f64 i64",
     "auto: images u8, numbers as they are; floats are x / 255 unless normalized"},
    {"layout", PEN_PARAM_WORD, 0, 0, "nhwc", "nhwc nchw nthwc ncthw ntchw",
     "channels last, or each in its plane; clips: nhwc is nthwc, nchw is ncthw"},
};

int pen__draft_normalize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                         PenError *reterr)
{
    (void)values;
    (void)draw;
    (void)reterr;
    d->normalized = 1;
    return PEN_OK;
}
