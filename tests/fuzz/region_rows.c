/* SPDX-License-Identifier: Apache-2.0 */
#include "region_rows.h"

#include <stdlib.h>
#include <string.h>

#include "help.h"

const PenLimits region_limits = {
    .max_pixels = 1 << 18, .max_memory_bytes = 32 << 20, .max_scans = 20};

PenDecoder *make_decoder(const char *tier)
{
    PenError err;
    PenDecoder *d = NULL;
    MUST(pen__decoder_new(&d, &err));
    if (!GOES(pen__decoder_use(d, tier, &err)))
        pen__decoder_free(&d);
    return d;
}

static int collect(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    Rows *r = ctx;
    (void)reterr;
    r->data = realloc(r->data, (r->n + n) * r->row_bytes);
    REQUIRE(r->data);
    for (uint32_t i = 0; i < n; i++) {
        require_written(rows + i * stride, r->row_bytes);
        memcpy(r->data + (r->n + i) * r->row_bytes, rows + i * stride, r->row_bytes);
    }
    r->n += n;
    return PEN_OK;
}

int decode_rows(PenDecoder *d, const PenEncoded *image, PenBox box, Rows *ret)
{
    return decode_shrunk(d, image, box, 0, ret);
}

int decode_shrunk(PenDecoder *d, const PenEncoded *image, PenBox box, uint32_t shrink, Rows *ret)
{
    PenError err;
    PenImageHeader header;
    uint64_t memory = 0;
    *ret = (Rows){.row_bytes = (size_t)box.w * 3};
    PenRegion region = {.box = box,
                        .colour = PEN_COLOUR_RGB,
                        .shrink = shrink,
                        .limits = &region_limits,
                        .rows = collect,
                        .ctx = ret};
    if (GOES(pen__image_header(image, &region_limits, &header, &err)))
        memory = pen__region_memory(&header, &box, shrink);
    int r = CALL(pen__region_decode(d, image, &region, &err));
    if (r == PEN_OK)
        REQUIRE(ret->n == box.h && memory);
    return r;
}
