/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/operations/boxes.h"
#include "ops/operations/op.h"

const PenParam pen__params_center_crop[1] = {
    {"size", PEN_PARAM_SIZE, 1, PEN_SIZE_LIMIT, NULL, PEN_BUCKET_WORD,
     "height,width, or one number for a square; or the size of the batch\'s bucket"},
};

const PenParam pen__params_three_crop[1] = {
    {"size", PEN_PARAM_SIZE, 1, PEN_SIZE_LIMIT, NULL, NULL,
     "height,width, or one number for a square"},
};

const PenParam pen__params_five_crop[1] = {
    {"size", PEN_PARAM_SIZE, 1, PEN_SIZE_LIMIT, NULL, NULL,
     "height,width, or one number for a square"},
};

const PenParam pen__params_ten_crop[2] = {
    {"size", PEN_PARAM_SIZE, 1, PEN_SIZE_LIMIT, NULL, NULL,
     "height,width, or one number for a square"},
    {"vertical_flip", PEN_PARAM_WORD, 0, 0, "no", "no yes",
     "flip top and bottom instead of left and right"},
};

const PenParam pen__params_random_crop[3] = {
    {"size", PEN_PARAM_SIZE, 1, PEN_SIZE_LIMIT, NULL, PEN_BUCKET_WORD,
     "height,width, or one number for a square; or the size of the batch\'s bucket"},
    {"padding", PEN_PARAM_INT, 0, 4096, "0", NULL, "pixels added on each side before the crop"},
    {"fill", PEN_PARAM_INT, 0, 255, "0", NULL, "value of the added pixels"},
};

const PenParam pen__params_random_resized_crop[4] = {
    {"size", PEN_PARAM_SIZE, 1, PEN_SIZE_LIMIT, NULL, PEN_BUCKET_WORD,
     "height,width, or one number for a square; or the size of the batch\'s bucket"},
    {"scale", PEN_PARAM_RANGE, 0, 1, "0.08,1", NULL,
     "area of the region, as a fraction of the image"},
    {"ratio", PEN_PARAM_RANGE, 0.001, 1000, "0.75,1.3333333333333333", NULL,
     "width / height of the region"},
    {"filter", PEN_PARAM_WORD, 0, 0, "bilinear", PEN_FILTER_WORDS, "interpolation filter"},
};

static PenBox wanted(const PenParamValue *size)
{
    return (PenBox){.w = (uint32_t)size->v[1], .h = (uint32_t)size->v[0]};
}

void pen__size_crop(const PenParamValue *values, PenSize *size)
{
    PenBox box = wanted(&values[0]);
    *size = (PenSize){.width = box.w, .height = box.h};
}

/* As torchvision: half of what is left over, halves to the even number; half of the border before
 * the image, rounded down. */
static int64_t centre(uint32_t have, uint32_t want)
{
    if (want > have)
        return -(int64_t)((want - have) / 2);
    uint32_t rest = have - want, half = rest / 2;
    return half + (rest & half & 1);
}

int pen__draft_center_crop(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                           PenError *reterr)
{
    PenBox box = wanted(&values[0]);
    (void)draw;
    return pen__draft_crop_to(d, centre(d->width, box.w), centre(d->height, box.h), box, 0, reterr);
}

/* Both ends and the middle of the longer side; of the other side the middle. */
int pen__draft_three_crop(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                          PenError *reterr)
{
    PenBox box = wanted(&values[0]);
    int64_t x = centre(d->width, box.w), y = centre(d->height, box.h);
    int64_t *along = d->height > d->width ? &y : &x;
    int64_t room = d->height > d->width ? (int64_t)d->height - box.h : (int64_t)d->width - box.w;
    (void)draw;
    if (room > 0 && d->crop != 1)
        *along = d->crop ? room : 0;
    return pen__draft_crop_to(d, x, y, box, 0, reterr);
}

/* Top left, top right, bottom left, bottom right, center; of ten_crop, then those of the mirrored
 * image. */
int pen__draft_five_crop(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                         PenError *reterr)
{
    PenBox box = wanted(&values[0]);
    uint32_t which = d->crop % 5;
    (void)draw;
    if (box.w > d->width || box.h > d->height)
        return pen__fail(reterr, PEN_E_INVALID, "ops/sample_plan",
                         "five_crop, ten_crop: the image has %u x %u pixels, less than the crop of "
                         "%u x %u; add resize before it",
                         d->width, d->height, box.w, box.h);
    int64_t x = which & 1 ? d->width - box.w : 0, y = which & 2 ? d->height - box.h : 0;
    if (which == 4) {
        x = centre(d->width, box.w);
        y = centre(d->height, box.h);
    }
    int is_vertical = d->crop >= 5 && values[1].word;
    int r = d->crop >= 5 ? pen__draft_mirror(d, !is_vertical, is_vertical, reterr) : PEN_OK;
    return r < 0 ? r : pen__draft_crop_to(d, x, y, box, 0, reterr);
}

int pen__draft_random_crop(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                           PenError *reterr)
{
    PenBox box = wanted(&values[0]);
    int64_t padding = (int64_t)values[1].v[0];
    int64_t room_x = d->width + 2 * padding - box.w, room_y = d->height + 2 * padding - box.h;
    if (room_x < 0 || room_y < 0)
        return pen__fail(reterr, PEN_E_INVALID, "ops/sample_plan",
                         "random_crop: the image has %u x %u pixels and a padding of %d, less than "
                         "the crop of %u x %u; add resize before it, or more padding",
                         d->width, d->height, (int)padding, box.w, box.h);
    int64_t y = (int64_t)pen__draw_below(draw, (uint64_t)room_y + 1);
    int64_t x = (int64_t)pen__draw_below(draw, (uint64_t)room_x + 1);
    return pen__draft_crop_to(d, x - padding, y - padding, box, (uint8_t)values[2].v[0], reterr);
}

int pen__draft_random_resized_crop(PenSampleDraft *d, const PenParamValue *values, PenDraw *draw,
                                   PenError *reterr)
{
    PenBox size = wanted(&values[0]);
    PenSampleRule rule = {
        .scale = {values[1].v[0], values[1].v[1]},
        .ratio = {values[2].v[0], values[2].v[1]},
    };
    PenBox box = pen__sample_crop(draw, d->width, d->height, &rule);
    int r = pen__draft_crop_to(d, box.x, box.y, box, 0, reterr);
    return r < 0 ? r : pen__draft_resize_to(d, size.w, size.h, (int)values[3].word, reterr);
}
