/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build). Pillow has three ways, which round differently:
 * nearest pixels of affine maps in 16.16 fixed point, or, of those that only scale and those whose
 * corners are beyond these numbers, in double precision from sum to sum; and all else from
 * products, pixel by pixel. */
#include "dsp/warp.h"

#include <math.h>
#include <string.h>

#include "base/attr.h"
#include "dsp/dsp_impl.h"

enum { FIXED, SUMMED, GENERAL };

#define FIXED_REACH 32768.0

/* ---- which way ------------------------------------------------------------------------------- */

static int is_reached(const double a[8], double x, double y)
{
    return fabs(x * a[0] + y * a[1] + a[2]) < FIXED_REACH &&
           fabs(x * a[3] + y * a[4] + a[5]) < FIXED_REACH;
}

static int choose_way(const PenWarp *w)
{
    double width = w->width, height = w->height;
    if (w->perspective || w->filter != PEN_FILTER_NEAREST)
        return GENERAL;
    if (w->a[1] == 0 && w->a[3] == 0)
        return SUMMED;
    return is_reached(w->a, 0, 0) && is_reached(w->a, width, height) &&
                   is_reached(w->a, 0, height) && is_reached(w->a, width, 0)
               ? FIXED
               : SUMMED;
}

/* A step of an image one pixel wide may be beyond the numbers, and is of no effect then. */
static int32_t to_fixed(double v)
{
    v = floor(v * 65536.0 + 0.5);
    return v >= INT32_MIN && v <= INT32_MAX ? (int32_t)v : INT32_MIN;
}

/* Behind the last pixel a sum may wrap. */
static int32_t add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static void next_row(PenWarpRows *r)
{
    r->at[0] = add(r->at[0], r->row_step[0]);
    r->at[1] = add(r->at[1], r->row_step[1]);
    r->sum[0] += r->warp->a[1];
    r->sum[1] += r->warp->a[4];
    r->y++;
}

void pen__warp_start(PenWarpRows *r, const PenWarp *warp, const uint8_t *pixels, uint32_t channels)
{
    const double *a = warp->a;
    *r = (PenWarpRows){.warp = warp, .pixels = pixels, .channels = channels};
    r->way = choose_way(warp);
    if (r->way == FIXED) {
        r->step[0] = to_fixed(a[0]);
        r->step[1] = to_fixed(a[3]);
        r->row_step[0] = to_fixed(a[1]);
        r->row_step[1] = to_fixed(a[4]);
        r->at[0] = to_fixed(a[2] + a[0] * 0.5 + a[1] * 0.5);
        r->at[1] = to_fixed(a[5] + a[3] * 0.5 + a[4] * 0.5);
    }
    r->sum[0] = a[2] + a[1] * 0.5 + a[0] * 0.5;
    r->sum[1] = a[5] + a[4] * 0.5 + a[3] * 0.5;
    while (r->y < warp->window.y)
        next_row(r);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* -1 for what is out of the image. */
static int64_t inside(double v, uint32_t size)
{
    return v >= 0 && v < size ? (int64_t)v : -1;
}

static void put_fill(const PenWarpRows *r, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++, dst += r->channels)
        memcpy(dst, r->warp->fill, r->channels);
}

/* A shift by whole pixels, whose sums are exact: the row is a part of another one. */
static int row_shifted(const PenWarpRows *r, uint8_t *dst)
{
    const PenWarp *w = r->warp;
    const PenBox *held = &w->held;
    double first = floor(r->sum[0]);
    size_t c = r->channels;
    if (w->a[0] != 1 || w->a[3] != 0 || r->sum[0] - first != 0.5 || fabs(first) > FIXED_REACH)
        return 0;
    int64_t x = (int64_t)first + w->window.x - held->x, n = w->window.w;
    int64_t y = inside(r->sum[1], w->from_height) - held->y;
    int64_t before = PEN_MIN(PEN_MAX(-x, (int64_t)0), n);
    int64_t end = PEN_MAX(PEN_MIN(held->w - x, n), before);
    if (y < 0 || y >= held->h)
        before = end = n;
    put_fill(r, dst, before);
    if (before < end)
        memcpy(dst + (size_t)before * c,
               r->pixels + ((size_t)y * held->w + (size_t)(x + before)) * c,
               (size_t)(end - before) * c);
    put_fill(r, dst + (size_t)end * c, n - end);
    return 1;
}

