/* SPDX-License-Identifier: Apache-2.0 */
/* From bytes to the place in the batch: the first pass takes the rows as they are decoded, the last
 * one gives them to the store. Only between passes, and for colours, there is an image, of the
 * pass's size. */
#include "ops/run/run.h"

#include <string.h>

#include "ops/pixels/pixels.h"
#include "ops/run/result.h"

static const char where[] = "ops/sample_plan";

static void store_row(const PenPlanRun *run, uint32_t y, const uint8_t *row)
{
    uint64_t begin = pen__stage_begin(run->k->clock);
    pen__result_row(run->p, run->sample_plan, run->dst, y, row);
    pen__stage_end(run->k->clock, PEN_TIMED_STORE, begin);
}

static void put_row(const PenPassRun *s, uint32_t y, const uint8_t *row)
{
    if (s->image)
        memcpy(s->image + y * s->stride, row, s->stride);
    else
        store_row(s->run, y, row);
}

static int take_row(void *ctx, uint32_t y, const uint8_t *row, PenError *reterr)
{
    const PenPassRun *s = ctx;
    uint32_t c = s->run->p->channels;
    (void)reterr;
    if (s->row) {
        memcpy(s->row + (size_t)s->place.x * c, row, (size_t)s->place.w * c);
        row = s->row;
    }
    put_row(s, s->place.y + y, row);
    return PEN_OK;
}

/* Rows above and below the image are given at once; the row kept has its left and right border. */
static int put_border(PenPassRun *s, const PenPass *pass)
{
    if (s->place.w == pass->w && s->place.h == pass->h)
        return PEN_OK;
    int r = pen__scratch_hold(&s->run->k->row, s->stride, s->run->reterr);
    if (r < 0)
        return r;
    s->row = s->run->k->row.data;
    memset(s->row, pass->fill, s->stride);
    for (uint32_t y = 0; y < pass->h; y++)
        if (y < s->place.y || y >= s->place.y + s->place.h)
            put_row(s, y, s->row);
    return PEN_OK;
}

int pen__run_push_rows(PenDecodeContext *k, const uint8_t *rows, size_t stride, uint32_t n,
                       PenError *reterr)
{
    uint64_t begin = pen__stage_begin(k->clock);
    int r = pen__stream_push(k->stream, rows, stride, n, reterr);
    pen__stage_end(k->clock, PEN_TIMED_ROWS, begin);
    return r;
}

static int push_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    return pen__run_push_rows(ctx, rows, stride, n, reterr);
}

static int drop_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    (void)ctx;
    (void)rows;
    (void)stride;
    (void)n;
    (void)reterr;
    return PEN_OK;
}

static int decode(const PenPlanRun *run, PenRowsFn rows, void *ctx)
{
    PenRegion region = {.box = run->sample_plan->region,
                        .colour = run->p->colour,
                        .shrink = run->sample_plan->shrink,
                        .limits = run->limits,
                        .rows = rows,
                        .ctx = ctx};
    return pen__region_rows(run->k->decoder, run->header, &region, run->reterr);
}

/* ---- images that are not upright ---- */

int pen__run_begin_turn(const PenPlanRun *run, PenTurning *ret)
{
    const PenBox *box = &run->sample_plan->region;
    PenImageShape shape = {box->w, box->h, run->sample_plan->shape.orientation, 0};
    uint32_t c = run->p->channels;
    int r = pen__scratch_hold(&run->k->upright, (uint64_t)box->w * box->h * c, run->reterr);
    *ret = (PenTurning){.turn = {shape.orientation, box->w, box->h, c, run->k->upright.data},
                        .upright = pen__turn_upright(&shape)};
    return r;
}

void pen__run_turn_rows(PenTurning *t, const uint8_t *rows, size_t stride, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        pen__turn_row(&t->turn, t->y++, rows + i * stride);
}

int pen__run_push_turned(const PenPlanRun *run, const PenTurning *t)
{
    return pen__run_push_rows(run->k, t->turn.upright, (size_t)t->upright.w * run->p->channels,
                              t->upright.h, run->reterr);
}

static int turn_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    (void)reterr;
    pen__run_turn_rows(ctx, rows, stride, n);
    return PEN_OK;
}

/* The region whole and upright, then into the stream. */
static int decode_turned(const PenPlanRun *run)
{
    PenTurning t;
    int r = pen__run_begin_turn(run, &t);
    if (r == PEN_OK)
        r = decode(run, turn_rows, &t);
    return r == PEN_OK ? pen__run_push_turned(run, &t) : r;
}

