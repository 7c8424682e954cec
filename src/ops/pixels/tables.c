/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pixels/tables.h"

#include "dsp/dsp_impl.h"
#include "dsp/real.h"

static void keep_all(uint8_t ret[256])
{
    for (int i = 0; i < 256; i++)
        ret[i] = (uint8_t)i;
}

static void blend(int32_t factor, int32_t mean, uint8_t ret[256])
{
    factor = pen__factor_clip(factor);
    for (int i = 0; i < 256; i++)
        ret[i] = pen__clip_u8((mean * 65536 + factor * (i - mean)) >> 16);
}

/* The pixels of all values but the largest are spread over 255 steps. */
static void equalize(const uint32_t counts[256], uint8_t ret[256])
{
    uint64_t sum = 0, last = 0;
    for (int i = 0; i < 256; i++) {
        sum += counts[i];
        last = counts[i] ? counts[i] : last;
    }
    uint64_t step = (sum - last) / 255, n = step / 2;
    if (!step) {
        keep_all(ret);
        return;
    }
    for (int i = 0; i < 256; i++) {
        uint64_t v = n / step;
        ret[i] = (uint8_t)PEN_MIN(v, 255u);
        n += counts[i];
    }
}

static void stretch(const uint32_t counts[256], uint8_t ret[256])
{
    int low = 0, high = 255;
    while (low < 255 && !counts[low])
        low++;
    while (high > 0 && !counts[high])
        high--;
    if (high <= low) {
        keep_all(ret);
        return;
    }
    double scale = 255.0 / (high - low), offset = -low * scale;
    for (int i = 0; i < 256; i++)
        ret[i] = pen__clip_u8((int32_t)(i * scale + offset));
}

/* 0 to the power of 0 is 1. */
static double power(double x, double exponent)
{
    if (exponent == 0)
        return 1;
    return x > 0 ? pen__real_exp(exponent * pen__real_log(x)) : 0;
}

static void bend(double gamma, double gain, uint8_t ret[256])
{
    for (int i = 0; i < 256; i++)
        ret[i] = pen__clip_u8((int32_t)((255 + 1 - 1e-3) * gain * power(i / 255.0, gamma)));
}

static void solarize(int32_t threshold, uint8_t ret[256])
{
    for (int i = 0; i < 256; i++)
        ret[i] = (uint8_t)(i < threshold ? i : 255 - i);
}

void pen__point_table(const PenStep *step, const uint32_t counts[256], int32_t mean,
                      uint8_t ret[256])
{
    switch (step->kind) {
    case PEN_STEP_BRIGHTNESS:
        blend(step->u.factor, 0, ret);
        break;
    case PEN_STEP_CONTRAST:
        blend(step->u.factor, mean, ret);
        break;
    case PEN_STEP_POSTERIZE:
        for (int i = 0; i < 256; i++)
            ret[i] = (uint8_t)(i & ~(255 >> step->u.value));
        break;
    case PEN_STEP_EQUALIZE:
        equalize(counts, ret);
        break;
    case PEN_STEP_AUTOCONTRAST:
        stretch(counts, ret);
        break;
    case PEN_STEP_GAMMA:
        bend(step->u.gamma.gamma, step->u.gamma.gain, ret);
        break;
    default:
        solarize(step->kind == PEN_STEP_INVERT ? 0 : step->u.value, ret);
        break;
    }
}
