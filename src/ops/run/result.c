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

/* n pixels, with their channels together or `plane` elements apart. */
static void store(const PenProgram *p, const uint8_t *row, uint32_t n, uint8_t *to, size_t plane)
{
    if (p->tensor.dtype == PEN_I64)
        widen(row, n, to);
    else if (p->tensor.dtype != PEN_U8)
        pen__dsp()->store(&p->table, row, n, to, plane);
    else if (plane)
        pen__dsp()->planes_u8(row, p->channels, n, to, plane);
    else
        memcpy(to, row, (size_t)n * p->channels);
}

/* ---- patches ---- */

static size_t patch_bytes(const PenProgram *p)
{
    return p->bytes / p->patches.length;
}

/* Where a pixel lies: patches one after another, row by row, and so their pixels. */
static uint8_t *pixel_at(const PenProgram *p, const PenSamplePlan *sample_plan, uint8_t *dst,
                         uint32_t y, uint32_t x)
{
    uint32_t side = p->patches.side, across = sample_plan->width / side;
    size_t pixel = pen_dtype_bytes(p->tensor.dtype) * p->channels;
    return dst + ((size_t)(y / side) * across + x / side) * patch_bytes(p) +
           ((size_t)(y % side) * side + x % side) * pixel;
}

static void patch_row(const PenProgram *p, const PenSamplePlan *sample_plan, uint8_t *dst,
                      uint32_t y, const uint8_t *row)
{
    uint32_t side = p->patches.side;
    uint8_t *to = pixel_at(p, sample_plan, dst, y, 0);
    for (uint32_t x = 0; x < sample_plan->width; x += side) {
        store(p, row + (size_t)x * p->channels, side, to, 0);
        to += patch_bytes(p);
    }
}

static void erase_patches(const PenProgram *p, const PenSamplePlan *sample_plan, uint8_t *dst,
                          const PenBox *box, const uint32_t *values)
{
    size_t element = pen_dtype_bytes(p->tensor.dtype);
    for (uint32_t y = box->y; y < box->y + box->h; y++)
        for (uint32_t x = box->x; x < box->x + box->w; x++)
            for (uint32_t c = 0; c < p->channels; c++)
                memcpy(pixel_at(p, sample_plan, dst, y, x) + c * element, &values[c], element);
}

static void pad_patches(const PenProgram *p, const PenSamplePlan *sample_plan, uint8_t *dst)
{
    uint32_t side = p->patches.side;
    size_t used = (size_t)(sample_plan->width / side) * (sample_plan->height / side);
    memset(dst + used * patch_bytes(p), 0, (p->patches.length - used) * patch_bytes(p));
}

/* ---- all ---- */

void pen__result_row(const PenProgram *p, const PenSamplePlan *sample_plan, void *dst, uint32_t y,
                     const uint8_t *row)
{
    size_t element = pen_dtype_bytes(p->tensor.dtype), plane = 0;
    uint32_t width = sample_plan->width;
    if (p->patches.side) {
        patch_row(p, sample_plan, dst, y, row);
        return;
    }
    size_t first = (size_t)y * width * (p->planes ? 1 : p->channels);
    uint8_t *to = (uint8_t *)dst + first * element;
    /* A single channel is the same either way. */
    if (p->planes && p->channels > 1)
        plane = plane_of(p, sample_plan);
    store(p, row, width, to, plane);
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

void pen__result_finish(const PenProgram *p, void *dst, const PenSamplePlan *sample_plan)
{
    for (uint32_t i = 0; i < sample_plan->n_erase; i++)
        if (sample_plan->erase[i].w && p->patches.side)
            erase_patches(p, sample_plan, dst, &sample_plan->erase[i], p->erase_value[i]);
        else if (sample_plan->erase[i].w)
            erase(p, sample_plan, dst, &sample_plan->erase[i], p->erase_value[i]);
    if (p->patches.side)
        pad_patches(p, sample_plan, dst);
}
