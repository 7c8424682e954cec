/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dsp/dsp_impl.h"

/* `step` is the distance of two values of one channel in dst; the same for all three functions. */
static void store_f32(const PenStoreTable *t, const uint8_t *row, uint32_t n, float *dst,
                      size_t plane, size_t step)
{
    for (uint32_t c = 0; c < t->channels; c++, row++, dst += plane)
        for (size_t i = 0; i < n; i++)
            dst[i * step] = t->f32[c][row[i * t->channels]];
}

static void store_u16(const PenStoreTable *t, const uint8_t *row, uint32_t n, uint16_t *dst,
                      size_t plane, size_t step)
{
    for (uint32_t c = 0; c < t->channels; c++, row++, dst += plane)
        for (size_t i = 0; i < n; i++)
            dst[i * step] = t->u16[c][row[i * t->channels]];
}

static void store_u8(const PenStoreTable *t, const uint8_t *row, uint32_t n, uint8_t *dst,
                     size_t plane)
{
    if (plane)
        pen__planes_u8_c(row, t->channels, n, dst, plane);
    else
        memcpy(dst, row, (size_t)n * t->channels);
}

void pen__store_c(const PenStoreTable *t, const uint8_t *row, uint32_t n, void *dst,
                  size_t plane_stride)
{
    size_t plane = plane_stride ? plane_stride : 1, step = plane_stride ? 1 : t->channels;
    if (t->element_bytes == 4)
        store_f32(t, row, n, dst, plane, step);
    else if (t->element_bytes == 2)
        store_u16(t, row, n, dst, plane, step);
    else
        store_u8(t, row, n, dst, plane_stride);
}

void pen__planes_u8_c(const uint8_t *row, uint32_t channels, uint32_t n, uint8_t *dst,
                      size_t plane_stride)
{
    for (uint32_t c = 0; c < channels; c++, row++, dst += plane_stride)
        for (size_t i = 0; i < n; i++)
            dst[i] = row[i * channels];
}
