/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a decoded picture: only the pixels of the box are converted. */
#include "codec/picture/picture.h"
#include "codec/region/region_impl.h"

typedef struct Source {
    const PenVideoPicture *picture;
    const PenBox *box;
    PenYuvFactors factors;
    PenYuvFn *convert;
} Source;

static PenYuvFn *choose_kernel(const PenVideoPicture *p)
{
    const PenYuvKernels *k = pen__yuv_kernels();
    int is_wide = p->depth > 8;
    if (p->n_planes == 1)
        return k->gray[is_wide];
    return p->shift_x ? k->half[is_wide] : k->full[is_wide];
}

static const uint8_t *sample_at(const PenVideoPicture *p, uint32_t plane, uint32_t x, uint32_t y)
{
    if (plane) {
        x >>= p->shift_x;
        y >>= p->shift_y;
    }
    const uint8_t *row = (const uint8_t *)p->planes[plane] + y * p->strides[plane];
    return row + ((size_t)x << (p->depth > 8));
}

/* Row `y` of the picture. */
static void convert_row(const Source *s, uint32_t y, uint8_t *pixels)
{
    const PenVideoPicture *p = s->picture;
    PenYuvRow row = {.factors = &s->factors,
                     .y = sample_at(p, 0, s->box->x, y),
                     .n = s->box->w,
                     .odd_x = p->shift_x && s->box->x % 2};
    if (p->n_planes == 3) {
        row.u = sample_at(p, 1, s->box->x, y);
        row.v = sample_at(p, 2, s->box->x, y);
    }
    s->convert(&row, pixels);
}

int pen__region_picture(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                        PenError *reterr)
{
    const PenVideoPicture *p = header->image->picture;
    const PenBox *box = &region->box;
    Source source = {
        .picture = p, .box = box, .factors = pen__picture_factors(p), .convert = choose_kernel(p)};
    PenRowSpan span = {.stride = (size_t)box->w * p->n_planes, .channels = p->n_planes};
    int r = pen__region_check_mask(region, span.channels, reterr);
    if (r >= 0)
        r = pen__region_reserve(&d->rows, span.stride * PEN_REGION_ROWS, reterr);
    for (uint32_t done = 0; r >= 0 && done < box->h; done += span.n) {
        span.n = PEN_MIN(box->h - done, (uint32_t)PEN_REGION_ROWS);
        for (uint32_t i = 0; i < span.n; i++)
            convert_row(&source, box->y + done + i, d->rows.data + i * span.stride);
        span.data = d->rows.data;
        r = pen__rows_give(d, region, &span, reterr);
    }
    return r;
}
