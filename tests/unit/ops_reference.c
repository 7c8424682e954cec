/* SPDX-License-Identifier: Apache-2.0 */
#include "ops_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dsp/dsp.h"
#include "dsp/resample.h"
#include "ops/operations/boxes.h"
#include "ops/operations/op.h"

static Pic new_pic(uint32_t w, uint32_t h, uint32_t c)
{
    Pic p = {calloc((size_t)w * h * c + PEN_SLACK, 1), w, h, c};
    if (!p.data)
        abort();
    return p;
}

uint8_t *pic_at(const Pic *p, int64_t x, int64_t y)
{
    return p->data + ((size_t)y * p->w + (size_t)x) * p->c;
}

static void replace(Pic *p, Pic by)
{
    free(p->data);
    *p = by;
}

static void crop(Pic *p, int64_t x, int64_t y, uint32_t w, uint32_t h, uint8_t fill)
{
    Pic to = new_pic(w, h, p->c);
    for (int64_t i = 0; i < h; i++) {
        for (int64_t k = 0; k < w; k++) {
            int inside = x + k >= 0 && x + k < p->w && y + i >= 0 && y + i < p->h;
            if (inside)
                memcpy(pic_at(&to, k, i), pic_at(p, x + k, y + i), p->c);
            else
                memset(pic_at(&to, k, i), fill, p->c);
        }
    }
    replace(p, to);
}

static void resize(Pic *p, uint32_t w, uint32_t h, int filter)
{
    Pic to = new_pic(w, h, p->c);
    PenRaster a = {p->data, p->w, p->h, p->c}, b = {to.data, w, h, p->c};
    if (pen__raster_resample(&a, &b, filter, NULL) < 0)
        abort();
    replace(p, to);
}

/* Pillow's words: the way exif_transpose names them. */
enum { LEFT_RIGHT, ROTATE_180, TOP_BOTTOM, TRANSPOSE, ROTATE_270, TRANSVERSE, ROTATE_90 };

static void transpose(Pic *p, int how)
{
    uint32_t w = p->w, h = p->h;
    Pic to = how >= TRANSPOSE ? new_pic(h, w, p->c) : new_pic(w, h, p->c);
    for (uint32_t y = 0; y < to.h; y++) {
        for (uint32_t x = 0; x < to.w; x++) {
            const int64_t right = (int64_t)w - 1, bottom = (int64_t)h - 1;
            const int64_t from[][2] = {
                {right - x, y},  {right - x, bottom - y}, {x, bottom - y}, {y, x},
                {y, bottom - x}, {right - y, bottom - x}, {right - y, x},
            };
            memcpy(pic_at(&to, x, y), pic_at(p, from[how][0], from[how][1]), p->c);
        }
    }
    replace(p, to);
}

static void box_fill(Pic *p, PenBox box, const PenParamValue *value)
{
    for (uint32_t y = box.y; y < box.y + box.h; y++)
        for (uint32_t x = box.x; x < box.x + box.w; x++)
            for (uint32_t c = 0; c < p->c; c++)
                pic_at(p, x, y)[c] = (uint8_t)value->v[value->n == 1 ? 0 : c];
}

