/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build); with + - * / and the square root, which IEEE 754
 * rounds exactly, every machine then draws the same boxes. */
#include "ops/operations/boxes.h"

#include <math.h>
#include <string.h>

#include "base/attr.h"

enum { TRIES = 10 };

static const double ln2_high = 0x1.62e42fee00000p-1; /* 33 bits: k * ln2_high is exact */
static const double ln2_low = 0x1.a39ef35793c76p-33;

/* x = m * 2^k with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh((m - 1) / (m + 1)). */
double pen__real_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int k = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m = m / 2;
        k++;
    }
    double f = m - 1, s = f / (m + 1), z = s * s, sum = 0;
    for (int i = 23; i >= 3; i -= 2)
        sum = (sum + 1.0 / i) * z;
    /* 2s + 2s * sum, of which 2s = f - s * f loses least. */
    double tail = s * (2 * sum - f) + k * ln2_low;
    return k * ln2_high + (f + tail);
}

/* x = k ln 2 + r with |r| <= ln 2 / 2; the series of e^r. */
double pen__real_exp(double x)
{
    double n = x * 1.4426950408889634;
    int k = (int)(n < 0 ? n - 0.5 : n + 0.5);
    double r = (x - k * ln2_high) - k * ln2_low, sum = 1;
    for (int i = 17; i >= 2; i--)
        sum = 1 + sum * (r / i);
    sum = 1 + r * sum;
    uint64_t bits = (uint64_t)(k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

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
