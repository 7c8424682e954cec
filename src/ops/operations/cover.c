/* SPDX-License-Identifier: Apache-2.0 */
/* The largest region that has the shape of the result, resized to it. */
#include "ops/operations/boxes.h"
#include "ops/operations/op.h"

enum { SIZE, POSITION, FILTER };
enum { CENTER = 0 };

const PenParam pen__params_cover[3] = {
    {"size", PEN_PARAM_SIZE, 1, PEN_SIZE_LIMIT, NULL, PEN_BUCKET_WORD,
     "height,width, or one number for a square; or the size of the batch's bucket"},
    {"position", PEN_PARAM_WORD, 0, 0, "center", "center random", "which part is kept"},
    {"filter", PEN_PARAM_WORD, 0, 0, "bilinear", PEN_FILTER_WORDS, "interpolation filter"},
};

/* To the nearest integer; at least 1 and at most what there is. */
static uint32_t scaled(uint32_t side, uint32_t to, uint32_t from, uint32_t most)
{
    uint64_t n = ((uint64_t)side * to + from / 2) / from;
    return (uint32_t)PEN_MIN(PEN_MAX(n, 1u), most);
}

int pen__draft_cover(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                     PenError *reterr)
{
    PenSize to;
    PenBox box = {.w = d->width, .h = d->height};
    pen__size_crop(&values[SIZE], &to);
    if ((uint64_t)d->width * to.height > (uint64_t)d->height * to.width)
        box.w = scaled(d->height, to.width, to.height, d->width);
    else
        box.h = scaled(d->width, to.height, to.width, d->height);
    int64_t x = (d->width - box.w) / 2, y = (d->height - box.h) / 2;
    if (values[POSITION].word != CENTER) {
        y = (int64_t)pen__draw_below(draw, (uint64_t)(d->height - box.h) + 1);
        x = (int64_t)pen__draw_below(draw, (uint64_t)(d->width - box.w) + 1);
    }
    int r = pen__draft_crop_to(d, x, y, box, 0, reterr);
    return r < 0 ? r
                 : pen__draft_resize_to(d, to.width, to.height, (int)values[FILTER].word, reterr);
}
