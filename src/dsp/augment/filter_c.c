/* SPDX-License-Identifier: Apache-2.0 */
/* Sharpness as Pillow's ImageEnhance: its smooth image is a 3 x 3 kernel in floating point, whose
 * sums of thirteenths are never near to where rounding changes: integers give the same. */
#include "base/attr.h"
#include "dsp/dsp_impl.h"

void pen__sharpen_c(const uint8_t *const rows[3], uint8_t *to, size_t n, uint32_t channels,
                    int32_t factor)
{
    const uint8_t *a = rows[0], *b = rows[1], *c = rows[2];
    factor = pen__factor_clip(factor);
    for (size_t i = channels; i + channels < n; i++) {
        size_t l = i - channels, r = i + channels;
        int32_t sum = a[l] + a[i] + a[r] + b[l] + 5 * b[i] + b[r] + c[l] + c[i] + c[r];
        int32_t smooth = (sum + 6) / 13;
        to[i] = pen__clip_u8((smooth * 65536 + factor * (b[i] - smooth)) >> 16);
    }
}

/* A product of 1.15 fixed point, rounded, as pmulhrsw has it. */
PEN_INLINE int32_t weigh(int32_t v, int32_t weight)
{
    return (v * weight + 0x4000) >> 15;
}

void pen__widen_c(const uint8_t *p, int16_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)(p[i] << PEN_BLUR_BITS);
}

static void add_weighed(const int16_t *a, const int16_t *b, int32_t weight, int16_t *restrict sums,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        sums[i] = (int16_t)(sums[i] + weigh(a[i] + b[i], weight));
}

void pen__blur_across_c(const int16_t *row, int16_t *to, size_t n, uint32_t channels,
                        const int16_t *weights, uint32_t radius)
{
    const int16_t *middle = row + (size_t)radius * channels;
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)weigh(middle[i], weights[0]);
    for (uint32_t k = 1; k <= radius; k++) {
        size_t away = (size_t)k * channels;
        add_weighed(middle - away, middle + away, weights[k], to, n);
    }
}

void pen__blur_down_c(const int16_t *const *rows, uint8_t *to, size_t n, const int16_t *weights,
                      uint32_t radius)
{
    enum { SOME = 512 };
    const int16_t *const *middle = rows + radius;
    for (size_t i = 0; i < n; i += SOME) {
        int16_t sums[SOME];
        size_t some = PEN_MIN(n - i, (size_t)SOME);
        for (size_t x = 0; x < some; x++)
            sums[x] = (int16_t)weigh(middle[0][i + x], weights[0]);
        for (uint32_t k = 1; k <= radius; k++)
            add_weighed(*(middle - k) + i, middle[k] + i, weights[k], sums, some);
        for (size_t x = 0; x < some; x++)
            to[i + x] = pen__clip_u8((sums[x] + (1 << (PEN_BLUR_BITS - 1))) >> PEN_BLUR_BITS);
    }
}
