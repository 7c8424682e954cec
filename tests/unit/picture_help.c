/* SPDX-License-Identifier: Apache-2.0 */
#include "picture_help.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "region_checks.h"

static void *must_alloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}

static uint32_t random_sample(const PenVideoPicture *p, uint32_t plane, int samples)
{
    uint32_t unit = 1u << (p->depth - 8);
    if (samples == TEST_SAMPLES_ANY)
        return dice(256 * unit);
    return plane ? dice(57 * unit) + 100 * unit : dice(128 * unit) + 64 * unit;
}

static uint32_t plane_width(const PenVideoPicture *p, uint32_t plane)
{
    return plane ? pen__chroma_side(p->width, p->shift_x) : p->width;
}

uint32_t plane_height(const PenVideoPicture *p, uint32_t plane)
{
    return plane ? pen__chroma_side(p->height, p->shift_y) : p->height;
}

size_t plane_row_bytes(const PenVideoPicture *p, uint32_t plane)
{
    return (size_t)plane_width(p, plane) * (p->depth > 8 ? 2 : 1);
}

uint8_t *plane_row(const PenVideoPicture *p, uint32_t plane, uint32_t y)
{
    return (uint8_t *)(uintptr_t)p->planes[plane] + y * p->strides[plane];
}

static void fill_plane(const PenVideoPicture *p, uint32_t plane, int samples)
{
    for (uint32_t y = 0; y < plane_height(p, plane); y++)
        for (uint32_t x = 0; x < plane_width(p, plane); x++) {
            uint32_t v = random_sample(p, plane, samples);
            if (p->depth > 8)
                pen__store16(plane_row(p, plane, y) + 2 * (size_t)x, (uint16_t)v);
            else
                plane_row(p, plane, y)[x] = (uint8_t)v;
        }
}

PenVideoPicture make_picture(PenVideoPicture format, int samples)
{
    PenVideoPicture p = format;
    for (uint32_t i = 0; i < p.n_planes; i++) {
        size_t row = plane_row_bytes(&p, i), stride = row + dice(9);
        size_t last = stride * (plane_height(&p, i) - 1);
        uint8_t *data = must_alloc(last + row);
        bool is_upside_down = dice(4) == 0;
        memset(data, 0xa5, last + row);
        p.planes[i] = is_upside_down ? data + last : data;
        p.strides[i] = is_upside_down ? -(int64_t)stride : (int64_t)stride;
        fill_plane(&p, i, samples);
    }
    return p;
}

void free_picture(PenVideoPicture *p)
{
    for (uint32_t i = 0; i < p->n_planes; i++)
        free(plane_row(p, i, p->strides[i] < 0 ? plane_height(p, i) - 1 : 0));
    *p = (PenVideoPicture){0};
}

PenEncoded encoded_picture(const PenVideoPicture *p)
{
    return (PenEncoded){.width = p->width,
                        .height = p->height,
                        .codec = PEN_STORED_PICTURE,
                        .channels = (uint8_t)p->n_planes,
                        .picture = p};
}

/* A row of chroma, each sample as often as pixels share it. */
static void repeat_row(const PenVideoPicture *p, uint32_t plane, uint32_t y, uint8_t *to)
{
    size_t each = p->depth > 8 ? 2 : 1;
    const uint8_t *row = plane_row(p, plane, y / (1u << p->shift_y));
    for (uint32_t x = 0; x < p->width; x++)
        memcpy(to + x * each, row + x / (1u << p->shift_x) * each, each);
}

void convert_picture(const PenVideoPicture *p, PenPixels *ret)
{
    const PenYuvKernels *k = pen__yuv_kernels_tier("c");
    PenYuvFactors f = pen__picture_factors(p);
    uint8_t *u = must_alloc((size_t)p->width * 2), *v = must_alloc((size_t)p->width * 2);
    *ret = (PenPixels){.data = must_alloc((size_t)p->width * p->height * p->n_planes + PEN_SLACK),
                       .width = p->width,
                       .height = p->height,
                       .channels = p->n_planes};
    memset(ret->data + (size_t)p->width * p->height * p->n_planes, 0, PEN_SLACK);
    for (uint32_t y = 0; y < p->height; y++) {
        PenYuvRow row = {&f, plane_row(p, 0, y), u, v, p->width, false};
        uint8_t *to = ret->data + (size_t)y * p->width * p->n_planes;
        if (p->n_planes == 1) {
            k->gray[p->depth > 8](&row, to);
            continue;
        }
        repeat_row(p, 1, y, u);
        repeat_row(p, 2, y, v);
        k->full[p->depth > 8](&row, to);
    }
    free(u);
    free(v);
}
