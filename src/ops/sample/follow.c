/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/sample/follow.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/attr.h"
#include "ops/sample/draft.h"
#include "ops/sample/orientation.h"

/* ---- along one axis -------------------------------------------------------------------------- */

typedef struct Range { /* of a point both ends are the same */
    double low, high;
} Range;

typedef struct Axis { /* of a pass */
    double crop, crop_size;
    double size; /* the crop is resized to it */
    double window, window_size;
    bool flip;
} Axis;

static Axis axis_x(const PenPass *p)
{
    Axis a = {.crop = p->crop.x, .crop_size = p->crop.w, .size = p->width};
    if (p->part.w) {
        a.crop += p->part.x / 8.0;
        a.crop_size = p->part.w / 8.0;
    }
    a.window = (double)p->x;
    a.window_size = p->w;
    a.flip = p->flip_x;
    return a;
}

static Axis axis_y(const PenPass *p)
{
    Axis a = {.crop = p->crop.y, .crop_size = p->crop.h, .size = p->height};
    if (p->part.w) {
        a.crop += p->part.y / 8.0;
        a.crop_size = p->part.h / 8.0;
    }
    a.window = (double)p->y;
    a.window_size = p->h;
    a.flip = p->flip_y;
    return a;
}

/* Edges of the crop and of the window come out exactly: what only touches them has no area. */
static double place(const Axis *a, double x)
{
    return (x - a->crop) * a->size / a->crop_size - a->window;
}

static Range mirrored(const Axis *a, Range r)
{
    return a->flip ? (Range){a->window_size - r.high, a->window_size - r.low} : r;
}

static Range moved(const Axis *a, Range r)
{
    return mirrored(a, (Range){place(a, r.low), place(a, r.high)});
}

/* Both ends are at the same edge where the ranges do not meet. */
static Range clipped(Range r, Range to)
{
    return (Range){fmin(fmax(r.low, to.low), to.high), fmin(fmax(r.high, to.low), to.high)};
}

/* Where the window shows the image, and not the padding. */
static Range shown(const Axis *a)
{
    Range image = {-a->window, a->size - a->window}, window = {0, a->window_size};
    return mirrored(a, clipped(image, window));
}

/* ---- through a plan -------------------------------------------------------------------------- */

typedef struct Area {
    Range x, y;
} Area;

typedef struct Track {
    Area all, seen; /* of a box: all of it, and what is visible */
    bool gone;      /* a warp saw nothing of it */
} Track;

typedef struct Follow {
    const PenFollowRule *rule;
    const PenSamplePlan *plan;
    double width, height;         /* of the upright image */
    double out_width, out_height; /* of the result */
    double ahead_x, ahead_y;      /* of an image that is decoded at a smaller size */
    Area visible;                 /* where the result shows the image */
    Area before[PEN_MAX_STEPS];   /* the same in front of warps */
} Follow;

static Range shrunk(Range r, double ahead, uint32_t shrink)
{
    double scale = 1u << shrink;
    return (Range){(r.low + ahead) / scale, (r.high + ahead) / scale};
}

static Area clipped_area(Area a, Area to)
{
    return (Area){clipped(a.x, to.x), clipped(a.y, to.y)};
}

/* In front of a warp a pass may make less than was asked of it: the warp knows what that was. */
static PenPass pass_of(const PenSamplePlan *plan, uint32_t i)
{
    PenPass pass = plan->steps[i].u.pass;
    if (i + 1 == plan->n_steps || plan->steps[i + 1].kind != PEN_STEP_WARP)
        return pass;
    const PenWarp *warp = &plan->steps[i + 1].u.warp;
    const PenBox *held = &warp->held;
    pass.x -= pass.flip_x ? warp->from_width - held->x - held->w : held->x;
    pass.y -= pass.flip_y ? warp->from_height - held->y - held->h : held->y;
    pass.w = warp->from_width;
    pass.h = warp->from_height;
    return pass;
}

static Area through_pass(const Follow *f, uint32_t i, Area area, bool clip)
{
    PenPass pass = pass_of(f->plan, i);
    Axis x = axis_x(&pass), y = axis_y(&pass);
    area = (Area){moved(&x, area.x), moved(&y, area.y)};
    return clip ? clipped_area(area, (Area){shown(&x), shown(&y)}) : area;
}