static void jitter(Pic *p, const PenParamValue *v, PenDraw *d)
{
    const PenDsp *dsp = pen__dsp_tier("c");
    int order[4] = {0, 1, 2, 3}, factor[4];
    size_t n = (size_t)p->w * p->h;
    for (uint32_t i = 3; i > 0; i--) {
        uint32_t j = (uint32_t)pen__draw_below(d, i + 1);
        int kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (int i = 0; i < 4; i++)
        factor[i] = (i < 3 ? pen__sample_factor : pen__sample_hue)(d, v[i].v[0], v[i].v[1]);
    for (int i = 0; i < 4; i++) {
        int k = order[i], neutral = k < 3;
        if (v[k].v[0] == neutral && v[k].v[1] == neutral)
            continue;
        if (k == 0)
            dsp->brightness(p->data, n, factor[0]);
        if (k == 1)
            dsp->contrast(p->data, n, factor[1],
                          (int)floor((double)dsp->grey_sum(p->data, n) / (double)n + 0.5));
        if (k == 2)
            dsp->saturation(p->data, n, factor[2]);
        if (k == 3)
            dsp->hue(p->data, n, factor[3]);
    }
}

Pic pic_decode(const PenEncoded *e, int colour, int orientation)
{
    static const int how[] = {LEFT_RIGHT, ROTATE_180, TOP_BOTTOM, TRANSPOSE,
                              ROTATE_270, TRANSVERSE, ROTATE_90};
    PenPixels px = {0};
    Pic p;
    if (e->codec == PEN_STORED_RAW) {
        px = (PenPixels){pen__alloc(e->bytes), e->width, e->height, e->channels};
        memcpy(px.data, e->data, e->bytes);
    } else if (colour == PEN_COLOUR_MASK
                   ? pen__mask_decode(e->data, e->bytes, &pen__limits_default, &px, NULL)
                   : pen__image_decode(e->data, e->bytes, &pen__limits_default, &px, NULL)) {
        abort();
    }
    p = new_pic(px.width, px.height, colour == PEN_COLOUR_RGB ? 3 : 1);
    for (size_t i = 0; i < (size_t)px.width * px.height; i++) {
        const uint8_t *s = px.data + i * px.channels;
        uint8_t *d = p.data + i * p.c;
        if (px.channels < 3)
            memset(d, s[0], p.c);
        else if (p.c == 3)
            memcpy(d, s, 3);
        else
            *d = (uint8_t)((s[0] * 19595u + s[1] * 38470u + s[2] * 7471u + 0x8000u) >> 16);
    }
    pen__pixels_free(&px);
    if (orientation > 1)
        transpose(&p, how[orientation - 2]);
    return p;
}

/* One operation, straight from its description. */
void pic_apply(Pic *p, const PenSpecOp *op, PenDraw *d, int is_mask)
{
    const PenParamValue *v = op->values;
    PenSampleRule rule = {{v[1].v[0], v[1].v[1]}, {v[2].v[0], v[2].v[1]}};
    uint32_t h = (uint32_t)v[0].v[0], w = (uint32_t)v[0].v[1];
    int64_t padding, x, y;
    PenBox box;
    switch (pen__op_number(op->op)) {
    case PEN_OP_resize:
        if (v[0].n == 1) {
            uint32_t side = h;
            w = p->w <= p->h ? side : (uint32_t)((double)side * p->w / p->h);
            h = p->w <= p->h ? (uint32_t)((double)side * p->h / p->w) : side;
        }
        resize(p, w, h, is_mask ? PEN_FILTER_NEAREST : (int)v[1].word);
        break;
    case PEN_OP_center_crop: /* bordered first, then cut, as torchvision does */
        crop(p, w > p->w ? -(int64_t)((w - p->w) / 2) : 0,
             h > p->h ? -(int64_t)((h - p->h) / 2) : 0, PEN_MAX(w, p->w), PEN_MAX(h, p->h), 0);
        crop(p, (int64_t)rint((p->w - w) / 2.0), (int64_t)rint((p->h - h) / 2.0), w, h, 0);
        break;
    case PEN_OP_random_crop:
        padding = (int64_t)v[1].v[0];
        crop(p, -padding, -padding, p->w + 2 * (uint32_t)padding, p->h + 2 * (uint32_t)padding,
             (uint8_t)v[2].v[0]);
        y = (int64_t)pen__draw_below(d, p->h - h + 1);
        x = (int64_t)pen__draw_below(d, p->w - w + 1);
        crop(p, x, y, w, h, 0);
        break;
    case PEN_OP_random_resized_crop:
        box = pen__sample_crop(d, p->w, p->h, &rule);
        crop(p, box.x, box.y, box.w, box.h, 0);
        resize(p, w, h, is_mask ? PEN_FILTER_NEAREST : (int)v[3].word);
        break;
    case PEN_OP_hflip:
        if (pen__draw_happens(d, v[0].v[0]))
            transpose(p, LEFT_RIGHT);
        break;
    case PEN_OP_vflip:
        if (pen__draw_happens(d, v[0].v[0]))
            transpose(p, TOP_BOTTOM);
        break;
    case PEN_OP_color_jitter:
        jitter(p, v, d);
        break;
    case PEN_OP_grayscale:
        if (pen__draw_happens(d, v[0].v[0]))
            pen__dsp_tier("c")->grey(p->data, (size_t)p->w * p->h);
        break;
    case PEN_OP_random_erasing:
        if (pen__draw_happens(d, v[0].v[0]))
            box_fill(p, pen__sample_erase(d, p->w, p->h, &rule), &v[3]);
        break;
    }
}
