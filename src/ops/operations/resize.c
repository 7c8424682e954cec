/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/operations/op.h"

const PenParam pen__params_resize[2] = {
    {"size", PEN_PARAM_SIDES, 1, PEN_SIZE_LIMIT, NULL, NULL,
     "length of the shorter side, or exact height,width"},
    {"filter", PEN_PARAM_WORD, 0, 0, "bilinear", PEN_FILTER_WORDS, "interpolation filter"},
};

/* The longer side is rounded down, as in torchvision. */
static PenSize resized(const PenParamValue *size, uint32_t width, uint32_t height)
{
    if (size->n == 2)
        return (PenSize){(uint32_t)size->v[1], (uint32_t)size->v[0]};
    uint64_t side = (uint64_t)size->v[0];
    uint64_t w = width <= height ? side : side * width / height;
    uint64_t h = width <= height ? side * height / width : side;
    return (PenSize){(uint32_t)PEN_MIN(w, UINT32_MAX), (uint32_t)PEN_MIN(h, UINT32_MAX)};
}

void pen__size_resize(const PenParamValue *values, PenSize *size)
{
    if (values[0].n == 2 || size->width)
        *size = resized(&values[0], size->width, size->height);
}

int pen__draft_resize(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                      PenError *reterr)
{
    PenSize to = resized(&values[0], d->width, d->height);
    (void)draw;
    return pen__draft_resize_to(d, to.width, to.height, (int)values[1].word, reterr);
}