/* The box around the four corners. */
static Area through_warp(const Follow *f, uint32_t i, Area area, bool clip)
{
    const PenWarp *warp = &f->plan->steps[i].u.warp;
    Area all, window = {{0, warp->window.w}, {0, warp->window.h}};
    for (int k = 0; k < 4; k++) {
        double x, y;
        pen__warp_point(warp, k & 1 ? area.x.high : area.x.low, k & 2 ? area.y.high : area.y.low,
                        &x, &y);
        if (k == 0)
            all = (Area){{x, x}, {y, y}};
        all = (Area){{fmin(all.x.low, x), fmax(all.x.high, x)},
                     {fmin(all.y.low, y), fmax(all.y.high, y)}};
    }
    return clip ? clipped_area(all, window) : all;
}

static Area through_pad(const Follow *f, uint32_t i, Area area)
{
    const PenBox *image = &f->plan->steps[i].u.pad.image;
    return (Area){{area.x.low + image->x, area.x.high + image->x},
                  {area.y.low + image->y, area.y.high + image->y}};
}

/* `clip`: to what the step shows. */
static Area through(const Follow *f, uint32_t i, Area area, bool clip)
{
    switch (f->plan->steps[i].kind) {
    case PEN_STEP_PASS:
        return through_pass(f, i, area, clip);
    case PEN_STEP_WARP:
        return through_warp(f, i, area, clip);
    case PEN_STEP_PAD:
        return through_pad(f, i, area);
    default:
        return area;
    }
}

static Area decoded(const Follow *f, Area area)
{
    if (!f->plan->shrink)
        return area;
    return (Area){shrunk(area.x, f->ahead_x, f->plan->shrink),
                  shrunk(area.y, f->ahead_y, f->plan->shrink)};
}

static bool is_empty(Area a)
{
    return !(a.x.low < a.x.high && a.y.low < a.y.high);
}

/* What a box becomes, and its visible part. All steps but warps are monotonous, so it is clipped
 * only in front of warps, and in the end. */
static Track follow(const Follow *f, Area area)
{
    Track t = {.all = decoded(f, area), .gone = false};
    t.seen = t.all;
    for (uint32_t i = 0; i < f->plan->n_steps; i++) {
        if (f->plan->steps[i].kind == PEN_STEP_WARP) {
            t.seen = clipped_area(t.seen, f->before[i]);
            t.gone |= is_empty(t.seen);
        }
        t.seen = through(f, i, t.seen, false);
        t.all = through(f, i, t.all, false);
    }
    t.seen = clipped_area(t.seen, f->visible);
    return t;
}

static Follow begin(const PenFollowRule *rule, const PenSamplePlan *plan)
{
    PenBox upright = pen__turn_upright(&plan->shape);
    uint8_t orientation = plan->shape.orientation;
    Follow f = {.rule = rule, .plan = plan, .width = upright.w, .height = upright.h};
    f.ahead_x = pen__draft_ahead(upright.w, plan->shrink, pen__turn_mirrors_x(orientation));
    f.ahead_y = pen__draft_ahead(upright.h, plan->shrink, pen__turn_mirrors_y(orientation));
    f.out_width = plan->width;
    f.out_height = plan->height;
    f.visible = decoded(&f, (Area){{0, f.width}, {0, f.height}});
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        f.before[i] = f.visible;
        f.visible = through(&f, i, f.visible, true);
    }
    return f;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

static Area box_read(const Follow *f, const float row[4])
{
    double wide = f->rule->stored_relative ? f->width : 1;
    double high = f->rule->stored_relative ? f->height : 1;
    double a = row[0] * wide, b = row[1] * high, c = row[2] * wide, d = row[3] * high;
    switch (f->rule->stored) {
    case PEN_COORDS_XYWH:
        return (Area){{a, a + c}, {b, b + d}};
    case PEN_COORDS_CXCYWH:
        return (Area){{a - c / 2, a + c / 2}, {b - d / 2, b + d / 2}};
    default:
        return (Area){{a, c}, {b, d}};
    }
}

/* False: a number is beyond float32. */
static bool box_write(const Follow *f, const Area *b, float row[4])
{
    double wide = f->rule->wanted_relative ? f->out_width : 1;
    double high = f->rule->wanted_relative ? f->out_height : 1;
    double v[4] = {b->x.low, b->y.low, b->x.high, b->y.high};
    if (f->rule->wanted != PEN_COORDS_XYXY) {
        v[2] = b->x.high - b->x.low;
        v[3] = b->y.high - b->y.low;
    }
    if (f->rule->wanted == PEN_COORDS_CXCYWH) {
        v[0] = (b->x.low + b->x.high) / 2;
        v[1] = (b->y.low + b->y.high) / 2;
    }
    for (uint32_t i = 0; i < 4; i++)
        row[i] = (float)(v[i] / (i % 2 ? high : wide));
    return isfinite(row[0]) && isfinite(row[1]) && isfinite(row[2]) && isfinite(row[3]);
}

