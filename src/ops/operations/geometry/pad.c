/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "ops/language/lex.h"
#include "ops/operations/op.h"

enum { PADDING, FILL, MODE };

const PenParam pen__params_pad[3] = {
    {"padding", PEN_PARAM_INTS, 0, 4096, NULL, NULL,
     "pixels on each side; or of left and right, top and bottom; or of left, top, right, bottom"},
    {"fill", PEN_PARAM_INTS, 0, 255, "0", NULL,
     "value of the added pixels, if constant: one number, or one per channel"},
    {"padding_mode", PEN_PARAM_WORD, 0, 0, "constant", "constant edge reflect symmetric",
     "of the added pixels: fill, the pixel at the edge, the image mirrored at the middle of that "
     "pixel, or at the edge"},
};

int pen__check_pad(const PenParamValue *values, uint32_t column, PenError *reterr)
{
    uint32_t n = values[PADDING].n;
    if (n == 1 || n == 2 || n == 4)
        return PEN_OK;
    return pen__spec_fail(reterr, column, "pad: padding: expected 1, 2 or 4 numbers, found %u", n);
}

typedef struct Sides {
    uint32_t left, top, right, bottom;
} Sides;

static Sides sides(const PenParamValue *padding)
{
    const double *v = padding->v;
    uint32_t n = padding->n;
    return (Sides){(uint32_t)v[0], (uint32_t)v[n > 1 ? 1 : 0], (uint32_t)v[n > 2 ? 2 : 0],
                   (uint32_t)v[n > 2 ? 3 : n - 1]};
}

void pen__size_pad(const PenParamValue *values, PenSize *size)
{
    Sides s = sides(&values[PADDING]);
    uint32_t wide = s.left + s.right, high = s.top + s.bottom, most = PEN_MAX(wide, high);
    if (size->width) {
        size->width += wide;
        size->height += high;
    } else if (size->most_long) {
        size->most_short += most;
        size->most_long += most;
    }
}

/* A pass has one value for all channels. */
static bool is_one_value(const PenParamValue *fill)
{
    bool same = true;
    for (uint32_t i = 1; i < fill->n; i++)
        same &= fill->v[i] == fill->v[0];
    return same;
}

int pen__draft_pad(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw, PenError *reterr)
{
    Sides s = sides(&values[PADDING]);
    const PenParamValue *fill = &values[FILL];
    uint64_t w = (uint64_t)d->width + s.left + s.right, h = (uint64_t)d->height + s.top + s.bottom;
    (void)draw;
    if (w > PEN_SIZE_LIMIT || h > PEN_SIZE_LIMIT)
        return pen__fail(reterr, PEN_E_LIMIT, "ops/sample_plan",
                         "pad: %u x %u would become %u x %u; the longest side allowed is %d",
                         d->width, d->height, (uint32_t)w, (uint32_t)h, PEN_SIZE_LIMIT);
    if (values[MODE].word == PEN_PAD_CONSTANT && is_one_value(fill))
        return pen__draft_crop_to(d, -(int64_t)s.left, -(int64_t)s.top,
                                  (PenBox){.w = (uint32_t)w, .h = (uint32_t)h}, (uint8_t)fill->v[0],
                                  reterr);
    PenStep step = {.kind = PEN_STEP_PAD};
    step.u.pad = (PenPad){.mode = (int32_t)values[MODE].word,
                          .image = {s.left, s.top, d->width, d->height},
                          .w = (uint32_t)w,
                          .h = (uint32_t)h};
    for (uint32_t i = 0; i < PEN_LEN(step.u.pad.fill); i++)
        step.u.pad.fill[i] = (uint8_t)fill->v[fill->n == 1 ? 0 : i];
    int r = pen__draft_step(d, &step, reterr);
    d->shrinks = 0;
    d->width = (uint32_t)w;
    d->height = (uint32_t)h;
    return r;
}
