/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/sample/draft.h"

#include <stdbool.h>

#include "codec/encoded.h"
#include "ops/sample/orientation.h"

static const char where[] = "ops/sample_plan";

enum { LONGEST_SIDE = 65535 };

static int add_step(PenSampleDraft *d, PenStep **ret, PenError *reterr)
{
    PenSamplePlan *sample_plan = d->sample_plan;
    if (sample_plan->n_steps == PEN_MAX_STEPS)
        return pen__fail(reterr, PEN_E_LIMIT, where, "pipeline: more than %d steps for one image",
                         PEN_MAX_STEPS);
    *ret = &sample_plan->steps[sample_plan->n_steps++];
    d->warp = NULL;
    return PEN_OK;
}

static int open_pass(PenSampleDraft *d, PenError *reterr)
{
    PenStep *step = NULL;
    int r = add_step(d, &step, reterr);
    if (r < 0)
        return r;
    step->kind = PEN_STEP_PASS;
    step->u.pass = (PenPass){
        .crop = {.w = d->width, .h = d->height},
        .width = d->width,
        .height = d->height,
        .w = d->width,
        .h = d->height,
        .filter = PEN_FILTER_NEAREST,
    };
    d->pass = &step->u.pass;
    d->resized = 0;
    return PEN_OK;
}

/* Is the window all of the image behind the resize, no more and no less? */
static bool is_whole(const PenPass *p)
{
    return p->x == 0 && p->y == 0 && p->w == p->width && p->h == p->height;
}

static void shrink(PenSampleDraft *d, int64_t x, int64_t y, PenBox size)
{
    PenPass *p = d->pass;
    /* What comes in is cut where that is the same: less has to be decoded, and a resize can follow.
     */
    bool early =
        !d->resized && is_whole(p) && x >= 0 && y >= 0 && x + size.w <= p->w && y + size.h <= p->h;
    if (early) {
        p->crop = (PenBox){p->crop.x + (uint32_t)x, p->crop.y + (uint32_t)y, size.w, size.h};
        p->width = size.w;
        p->height = size.h;
    } else {
        p->x += x;
        p->y += y;
    }
    p->w = size.w;
    p->h = size.h;
}

/* The mirror comes last in a warp too. */
static void crop_warp(PenSampleDraft *d, PenBox box)
{
    PenBox *window = &d->warp->window;
    window->x += d->warp->flip_x ? d->width - box.x - box.w : box.x;
    window->y += d->warp->flip_y ? d->height - box.y - box.h : box.y;
    d->width = window->w = box.w;
    d->height = window->h = box.h;
}

int pen__draft_crop_to(PenSampleDraft *d, int64_t x, int64_t y, PenBox size, uint8_t fill,
                       PenError *reterr)
{
    bool inside = x >= 0 && y >= 0 && x + size.w <= d->width && y + size.h <= d->height;
    if (inside && size.w == d->width && size.h == d->height)
        return PEN_OK;
    if (d->warp && inside) {
        crop_warp(d, (PenBox){(uint32_t)x, (uint32_t)y, size.w, size.h});
        return PEN_OK;
    }
    /* Behind a window that shows only part of the image, more room would show the rest. */
    if (!d->pass || (!inside && !is_whole(d->pass))) {
        int r = open_pass(d, reterr);
        if (r < 0)
            return r;
    }
    /* The mirror comes last in a pass: the box is that of the image before it. */
    if (d->pass->flip_x)
        x = (int64_t)d->width - x - size.w;
    if (d->pass->flip_y)
        y = (int64_t)d->height - y - size.h;
    shrink(d, x, y, size);
    if (!inside)
        d->pass->fill = fill;
    d->width = size.w;
    d->height = size.h;
    return PEN_OK;
}

/* ---- decoding at a smaller size -------------------------------------------------------------- */

/* By the crop and the result alone: the smallest size at which no side of the crop is shorter than
 * that of the result. */
static uint32_t choose_shrink(const PenSampleDraft *d, uint32_t width, uint32_t height)
{
    const PenImageShape *shape = &d->sample_plan->shape;
    uint32_t s = PEN_SHRINK_MOST;
    if (shape->width > LONGEST_SIDE || shape->height > LONGEST_SIDE) /* no JPEG is that large */
        return 0;
    while (s && (d->width >> s < width || d->height >> s < height))
        s--;
    return s;
}

/* The pixels [*from, *from + *n) of the smaller image that lie under such a range of the image, and
 * the part of them that is the range, in eighths. `ahead`: what the smaller image has before the
 * first pixel, because its last one is not complete and it is mirrored. */