static bool range_is_valid(Range r)
{
    return isfinite(r.low) && isfinite(r.high) && r.low <= r.high;
}

static bool box_is_large(const PenFollowRule *rule, const Area *box, const Area *visible)
{
    double all = (box->x.high - box->x.low) * (box->y.high - box->y.low);
    double w = visible->x.high - visible->x.low, h = visible->y.high - visible->y.low;
    return w > 0 && h > 0 && w >= rule->min_size && h >= rule->min_size &&
           w * h >= rule->min_area && w * h >= rule->min_visibility * all;
}

/* 1: it is kept, 0: it is dropped. */
static int follow_box(const Follow *f, uint32_t number, float row[4], PenError *reterr)
{
    Area box = box_read(f, row);
    if (range_is_valid(box.x) && range_is_valid(box.y)) {
        Track t = follow(f, box);
        if (f->rule->drop && (t.gone || !box_is_large(f->rule, &t.all, &t.seen)))
            return 0;
        if (box_write(f, f->rule->clip ? &t.seen : &t.all, row))
            return 1;
    }
    if (f->rule->drop)
        return 0;
    return pen__fail(reterr, PEN_E_DECODE, "ops/follow",
                     "box %u: expected finite numbers, and a width and a height of at least 0; "
                     "use drop=yes, or leave the sample out with a subset",
                     number);
}

/* ---- points ---------------------------------------------------------------------------------- */

static bool is_inside(double x, Range r)
{
    return x >= r.low && x <= r.high;
}

static bool is_within(Area at, Area area)
{
    return is_inside(at.x.low, area.x) && is_inside(at.y.low, area.y);
}

/* NaN has the same bits on every machine. */
static float narrow(double x)
{
    return isnan(x) ? NAN : (float)x;
}

/* Whether the point is visible. */
static bool follow_point(const Follow *f, float row[2])
{
    double x = row[0] * (f->rule->stored_relative ? f->width : 1);
    double y = row[1] * (f->rule->stored_relative ? f->height : 1);
    Area at = decoded(f, (Area){{x, x}, {y, y}});
    bool seen = true;
    for (uint32_t i = 0; i < f->plan->n_steps; i++) {
        if (f->plan->steps[i].kind == PEN_STEP_WARP)
            seen &= is_within(at, f->before[i]);
        at = through(f, i, at, false);
    }
    seen &= is_within(at, f->visible);
    bool clips = f->rule->clip && !isnan(x) && !isnan(y);
    if (clips)
        at = clipped_area(at, f->visible);
    row[0] = narrow(at.x.low / (f->rule->wanted_relative ? f->out_width : 1));
    row[1] = narrow(at.y.low / (f->rule->wanted_relative ? f->out_height : 1));
    return seen;
}

/* A row with one visible point is kept. */
static int follow_points(const Follow *f, float *row)
{
    bool any = !f->rule->drop;
    for (uint32_t i = 0; i < f->rule->points; i++)
        any |= follow_point(f, row + (size_t)2 * i);
    return any;
}

/* ---- rows ------------------------------------------------------------------------------------ */

uint32_t pen__follow_width(const PenFollowRule *rule)
{
    return rule->stored == PEN_COORDS_POINTS ? 2 * rule->points : 4;
}

int pen__follow_rows(const PenFollowRule *rule, const PenSamplePlan *plan, float *rows, uint32_t n,
                     int64_t *ret_kept, uint32_t *ret_n, PenError *reterr)
{
    Follow f = begin(rule, plan);
    size_t width = pen__follow_width(rule);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        float *row = rows + i * width;
        int r = rule->stored == PEN_COORDS_POINTS ? follow_points(&f, row)
                                                  : follow_box(&f, i, row, reterr);
        if (r < 0)
            return r;
        if (!r)
            continue;
        if (kept < i)
            memcpy(rows + kept * width, row, width * sizeof *row);
        if (ret_kept)
            ret_kept[kept] = i;
        kept++;
    }
    *ret_n = kept;
    return PEN_OK;
}
