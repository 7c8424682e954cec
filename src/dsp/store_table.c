/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include <penstock/loader.h>

#include "dsp/dsp_impl.h"
#include "dsp/half.h"

/* Do multiplications by inverses, each with its rest, give the same as the divisions? Nearly
 * always; where not, the tables are read instead. */
static int steps_fit(const PenStoreTable *t, uint32_t c)
{
    for (int x = 0; x < 256; x++) {
        float v = (float)x;
        v = fmaf(v, PEN_INVERSE_255, v * PEN_INVERSE_255_REST) - t->mean[c];
        v = fmaf(v, t->inverse[c], v * t->rest[c]);
        if (pen__float_bits(v) != pen__float_bits(t->f32[c][x]))
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
        t->u16[c][x] = t->dtype == PEN_F16 ? pen__to_f16(v) : pen__to_bf16(v);
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