static void row_summed(const PenWarpRows *r, uint8_t *dst)
{
    const PenWarp *w = r->warp;
    double x = r->sum[0], y = r->sum[1];
    uint32_t c = r->channels;
    if (row_shifted(r, dst))
        return;
    for (uint32_t i = 0; i < w->window.x; i++) {
        x += w->a[0];
        y += w->a[3];
    }
    for (uint32_t i = 0; i < w->window.w; i++, dst += c) {
        int64_t column = inside(x, w->from_width) - w->held.x;
        int64_t line = inside(y, w->from_height) - w->held.y;
        int is_held = column >= 0 && column < w->held.w && line >= 0 && line < w->held.h;
        const uint8_t *p =
            is_held ? r->pixels + ((size_t)line * w->held.w + (size_t)column) * c : w->fill;
        memcpy(dst, p, c);
        x += w->a[0];
        y += w->a[3];
    }
}

static void mirror(uint8_t *row, uint32_t n, uint32_t c)
{
    uint8_t *a = row, *b = row + (size_t)n * c;
    for (uint32_t i = 0; i < n / 2; i++, a += c) {
        b -= c;
        for (uint32_t k = 0; k < c; k++) {
            uint8_t kept = a[k];
            a[k] = b[k];
            b[k] = kept;
        }
    }
}

void pen__warp_row(PenWarpRows *r, uint8_t *dst)
{
    const PenWarp *w = r->warp;
    const PenDsp *dsp = pen__dsp();
    if (r->way == FIXED)
        dsp->warp_fixed(r, dst);
    else if (r->way == SUMMED)
        row_summed(r, dst);
    else if (w->filter == PEN_FILTER_BILINEAR)
        dsp->warp_bilinear(r, dst);
    else
        pen__warp_general(r, dst);
    if (w->flip_x)
        mirror(dst, w->window.w, r->channels);
    next_row(r);
}

/* ---- what is needed -------------------------------------------------------------------------- */

enum { MARGIN = 4 }; /* pixels of the widest filter, and what 16.16 is off on the longest side */

typedef struct Span {
    double low, high;
} Span;

static void widen(Span *s, double v)
{
    s->low = fmin(s->low, v);
    s->high = fmax(s->high, v);
}

static void cut(Span s, uint32_t size, uint32_t *ret_from, uint32_t *ret_n)
{
    double low = fmin(fmax(floor(s.low) - MARGIN, 0), size - 1.0);
    double high = fmin(fmax(ceil(s.high) + MARGIN, low + 1), size);
    *ret_from = (uint32_t)low;
    *ret_n = (uint32_t)high - *ret_from;
}

/* Straight lines stay straight: the corners bound the rest, unless the horizon lies between them.
 */
PenBox pen__warp_needs(const PenWarp *w)
{
    PenBox box = {.w = w->from_width, .h = w->from_height};
    Span x = {INFINITY, -INFINITY}, y = {INFINITY, -INFINITY};
    for (uint32_t i = 0; i < 4; i++) {
        double u = w->window.x + (i & 1) * (double)w->window.w;
        double v = w->window.y + (i >> 1) * (double)w->window.h;
        double depth = w->perspective ? w->a[6] * u + w->a[7] * v + 1 : 1;
        if (!(depth > 1e-6))
            return box;
        widen(&x, (w->a[0] * u + w->a[1] * v + w->a[2]) / depth);
        widen(&y, (w->a[3] * u + w->a[4] * v + w->a[5]) / depth);
    }
    cut(x, w->from_width, &box.x, &box.w);
    cut(y, w->from_height, &box.y, &box.h);
    return box;
}

/* ---- points ---------------------------------------------------------------------------------- */

#define NEAREST_DEPTH 1e-6

/* Rows of the inverse of the matrix, times its determinant. */
static double cofactor(const double m[9], int row, int column)
{
    const double *a = m + (row + 1) % 3 * 3, *b = m + (row + 2) % 3 * 3;
    int i = (column + 1) % 3, k = (column + 2) % 3;
    return a[i] * b[k] - a[k] * b[i];
}

void pen__warp_point(const PenWarp *w, double x, double y, double *ret_x, double *ret_y)
{
    double m[9] = {0}, p[3] = {x, y, 1}, to[3];
    memcpy(m, w->a, (w->perspective ? 8 : 6) * sizeof *m);
    m[8] = 1;
    double all = m[0] * cofactor(m, 0, 0) + m[1] * cofactor(m, 0, 1) + m[2] * cofactor(m, 0, 2);
    for (int i = 0; i < 3; i++)
        to[i] = (cofactor(m, 0, i) * p[0] + cofactor(m, 1, i) * p[1] + cofactor(m, 2, i) * p[2]) /
                (all != 0 ? all : 1);
    double depth = fmax(w->perspective ? to[2] : 1, NEAREST_DEPTH);
    double u = to[0] / depth - w->window.x, v = to[1] / depth - w->window.y;
    *ret_x = w->flip_x ? w->window.w - u : u;
    *ret_y = w->flip_y ? w->window.h - v : v;
}
