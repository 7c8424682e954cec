/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include <penstock/loader.h>

#include "base/bytes.h"
#include "dsp/dsp_impl.h"

static uint32_t bits_of(float v)
{
    return pen__load32(&v);
}

/* To nearest, ties to even: the part below the last bit kept decides. */
static uint32_t shift_rounded(uint32_t v, uint32_t by)
{
    uint32_t kept = v >> by, below = v & ((1u << by) - 1), half = 1u << (by - 1);
    return kept + (below > half || (below == half && (kept & 1)));
}

static uint16_t to_bf16(float value)
{
    uint32_t v = bits_of(value);
    if ((v & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(v >> 16 | 0x40); /* not a number: it must not round to infinity */
    return (uint16_t)shift_rounded(v, 16);
}

static uint16_t to_f16(float value)
{
    uint32_t v = bits_of(value), sign = v >> 16 & 0x8000, x = v & 0x7fffffff;
    if (x > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (x >> 13 & 0x3ff));
    if (x >= 0x47800000) /* 65,536; what lies between the largest and it rounds by itself */
        return (uint16_t)(sign | 0x7c00);
    if (x >= 0x38800000) /* 2^-14, the smallest normal one */
        return (uint16_t)(sign | shift_rounded(x - ((127u - 15u) << 23), 13));
    uint32_t exponent = x >> 23;
    if (exponent < 127 - 25)
        return (uint16_t)sign;
    return (uint16_t)(sign | shift_rounded((x & 0x7fffff) | 0x800000, 126 - exponent));
}

/* Do multiplications by inverses, each with its rest, give the same as the divisions? Nearly
 * always; where not, the tables are read instead. */
static int steps_fit(const PenStoreTable *t, uint32_t c)
{
    for (int x = 0; x < 256; x++) {
        float v = (float)x;
        v = fmaf(v, PEN_INVERSE_255, v * PEN_INVERSE_255_REST) - t->mean[c];
        v = fmaf(v, t->inverse[c], v * t->rest[c]);
        if (bits_of(v) != bits_of(t->f32[c][x]))
            return 0;
    }
    return 1;
}

static void fill_channel(PenStoreTable *t, uint32_t c, const float *mean, const float *std)
{
    float divisor = std ? std[c] : 1.0f;
    t->mean[c] = mean ? mean[c] : 0.0f;
    t->inverse[c] = 1.0f / divisor;
    t->rest[c] = (float)(1.0 / (double)divisor - (double)t->inverse[c]);
    for (int x = 0; x < 256; x++) {
        float v = ((float)x / 255.0f - t->mean[c]) / divisor;
        t->f32[c][x] = v;
        t->u16[c][x] = t->dtype == PEN_F16 ? to_f16(v) : to_bf16(v);
    }
    t->by_steps = t->by_steps && steps_fit(t, c);
}

void pen__store_table_init(PenStoreTable *t, int dtype, uint32_t channels, const float *mean,
                           const float *std)
{
    memset(t, 0, sizeof *t);
    t->channels = channels;
    t->dtype = dtype;
    t->element_bytes = dtype == PEN_U8 ? 1 : dtype == PEN_F32 ? 4 : 2;
    t->by_steps = 1;
    for (uint32_t c = 0; c < channels; c++)
        fill_channel(t, c, mean, std);
    for (uint32_t i = 0; i < 24 && channels; i++) {
        t->means[i] = t->mean[i % channels];
        t->inverses[i] = t->inverse[i % channels];
        t->rests[i] = t->rest[i % channels];
    }
}
