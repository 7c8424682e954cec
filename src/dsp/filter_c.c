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

void pen__blur_across_c(const int16_t *row, int16_t *to, size_t n, uint32_t channels,
                        const int16_t *weights, uint32_t radius)
{
    const int16_t *middle = row + (size_t)radius * channels;
    for (size_t i = 0; i < n; i++) {
        int32_t sum = weigh(middle[i], weights[0]);
        for (uint32_t k = 1; k <= radius; k++) {
            size_t away = (size_t)k * channels;
            sum += weigh(middle[i + away] + *(middle + i - away), weights[k]);
        }
        to[i] = (int16_t)sum;
    }
}

void pen__blur_down_c(const int16_t *const *rows, uint8_t *to, size_t n, const int16_t *weights,
                      uint32_t radius)
{
    const int16_t *const *middle = rows + radius;
    for (size_t i = 0; i < n; i++) {
        int32_t sum = weigh(middle[0][i], weights[0]);
        for (uint32_t k = 1; k <= radius; k++)
            sum += weigh(middle[k][i] + (*(middle - k))[i], weights[k]);
        to[i] = pen__clip_u8((sum + 32) >> 6);
    }
}
