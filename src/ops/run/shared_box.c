/* SPDX-License-Identifier: Apache-2.0 */
/* A box of an image, decoded once for several sample plans. */
#include <string.h>

#include "ops/run/decode_context.h"

typedef struct Filling {
    uint8_t *to;
    size_t stride;
} Filling;

static uint64_t pixel_bytes(const PenSharedBox *shared)
{
    return (uint64_t)shared->box.w * shared->box.h * (shared->colour == PEN_COLOUR_RGB ? 3 : 1);
}

static int add_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    Filling *f = ctx;
    (void)reterr;
    for (uint32_t i = 0; i < n; i++, f->to += f->stride)
        memcpy(f->to, rows + i * stride, f->stride);
    return PEN_OK;
}

int pen__shared_box_decode(PenDecodeContext *k, const PenImageHeader *header,
                           const PenSharedBox *shared, const PenLimits *limits, PenError *reterr)
{
    uint64_t bytes = pixel_bytes(shared);
    int r = pen__scratch_hold(&k->shared_box, bytes, reterr);
    if (r < 0)
        return r;
    Filling filling = {.to = k->shared_box.data, .stride = (size_t)(bytes / shared->box.h)};
    PenRegion region = {.box = shared->box,
                        .colour = shared->colour,
                        .shrink = shared->shrink,
                        .limits = limits,
                        .rows = add_rows,
                        .ctx = &filling};
    return pen__region_rows(k->decoder, header, &region, reterr);
}

uint64_t pen__shared_box_memory(const PenImageHeader *header, const PenSharedBox *shared)
{
    return pen__region_memory(header, &shared->box, shared->shrink) + pixel_bytes(shared) +
           PEN_SLACK;
}
