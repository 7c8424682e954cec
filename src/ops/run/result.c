/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/run/result.h"

#include <string.h>

static void widen(const uint8_t *row, uint32_t n, uint8_t *dst)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t v = row[i];
        memcpy(dst + 8 * (size_t)i, &v, sizeof v);
    }
}

static size_t plane_of(const PenProgram *p, const PenSamplePlan *sample_plan)
{
    return p->plane ? (size_t)p->plane : (size_t)sample_plan->width * sample_plan->height;
}

void pen__result_row(const PenProgram *p, const PenSamplePlan *sample_plan, void *dst, uint32_t y,
                     const uint8_t *row)
{
    size_t element = pen_dtype_bytes(p->tensor.dtype), plane = 0;
    uint32_t width = sample_plan->width;
    size_t first = (size_t)y * width * (p->planes ? 1 : p->channels);
    uint8_t *to = (uint8_t *)dst + first * element;
    /* A single channel is the same either way. */
    if (p->planes && p->channels > 1)
        plane = plane_of(p, sample_plan);
    if (p->tensor.dtype == PEN_I64)
        widen(row, width, to);
    else if (p->tensor.dtype != PEN_U8)
        pen__dsp()->store(&p->table, row, width, to, plane);
    else if (plane)
        pen__dsp()->planes_u8(row, p->channels, width, to, plane);
    else
        memcpy(to, row, (size_t)width * p->channels);
}

/* n elements of 2 or 4 bytes, every `step`-th. */
static void fill(uint8_t *to, size_t element, size_t step, size_t n, uint32_t value)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * step * element, &value, element);
}

static void erase(const PenProgram *p, const PenSamplePlan *sample_plan, uint8_t *dst,
                  const PenBox *box, const uint32_t *values)
{
    size_t element = pen_dtype_bytes(p->tensor.dtype);
    size_t step = p->planes ? 1 : p->channels;
    size_t channel = p->planes ? plane_of(p, sample_plan) : 1;
    for (uint32_t c = 0; c < p->channels; c++) {
        for (uint32_t y = box->y; y < box->y + box->h; y++) {
            size_t first = c * channel + ((size_t)y * sample_plan->width + box->x) * step;
            fill(dst + first * element, element, step, box->w, values[c]);
        }
    }
}

void pen__result_erase(const PenProgram *p, void *dst, const PenSamplePlan *sample_plan)
{
    for (uint32_t i = 0; i < sample_plan->n_erase; i++)
        if (sample_plan->erase[i].w)
            erase(p, sample_plan, dst, &sample_plan->erase[i], p->erase_value[i]);
}
