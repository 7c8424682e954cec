/* SPDX-License-Identifier: Apache-2.0 */
/* As Pillow's ImageEnhance: results are cut off, not rounded, and kept inside of 0-255. */
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