/* ---- passes ---- */

/* What goes into the stream that has just been started. */
static int feed(const PenPlanRun *run, const PenPassRun *pass)
{
    const PenBox *crop = &pass->pass->crop;
    PenBox box;
    if (!run->image)
        return pen__turn_needed(run->sample_plan->shape.orientation)
                   ? decode_turned(run)
                   : decode(run, push_rows, run->k);
    pen__resize_needs(&pass->resize, &box);
    size_t stride = (size_t)run->w * run->p->channels;
    size_t first =
        ((size_t)crop->y + box.y) * stride + ((size_t)crop->x + box.x) * run->p->channels;
    return pen__run_push_rows(run->k, run->image + first, stride, box.h, run->reterr);
}

int pen__run_begin_pass(const PenPlanRun *run, const PenPass *pass, bool is_last, PenPassRun *ret)
{
    int r = PEN_OK;
    *ret = (PenPassRun){.run = run, .pass = pass, .is_last = is_last};
    ret->stride = (size_t)pass->w * run->p->channels;
    ret->is_seen = pen__pass_view(pass, run->p->channels, &ret->resize, &ret->place);
    if (!is_last) {
        PenScratch *to = &run->k->images[run->spare];
        r = pen__scratch_hold(to, (uint64_t)ret->stride * pass->h, run->reterr);
        ret->image = to->data;
    }
    if (r == PEN_OK)
        r = put_border(ret, pass);
    if (r == PEN_OK && ret->is_seen)
        r = pen__stream_start(run->k->stream, &ret->resize, take_row, ret, run->reterr);
    return r;
}

void pen__run_end_pass(PenPlanRun *run, const PenPassRun *pass)
{
    run->image = pass->image;
    run->spare ^= !pass->is_last;
    run->w = pass->pass->w;
    run->h = pass->pass->h;
}

static int run_pass(PenPlanRun *run, const PenPass *what, bool is_last)
{
    PenPassRun pass;
    int r = pen__run_begin_pass(run, what, is_last, &pass);
    if (r == PEN_OK && pass.is_seen)
        r = feed(run, &pass);
    else if (r == PEN_OK && !run->image)
        r = decode(run, drop_rows, NULL);
    pen__run_end_pass(run, &pass);
    return r;
}

static int run_filter(const PenPlanRun *run, const PenPixels *image, const PenStep *step)
{
    PenScratch *rows = &run->k->filter;
    uint64_t bytes = pen__pixels_scratch(step, image->width, image->height, image->channels);
    int r = pen__scratch_hold(rows, bytes, run->reterr);
    return r < 0 ? r : pen__pixels_filter(image, step, rows->data, run->reterr);
}

static int run_blend(const PenPlanRun *run, const PenPixels *image, const PenStep *step)
{
    PenScratch *blend = &run->k->blend;
    uint64_t bytes = pen__blend_scratch(image->width, image->height, image->channels);
    int r =
        step->kind == PEN_STEP_BLEND_BEGIN ? pen__scratch_hold(blend, bytes, run->reterr) : PEN_OK;
    if (r == PEN_OK)
        pen__pixels_blend(image, step, blend->data);
    return r;
}

static int run_on_pixels(const PenPlanRun *run, const PenPixels *image, const PenStep *step)
{
    switch (step->kind) {
    case PEN_STEP_ERASE:
        pen__pixels_erase(image, step);
        return PEN_OK;
    case PEN_STEP_CHANNELS:
        pen__pixels_channels(image, step);
        return PEN_OK;
    case PEN_STEP_SHARPNESS:
    case PEN_STEP_BLUR:
    case PEN_STEP_JPEG:
        return run_filter(run, image, step);
    case PEN_STEP_BLEND_BEGIN:
    case PEN_STEP_BLEND_ADD:
    case PEN_STEP_BLEND_END:
        return run_blend(run, image, step);
    default:
        pen__pixels_colour(image, step);
        return PEN_OK;
    }
}

/* A step that is no pass, or the n point steps that begin with it. Behind the first pass there is
 * always an image, unless nothing of it is left. */
static int run_pixels(const PenPlanRun *run, const PenStep *steps, uint32_t n)
{
    uint64_t begin = pen__stage_begin(run->k->clock);
    PenPixels image = {run->image, run->w, run->h, run->p->channels};
    int r = PEN_OK;
    if (run->image && run->w && run->h && pen__step_is_point(steps))
        pen__pixels_points(&image, steps, n);
    else if (run->image && run->w && run->h)
        r = run_on_pixels(run, &image, steps);
    pen__stage_end(run->k->clock, PEN_TIMED_ROWS, begin);
    return r;
}

