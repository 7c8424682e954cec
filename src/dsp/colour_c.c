/* SPDX-License-Identifier: Apache-2.0 */
/* Brightness, contrast and saturation as Pillow's ImageEnhance: results are truncated, not rounded,
 * and kept within 0-255. Hue as Pillow converts to HSV and back. */
#include "base/attr.h"
#include "dsp/dsp_impl.h"

PEN_INLINE int32_t luma(const uint8_t *p)
{
    return (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16;
}

/* `factor` of the way from `from` to `to`. */
PEN_INLINE uint8_t blend(int32_t from, int32_t to, int32_t factor)
{
    return pen__clip_u8((from * 65536 + factor * (to - from)) >> 16);
}

void pen__brightness_c(uint8_t *p, size_t n, int32_t factor)
{
    pen__contrast_c(p, n, factor, 0);
}

void pen__contrast_c(uint8_t *p, size_t n, int32_t factor, int32_t mean)
{
    factor = pen__factor_clip(factor);
    for (size_t i = 0; i < n * 3; i++)
        p[i] = blend(mean, p[i], factor);
}

void pen__saturation_c(uint8_t *p, size_t n, int32_t factor)
{
    factor = pen__factor_clip(factor);
    for (size_t i = 0; i < n; i++, p += 3) {
        int32_t grey = luma(p);
        for (int c = 0; c < 3; c++)
            p[c] = blend(grey, p[c], factor);
    }
}

void pen__grey_c(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++, p += 3)
        p[0] = p[1] = p[2] = (uint8_t)luma(p);
}

uint64_t pen__grey_sum_c(const uint8_t *p, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++, p += 3)
        sum += (uint64_t)luma(p);
    return sum;
}

/* ---- hue ---- */

/* The steps of Pillow with 8-bit HSV, because one step of an 8-bit hue is up to 6 steps of a
 * colour. The compiler must not join operations here (see meson.build). */
typedef struct Hsv {
    uint8_t h, s, v;
} Hsv;

PEN_INLINE Hsv to_hsv(const uint8_t *p)
{
    uint8_t r = p[0], g = p[1], b = p[2];
    uint8_t most = PEN_MAX(PEN_MAX(r, g), b), least = PEN_MIN(PEN_MIN(r, g), b);
    if (most == least)
        return (Hsv){0, 0, most};
    float range = (float)(most - least);
    float from_r = (float)(most - r) / range, from_g = (float)(most - g) / range;
    float from_b = (float)(most - b) / range, h;
    if (r == most)
        h = from_b - from_g;
    else if (g == most)
        h = (float)(2.0 + (double)from_r - (double)from_b);
    else
        h = (float)(4.0 + (double)from_g - (double)from_r);
    double turn = (double)h / 6.0 + 1.0; /* 5/6 to 11/6 */
    h = (float)(turn >= 1.0 ? turn - 1.0 : turn);
    float s = range / (float)most;
    return (Hsv){pen__clip_u8((int)((double)h * 255.0)), pen__clip_u8((int)((double)s * 255.0)),
                 most};
}

PEN_INLINE uint8_t rounded(double v)
{
    return pen__clip_u8((int)(v + 0.5));
}

PEN_INLINE void from_hsv(Hsv c, uint8_t *p)
{
    /* Per sixth of the circle, which of v, p, t, q is red, green and blue. */
    static const uint8_t order[6][3] = {{0, 2, 1}, {3, 0, 1}, {1, 0, 2},
                                        {1, 3, 0}, {2, 1, 0}, {0, 1, 3}};
    double sixths = (double)c.h * 6.0 / 255.0, s = (double)(float)((double)c.s / 255.0);
    int sixth = (int)sixths;
    double f = (double)(float)(sixths - sixth);
    uint8_t v[4] = {c.v, rounded(c.v * (1.0 - s)), rounded(c.v * (1.0 - s * (1.0 - f))),
                    rounded(c.v * (1.0 - s * f))};
    const uint8_t *o = order[sixth % 6];
    for (int i = 0; i < 3; i++)
        p[i] = v[o[i]];
}

void pen__hue_c(uint8_t *p, size_t n, int32_t shift)
{
    for (size_t i = 0; i < n; i++, p += 3) {
        Hsv c = to_hsv(p);
        c.h = (uint8_t)(c.h + shift);
        from_hsv(c, p);
    }
}