static void shrink_range(uint32_t shrink, uint32_t ahead, uint32_t *from, uint32_t *n,
                         uint32_t *ret_part, uint32_t *ret_span)
{
    uint32_t first = ((*from + ahead) * 8) >> shrink, span = (*n * 8) >> shrink;
    uint32_t end = (first + span + 7) / 8;
    *from = first / 8;
    *n = end - *from;
    *ret_part = first % 8;
    *ret_span = span;
}

uint32_t pen__draft_ahead(uint32_t side, uint32_t shrink, int mirrored)
{
    return mirrored ? (pen__shrunk_side(side, shrink) << shrink) - side : 0;
}

/* The first pass, which only crops and mirrors, becomes one of the smaller image. */
static PenBox shrink_pass(PenSampleDraft *d, uint32_t shrink)
{
    const PenImageShape *shape = &d->sample_plan->shape;
    PenPass *p = d->pass;
    PenBox part, upright = pen__turn_upright(shape);
    shrink_range(shrink,
                 pen__draft_ahead(upright.w, shrink, pen__turn_mirrors_x(shape->orientation)),
                 &p->crop.x, &p->crop.w, &part.x, &part.w);
    shrink_range(shrink,
                 pen__draft_ahead(upright.h, shrink, pen__turn_mirrors_y(shape->orientation)),
                 &p->crop.y, &p->crop.h, &part.y, &part.h);
    if (p->flip_x)
        part.x = 8 * p->crop.w - part.x - part.w;
    if (p->flip_y)
        part.y = 8 * p->crop.h - part.y - part.h;
    d->width = p->w = p->width = p->crop.w;
    d->height = p->h = p->height = p->crop.h;
    d->sample_plan->shrink = shrink;
    return part;
}

/* Before the first resize; *ret_part stays as it is when the image is decoded at its size. */
static int shrink_image(PenSampleDraft *d, uint32_t width, uint32_t height, PenBox *ret_part,
                        PenError *reterr)
{
    uint32_t shrink = choose_shrink(d, width, height);
    bool plain = d->pass ? !d->resized && is_whole(d->pass) && d->sample_plan->n_steps == 1
                         : !d->sample_plan->n_steps;
    if (!shrink || !plain)
        return PEN_OK;
    int r = d->pass ? PEN_OK : open_pass(d, reterr);
    if (r == PEN_OK)
        *ret_part = shrink_pass(d, shrink);
    return r;
}

int pen__draft_resize_to(PenSampleDraft *d, uint32_t width, uint32_t height, int filter,
                         PenError *reterr)
{
    PenBox part = {.w = 0};
    if (width == d->width && height == d->height)
        return PEN_OK;
    if (width > LONGEST_SIDE || height > LONGEST_SIDE)
        return pen__fail(reterr, PEN_E_LIMIT, where,
                         "resize: %u x %u would become %u x %u; the longest side allowed is %d",
                         d->width, d->height, width, height, LONGEST_SIDE);
    if (d->shrinks && !d->nearest && filter != PEN_FILTER_NEAREST) {
        int r = shrink_image(d, width, height, &part, reterr);
        if (r < 0)
            return r;
    }
    d->shrinks = 0;
    /* A mirrored image is not weighed in exactly the same way as its mirror, so there is no
     * joining. */
    if (!d->pass || d->resized || !is_whole(d->pass) || d->pass->flip_x || d->pass->flip_y) {
        int r = open_pass(d, reterr);
        if (r < 0)
            return r;
    }
    d->resized = 1;
    d->width = d->pass->w = d->pass->width = width;
    d->height = d->pass->h = d->pass->height = height;
    d->pass->filter = d->nearest ? PEN_FILTER_NEAREST : filter;
    d->pass->part = part;
    return PEN_OK;
}

int pen__draft_mirror(PenSampleDraft *d, int x, int y, PenError *reterr)
{
    if (d->warp) {
        d->warp->flip_x ^= x != 0;
        d->warp->flip_y ^= y != 0;
        return PEN_OK;
    }
    int r = d->pass ? PEN_OK : open_pass(d, reterr);
    if (r < 0)
        return r;
    d->pass->flip_x ^= x != 0;
    d->pass->flip_y ^= y != 0;
    return PEN_OK;
}

int pen__draft_end(PenSampleDraft *d, PenError *reterr)
{
    int r = d->sample_plan->n_steps ? PEN_OK : open_pass(d, reterr);
    d->pass = NULL;
    return r;
}

int pen__draft_step(PenSampleDraft *d, const PenStep *what, PenError *reterr)
{
    PenStep *step = NULL;
    int r = pen__draft_end(d, reterr);
    if (r == PEN_OK)
        r = add_step(d, &step, reterr);
    if (r == PEN_OK)
        *step = *what;
    return r;
}