/* How many steps run at once: point steps in a row do. */
static uint32_t count_steps(const PenSamplePlan *sample_plan, uint32_t first)
{
    uint32_t end = first;
    while (end < sample_plan->n_steps && pen__step_is_point(&sample_plan->steps[end]))
        end++;
    return PEN_MAX(end - first, 1u);
}

static bool is_warp(const PenStep *step)
{
    return step->kind == PEN_STEP_WARP || step->kind == PEN_STEP_BLEND_WARP;
}

/* Into the other image, or as the last step to the result row by row. */
static int run_warp(PenPlanRun *run, const PenWarp *warp, bool last)
{
    size_t stride = (size_t)warp->window.w * run->p->channels;
    PenScratch *to = last ? &run->k->row : &run->k->images[run->spare];
    int r = pen__scratch_hold(to, last ? stride : (uint64_t)stride * warp->window.h, run->reterr);
    if (r < 0)
        return r;
    uint64_t begin = pen__stage_begin(run->k->clock);
    PenWarpRows rows;
    pen__warp_start(&rows, warp, run->image, run->p->channels);
    for (uint32_t i = 0; i < warp->window.h; i++) {
        uint32_t y = warp->flip_y ? warp->window.h - 1 - i : i;
        uint8_t *row = last ? to->data : to->data + y * stride;
        pen__warp_row(&rows, row);
        if (last)
            store_row(run, y, row);
    }
    pen__stage_end(run->k->clock, PEN_TIMED_ROWS, begin);
    run->image = last ? NULL : to->data;
    run->spare ^= !last;
    run->w = warp->window.w;
    run->h = warp->window.h;
    return PEN_OK;
}

static int run_pad(PenPlanRun *run, const PenPad *pad)
{
    PenScratch *to = &run->k->images[run->spare];
    PenPixels image = {run->image, run->w, run->h, run->p->channels};
    int r = pen__scratch_hold(to, (uint64_t)pad->w * pad->h * run->p->channels, run->reterr);
    if (r < 0)
        return r;
    uint64_t begin = pen__stage_begin(run->k->clock);
    pen__pixels_pad(&image, pad, to->data);
    pen__stage_end(run->k->clock, PEN_TIMED_ROWS, begin);
    run->image = to->data;
    run->spare ^= 1;
    run->w = pad->w;
    run->h = pad->h;
    return PEN_OK;
}

/* What is not stored yet, after the last step. */
static void store_image(const PenPlanRun *run)
{
    uint64_t begin = pen__stage_begin(run->k->clock);
    for (uint32_t y = 0; run->image && y < run->h; y++)
        store_row(run, y, run->image + (size_t)y * run->w * run->p->channels);
    pen__result_finish(run->p, run->dst, run->sample_plan);
    pen__stage_end(run->k->clock, PEN_TIMED_ROWS, begin);
}

int pen__run_check(const PenPlanRun *run)
{
    const PenImageShape *shape = &run->sample_plan->shape;
    const PenEncoded *image = run->header->image;
    if (run->p->kind.kind == PEN_KIND_NUMBER || shape->width != image->width ||
        shape->height != image->height)
        return pen__fail(run->reterr, PEN_E_INVALID, where,
                         "expected an image of %u x %u pixels as in its plan, found %u x %u",
                         shape->width, shape->height, image->width, image->height);
    return PEN_OK;
}

int pen__run_steps(PenPlanRun *run, uint32_t first)
{
    const PenSamplePlan *sample_plan = run->sample_plan;
    int r = PEN_OK;
    for (uint32_t i = first, n; r == PEN_OK && i < sample_plan->n_steps; i += n) {
        const PenStep *step = &sample_plan->steps[i];
        bool last = i + 1 == sample_plan->n_steps;
        n = count_steps(sample_plan, i);
        if (step->kind == PEN_STEP_PASS)
            r = run_pass(run, &step->u.pass, last);
        else if (is_warp(step))
            r = run_warp(run, &step->u.warp, last);
        else if (step->kind == PEN_STEP_PAD)
            r = run_pad(run, &step->u.pad);
        else
            r = run_pixels(run, step, n);
    }
    if (r == PEN_OK)
        store_image(run);
    return r;
}

