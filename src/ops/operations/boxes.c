/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build); with + - * / and the square root, which IEEE 754
 * rounds exactly, every machine then draws the same boxes. */
#include "ops/operations/boxes.h"

#include <math.h>

#include "base/attr.h"

enum { TRIES = 10 };

/* Halves go to the even neighbour, as in Python. x >= 0. */
static double round_even(double x)
{
    double low = floor(x), rest = x - low;
    if (rest == 0.5)
        return low - 2 * floor(low / 2) == 0 ? low : low + 1;
    return rest < 0.5 ? low : low + 1;
}

typedef struct Sides {
    double w, h;
} Sides;

/* Sides of a box whose area and ratio (first side to second) are drawn. */
static Sides draw_sides(PenDraw *d, double area, const PenSampleRule *rule)
{
    double target = area * pen__draw_uniform(d, rule->scale[0], rule->scale[1]);
    double low = pen__real_log(rule->ratio[0]), high = pen__real_log(rule->ratio[1]);
    double ratio = pen__real_exp(pen__draw_uniform(d, low, high));
    return (Sides){round_even(sqrt(target * ratio)), round_even(sqrt(target / ratio))};
}

/* Anywhere in the image: the row is drawn first. */
static PenBox place(PenDraw *d, uint32_t width, uint32_t height, uint32_t w, uint32_t h)
{
    uint32_t y = (uint32_t)pen__draw_below(d, (uint64_t)height - h + 1);
    uint32_t x = (uint32_t)pen__draw_below(d, (uint64_t)width - w + 1);
    return (PenBox){.x = x, .y = y, .w = w, .h = h};
}

static PenBox centre(uint32_t width, uint32_t height, const PenSampleRule *rule)
{
    double ratio = (double)width / height, w = width, h = height;
    if (ratio < rule->ratio[0])
        h = round_even(w / rule->ratio[0]);
    else if (ratio > rule->ratio[1])
        w = round_even(h * rule->ratio[1]);
    PenBox box = {.w = (uint32_t)PEN_MAX(w, 1.0), .h = (uint32_t)PEN_MAX(h, 1.0)};
    box.x = (width - box.w) / 2;
    box.y = (height - box.h) / 2;
    return box;
}

PenBox pen__sample_crop(PenDraw *d, uint32_t width, uint32_t height, const PenSampleRule *rule)
{
    double area = (double)width * (double)height;
    for (int i = 0; i < TRIES; i++) {
        Sides s = draw_sides(d, area, rule);
        if (s.w >= 1 && s.w <= width && s.h >= 1 && s.h <= height)
            return place(d, width, height, (uint32_t)s.w, (uint32_t)s.h);
    }
    return centre(width, height, rule);
}

PenBox pen__sample_erase(PenDraw *d, uint32_t width, uint32_t height, const PenSampleRule *rule)
{
    double area = (double)width * (double)height;
    for (int i = 0; i < TRIES; i++) {
        Sides s = draw_sides(d, area, rule); /* s.w is the height */
        if (s.w < height && s.h < width) {
            PenBox box = place(d, width, height, (uint32_t)s.h, (uint32_t)s.w);
            return box.w && box.h ? box : (PenBox){.w = 0};
        }
    }
    return (PenBox){.w = 0};
}

int32_t pen__sample_factor(PenDraw *d, double low, double high)
{
    return (int32_t)round_even(pen__draw_uniform(d, low, high) * 65536);
}

int32_t pen__sample_hue(PenDraw *d, double low, double high)
{
    return (int32_t)(pen__draw_uniform(d, low, high) * 255) & 255;
}
