/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>

#include "ops/sample/draft.h"

static bool is_finite(const PenWarp *map)
{
    bool all = true;
    for (uint32_t i = 0; i < (map->perspective ? 8 : 6); i++)
        all &= isfinite(map->a[i]) != 0;
    return all;
}

/* What every filter leaves as it is. */
static bool is_identity(const PenWarp *map)
{
    const double *a = map->a;
    return !map->perspective && a[0] == 1 && a[1] == 0 && a[2] == 0 && a[3] == 0 && a[4] == 1 &&
           a[5] == 0;
}

int pen__draft_warp(PenSampleDraft *d, const PenWarp *map, PenError *reterr)
{
    PenStep step = {.kind = PEN_STEP_WARP, .u.warp = *map};
    PenWarp *w = &step.u.warp;
    if (!is_finite(map))
        return pen__fail(reterr, PEN_E_INVALID, "ops/sample_plan",
                         "a map of %u x %u pixels is not finite", d->width, d->height);
    d->shrinks = 0;
    if (is_identity(map))
        return PEN_OK;
    w->from_width = w->width = w->held.w = w->window.w = d->width;
    w->from_height = w->height = w->held.h = w->window.h = d->height;
    w->held.x = w->held.y = w->window.x = w->window.y = 0;
    w->flip_x = w->flip_y = 0;
    if (d->nearest)
        w->filter = PEN_FILTER_NEAREST;
    int r = pen__draft_step(d, &step, reterr);
    if (r == PEN_OK)
        d->warp = &d->sample_plan->steps[d->sample_plan->n_steps - 1].u.warp;
    return r;
}

/* A pass makes only what the warp behind it needs. */
static void narrow(PenPass *pass, PenWarp *warp)
{
    PenBox box = pen__warp_needs(warp);
    pass->x += pass->flip_x ? (int64_t)pass->w - box.x - box.w : box.x;
    pass->y += pass->flip_y ? (int64_t)pass->h - box.y - box.h : box.y;
    pass->w = box.w;
    pass->h = box.h;
    warp->held = box;
}

void pen__draft_narrow(PenSampleDraft *d)
{
    PenSamplePlan *plan = d->sample_plan;
    for (uint32_t i = 1; i < plan->n_steps; i++)
        if (plan->steps[i].kind == PEN_STEP_WARP && plan->steps[i - 1].kind == PEN_STEP_PASS)
            narrow(&plan->steps[i - 1].u.pass, &plan->steps[i].u.warp);
}
