/* SPDX-License-Identifier: Apache-2.0 */
/* What the tiers of a warp share. */
#ifndef PEN_DSP_WARP_IMPL_H
#define PEN_DSP_WARP_IMPL_H

#include "dsp/warp.h"

/* Where a pixel of what comes out is taken from, rounded as in Pillow. */
static inline void pen__warp_at(const PenWarp *w, double x, double y, double *ret_x, double *ret_y)
{
    const double *a = w->a;
    *ret_x = a[0] * x + a[1] * y + a[2];
    *ret_y = a[3] * x + a[4] * y + a[5];
    if (w->perspective) {
        double depth = a[6] * x + a[7] * y + 1;
        *ret_x /= depth;
        *ret_y /= depth;
    }
}

/* The pixel at (x, y) of what comes in, or the nearest one that there is. */
static inline const uint8_t *pen__warp_pixel(const PenWarpRows *r, int64_t x, int64_t y)
{
    const PenBox *held = &r->warp->held;
    int64_t last_x = (int64_t)held->w - 1, last_y = (int64_t)held->h - 1;
    x -= held->x;
    y -= held->y;
    x = x < 0 ? 0 : x > last_x ? last_x : x;
    y = y < 0 ? 0 : y > last_y ? last_y : y;
    return r->pixels + ((size_t)y * held->w + (size_t)x) * r->channels;
}

#endif
