/* SPDX-License-Identifier: Apache-2.0 */
/* Built without fused multiply-add (meson.build). The compiler makes vectors of these loops, but
 * for f16. */
#include <penstock/loader.h>

#include "dsp/dsp_impl.h"
#include "dsp/half.h"

static void mix_u8(const float w[2], const uint8_t *restrict a, const uint8_t *restrict b,
                   uint8_t *restrict dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(int32_t)(w[0] * (float)a[i] + w[1] * (float)b[i] + 0.5f);
}

static void mix_f32(const float w[2], const float *restrict a, const float *restrict b,
                    float *restrict dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = w[0] * a[i] + w[1] * b[i];
}

static void mix_f16(const float w[2], const uint16_t *restrict a, const uint16_t *restrict b,
                    uint16_t *restrict dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = pen__to_f16(w[0] * pen__from_f16(a[i]) + w[1] * pen__from_f16(b[i]));
}

static void mix_bf16(const float w[2], const uint16_t *restrict a, const uint16_t *restrict b,
                     uint16_t *restrict dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = pen__to_bf16(w[0] * pen__from_bf16(a[i]) + w[1] * pen__from_bf16(b[i]));
}

void pen__mix_c(const PenMix *mix, const void *a, const void *b, void *dst, size_t n)
{
    switch (mix->dtype) {
    case PEN_U8:
        mix_u8(mix->weights, a, b, dst, n);
        break;
    case PEN_F16:
        mix_f16(mix->weights, a, b, dst, n);
        break;
    case PEN_BF16:
        mix_bf16(mix->weights, a, b, dst, n);
        break;
    default:
        mix_f32(mix->weights, a, b, dst, n);
    }
}
