/* SPDX-License-Identifier: Apache-2.0 */
#include "dsp/resample.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "dsp/stream.h"

static const char where[] = "dsp/resample";

static int keep_row(void *ctx, uint32_t y, const uint8_t *row, PenError *reterr)
{
    const PenRaster *dst = ctx;
    size_t bytes = (size_t)dst->width * dst->channels;
    (void)reterr;
    memcpy(dst->data + y * bytes, row, bytes);
    return PEN_OK;
}

/* The last rows go through a copy, as PEN_SLACK bytes have to follow what is pushed. */
static int push_all(PenStream *s, const PenRaster *src, PenError *reterr)
{
    size_t stride = (size_t)src->width * src->channels;
    uint32_t last = (uint32_t)PEN_MIN(PEN_SLACK / stride + 1, src->height);
    uint32_t first = src->height - last;
    int r = pen__stream_push(s, src->data, stride, first, reterr);
    if (r < 0)
        return r;
    uint8_t *copy = pen__zalloc(last * stride + PEN_SLACK);
    if (!copy)
        return pen__fail_memory(reterr, where, "last rows");
    memcpy(copy, src->data + first * stride, last * stride);
    r = pen__stream_push(s, copy, stride, last, reterr);
    pen__free(copy);
    return r;
}

int pen__raster_resample(const PenRaster *src, const PenRaster *dst, int filter, PenError *reterr)
{
    PenStream *s = NULL;
    PenRaster to = *dst;
    PenResize what = {.src_width = src->width,
                      .src_height = src->height,
                      .width = dst->width,
                      .height = dst->height,
                      .window = {0, 0, dst->width, dst->height},
                      .channels = src->channels,
                      .filter = filter};
    if (dst->channels != src->channels)
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "resample: expected %u channels in the result, found %u", src->channels,
                         dst->channels);
    int r = pen__stream_new(&s, reterr);
    if (r == PEN_OK)
        r = pen__stream_start(s, &what, keep_row, &to, reterr);
    if (r == PEN_OK) {
        PenBox needs;
        pen__resize_needs(&what, &needs);
        PenRaster part = *src;
        part.height = needs.h;
        part.data += (size_t)needs.y * src->width * src->channels;
        r = push_all(s, &part, reterr);
    }
    pen__stream_free(&s);
    return r;
}