int pen__sample_run_parsed(PenDecodeContext *k, const PenProgram *p,
                           const PenSamplePlan *sample_plan, const PenImageHeader *header,
                           const PenLimits *limits, void *dst, PenError *reterr)
{
    PenPlanRun run = {.k = k,
                      .p = p,
                      .sample_plan = sample_plan,
                      .header = header,
                      .limits = limits,
                      .dst = dst,
                      .reterr = reterr};
    int r = pen__run_check(&run);
    return r < 0 ? r : pen__run_steps(&run, 0);
}

int pen__sample_run(PenDecodeContext *k, const PenProgram *p, const PenSamplePlan *sample_plan,
                    const PenEncoded *image, const PenLimits *limits, void *dst, PenError *reterr)
{
    PenImageHeader header;
    int r = pen__image_header(image, limits, &header, reterr);
    return r < 0 ? r : pen__sample_run_parsed(k, p, sample_plan, &header, limits, dst, reterr);
}

static uint64_t pixel_bytes(const PenProgram *p, uint64_t w, uint64_t h)
{
    return w * h * p->channels + PEN_SLACK;
}

/* The image that a step makes of another; false: it works in place. */
static bool step_output(const PenStep *step, PenBox *ret)
{
    if (step->kind == PEN_STEP_PASS)
        *ret = (PenBox){.w = step->u.pass.w, .h = step->u.pass.h};
    else if (is_warp(step))
        *ret = step->u.warp.window;
    else if (step->kind == PEN_STEP_PAD)
        *ret = (PenBox){.w = step->u.pad.w, .h = step->u.pad.h};
    else
        return false;
    return true;
}

/* What steps that work in place take beside their image. */
static uint64_t filter_memory(const PenProgram *p, const PenSamplePlan *sample_plan)
{
    uint64_t rows = 0, more = 0, blend = 0;
    PenBox image = {.w = 0};
    for (uint32_t i = 0; i < sample_plan->n_steps; i++) {
        const PenStep *step = &sample_plan->steps[i];
        if (step_output(step, &image))
            continue;
        uint64_t bytes = pen__pixels_scratch(step, image.w, image.h, p->channels);
        rows = PEN_MAX(rows, bytes ? bytes + PEN_SLACK : 0);
        bytes = pen__pixels_filter_memory(step, image.w, p->channels);
        more = PEN_MAX(more, bytes);
        if (step->kind == PEN_STEP_BLEND_BEGIN) {
            bytes = pen__blend_scratch(image.w, image.h, p->channels) + PEN_SLACK;
            blend = PEN_MAX(blend, bytes);
        }
    }
    return rows + more + blend;
}

/* Both images grow to the largest they are used for; a pass adds its tables, ring and border. */
static uint64_t steps_memory(const PenProgram *p, const PenSamplePlan *sample_plan)
{
    uint64_t images[2] = {0, 0}, stream = 0, row = 0;
    int spare = 0;
    for (uint32_t i = 0; i < sample_plan->n_steps; i++) {
        const PenStep *step = &sample_plan->steps[i];
        PenResize resize;
        PenBox place, out;
        if (!step_output(step, &out))
            continue;
        if (step->kind == PEN_STEP_PASS &&
            pen__pass_view(&step->u.pass, p->channels, &resize, &place)) {
            uint64_t bytes = pen__resize_memory(&resize);
            stream = PEN_MAX(stream, bytes);
        }
        row = PEN_MAX(row, pixel_bytes(p, out.w, 1));
        if (i + 1 < sample_plan->n_steps || step->kind == PEN_STEP_PAD) {
            images[spare] = PEN_MAX(images[spare], pixel_bytes(p, out.w, out.h));
            spare ^= 1;
        }
    }
    return images[0] + images[1] + stream + row + filter_memory(p, sample_plan);
}

uint64_t pen__sample_plan_memory(const PenProgram *p, const PenSamplePlan *sample_plan,
                                 const PenImageHeader *header)
{
    return pen__region_memory(header, &sample_plan->region, sample_plan->shrink) +
           pen__sample_plan_steps_memory(p, sample_plan);
}

uint64_t pen__sample_plan_steps_memory(const PenProgram *p, const PenSamplePlan *sample_plan)
{
    const PenBox *region = &sample_plan->region;
    uint64_t bytes = steps_memory(p, sample_plan);
    if (pen__turn_needed(sample_plan->shape.orientation))
        bytes += pixel_bytes(p, region->w, region->h);
    return bytes;
}
