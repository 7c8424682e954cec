/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/operations/op.h"

const PenParam pen__params_hflip[1] = {
    {"p", PEN_PARAM_FLOAT, 0, 1, "0.5", NULL, "probability"},
};

const PenParam pen__params_vflip[1] = {
    {"p", PEN_PARAM_FLOAT, 0, 1, "0.5", NULL, "probability"},
};

int pen__draft_hflip(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                     PenError *reterr)
{
    return pen__draw_happens(draw, values[0].v[0]) ? pen__draft_mirror(d, 1, 0, reterr) : PEN_OK;
}

int pen__draft_vflip(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                     PenError *reterr)
{
    return pen__draw_happens(draw, values[0].v[0]) ? pen__draft_mirror(d, 0, 1, reterr) : PEN_OK;
}
