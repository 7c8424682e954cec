/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "dsp/dsp_impl.h"
#include "dsp/warp_impl.h"

void pen__warp_fixed_c(const PenWarpRows *r, uint8_t *dst)
{
    const PenWarp *w = r->warp;
    uint32_t x = (uint32_t)r->at[0] + w->window.x * (uint32_t)r->step[0];
    uint32_t y = (uint32_t)r->at[1] + w->window.x * (uint32_t)r->step[1];
    uint32_t c = r->channels;
    for (uint32_t i = 0; i < w->window.w; i++, dst += c) {
        int32_t column = (int32_t)x >> 16, row = (int32_t)y >> 16;
        int is_inside = column >= 0 && (uint32_t)column < w->from_width && row >= 0 &&
                        (uint32_t)row < w->from_height;
        memcpy(dst, is_inside ? pen__warp_pixel(r, column, row) : w->fill, c);
        x += (uint32_t)r->step[0];
        y += (uint32_t)r->step[1];
    }
}

static double between(double a, double b, double d)
{
    return a + (b - a) * d;
}

static void bilinear(const PenWarpRows *r, double x, double y, uint8_t *dst)
{
    double left = floor(x - 0.5), top = floor(y - 0.5), dx = x - 0.5 - left, dy = y - 0.5 - top;
    int64_t column = (int64_t)left, row = (int64_t)top;
    const uint8_t *p[4];
    for (int i = 0; i < 4; i++)
        p[i] = pen__warp_pixel(r, column + (i & 1), row + (i >> 1));
    for (uint32_t k = 0; k < r->channels; k++)
        dst[k] = (uint8_t)between(between(p[0][k], p[1][k], dx), between(p[2][k], p[3][k], dx), dy);
}

static double cubic(const double v[4], double d)
{
    double p2 = -v[0] + v[2], p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
    double p4 = -v[0] + v[1] - v[2] + v[3];
    return v[1] + d * (p2 + d * (p3 + d * p4));
}

static void bicubic(const PenWarpRows *r, double x, double y, uint8_t *dst)
{
    double left = floor(x - 0.5), top = floor(y - 0.5), dx = x - 0.5 - left, dy = y - 0.5 - top;
    for (uint32_t k = 0; k < r->channels; k++) {
        double column[4], row[4];
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 4; j++)
                row[j] = pen__warp_pixel(r, (int64_t)left - 1 + j, (int64_t)top - 1 + i)[k];
            column[i] = cubic(row, dx);
        }
        double v = cubic(column, dy);
        dst[k] = (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : v);
    }
}

void pen__warp_general(const PenWarpRows *r, uint8_t *dst)
{
    const PenWarp *w = r->warp;
    for (uint32_t i = 0; i < w->window.w; i++, dst += r->channels) {
        double x, y;
        pen__warp_at(w, w->window.x + i + 0.5, r->y + 0.5, &x, &y);
        if (!(x >= 0 && x < w->from_width && y >= 0 && y < w->from_height))
            memcpy(dst, w->fill, r->channels);
        else if (w->filter == PEN_FILTER_BILINEAR)
            bilinear(r, x, y, dst);
        else if (w->filter == PEN_FILTER_BICUBIC)
            bicubic(r, x, y, dst);
        else
            memcpy(dst, pen__warp_pixel(r, (int64_t)x, (int64_t)y), r->channels);
    }
}
