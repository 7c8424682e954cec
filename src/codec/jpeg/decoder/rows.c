/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of MCUs whose samples are all there become rows of pixels. */
#include "codec/jpeg/decoder/decoder_impl.h"

/* A row of samples in the ring, at column x of the component. */
static const uint8_t *samples(const PenOwn *own, uint32_t i, uint32_t x, uint32_t y)
{
    const PenOwnPlane *p = &own->planes[i];
    uint32_t high = p->v * p->side, mcu_row = y / high;
    return p->data + (size_t)(mcu_row % own->ring_rows) * p->ring_bytes + y % high * p->stride +
           (x - own->wanted.block_left[i] * p->side);
}

/* The other row of chroma that a row of pixels takes from. */
static uint32_t far_row(const PenOwnPlane *chroma, uint32_t y)
{
    uint32_t near = y / 2;
    if (y % 2)
        return PEN_MIN(near + 1, chroma->rows - 1);
    return near - (near > 0);
}

static void make_row(const PenOwn *own, uint32_t y, uint8_t *out)
{
    const PenBox *box = &own->request.at.box;
    const PenOwnPlane *chroma = &own->planes[1];
    uint32_t h = own->scale.h, v = own->scale.v;
    bool repeats = own->request.at.shrink == 3; /* as libjpeg at 1/8, instead of a filter */
    uint32_t x = box->x / h, last = (box->x + box->w - 1) / h, near = y / v;
    uint32_t far = v == 2 && !repeats ? far_row(chroma, y) : near;
    PenJpegRow row = {.y = samples(own, 0, box->x, y),
                      .cb = samples(own, 1, x, near),
                      .cr = samples(own, 2, x, near),
                      .cb_far = samples(own, 1, x, far),
                      .cr_far = samples(own, 2, x, far),
                      .n = box->w,
                      .odd_y = y % 2,
                      .odd_x = box->x % 2,
                      .first = x == 0,
                      .last = last == chroma->columns - 1,
                      .plain = h == 2 && (chroma->columns <= 2 || repeats)};
    own->pixels->rgb[own->sampling](&row, out);
}

/* Rows [y, y + n), which are of one row of MCUs. */
static int give(PenOwn *own, uint32_t y, uint32_t n, PenError *reterr)
{
    const PenOwnRequest *request = &own->request;
    const PenBox *box = &request->at.box;
    PenRowSpan span = {.data = own->rows, .stride = (size_t)box->w * 3, .n = n, .channels = 3};
    bool grey = own->head.components == 1;
    if (grey && !request->grey_as_rgb) {
        span.data = samples(own, 0, box->x, y);
        span.stride = own->planes[0].stride;
        span.channels = 1;
        return request->rows(request->ctx, &span, reterr);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *out = own->rows + i * span.stride;
        if (grey)
            own->pixels->grey_rgb(samples(own, 0, box->x, y + i), box->w, out);
        else
            make_row(own, y + i, out);
    }
    return request->rows(request->ctx, &span, reterr);
}

int pen__own_give(PenOwn *own, uint32_t end, PenError *reterr)
{
    const PenBox *box = &own->request.at.box;
    uint32_t high = own->g.mcu_height >> own->request.at.shrink;
    int r = PEN_OK;
    for (; own->row < end && r >= 0; own->row++) {
        uint32_t y = PEN_MAX(own->row * high, box->y);
        uint32_t below = PEN_MIN((own->row + 1) * high, box->y + box->h);
        if (y >= below) /* it was there for the rows beside it only */
            continue;
        r = give(own, y, below - y, reterr);
        own->given += r >= 0 ? below - y : 0;
    }
    return r < 0 ? r : PEN_OK;
}
