/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/sample/sample_plan.h"

#include "base/attr.h"

/* The part of [start, start + n) that lies in [0, size); false when there is none. */
static int visible(int64_t start, uint32_t n, uint32_t size, uint32_t *ret_start, uint32_t *ret_n)
{
    int64_t first = PEN_MAX(start, (int64_t)0);
    int64_t end = PEN_MIN(start + (int64_t)n, (int64_t)size);
    if (end <= first)
        return 0;
    *ret_start = (uint32_t)first;
    *ret_n = (uint32_t)(end - first);
    return 1;
}

int pen__pass_view(const PenPass *p, uint32_t channels, PenResize *ret, PenBox *ret_place)
{
    PenBox window, place;
    if (!visible(p->x, p->w, p->width, &window.x, &window.w) ||
        !visible(p->y, p->h, p->height, &window.y, &window.h))
        return 0;
    place = (PenBox){.x = (uint32_t)(window.x - p->x),
                     .y = (uint32_t)(window.y - p->y),
                     .w = window.w,
                     .h = window.h};
    /* The mirror is one of the whole window, border and all. */
    if (p->flip_x)
        place.x = p->w - place.x - place.w;
    if (p->flip_y)
        place.y = p->h - place.y - place.h;
    *ret = (PenResize){
        .src_width = p->crop.w,
        .src_height = p->crop.h,
        .width = p->width,
        .height = p->height,
        .window = window,
        .channels = channels,
        .filter = p->filter,
        .flip_x = p->flip_x,
        .flip_y = p->flip_y,
        .part = p->part,
    };
    *ret_place = place;
    return 1;
}

PenBox pen__pass_needs(const PenPass *pass, uint32_t channels)
{
    PenResize resize;
    PenBox place, box = {.w = 1, .h = 1};
    if (pen__pass_view(pass, channels, &resize, &place))
        pen__resize_needs(&resize, &box);
    box.x += pass->crop.x;
    box.y += pass->crop.y;
    return box;
}
