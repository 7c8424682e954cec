/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a box by the own decoder. */
#include "codec/region/region_impl.h"

typedef struct Receiver {
    PenDecoder *d;
    const PenRegion *region;
} Receiver;

static int receive_rows(void *ctx, const PenRowSpan *span, PenError *reterr)
{
    const Receiver *to = ctx;
    return pen__rows_give(to->d, to->region, span, reterr);
}

int pen__region_own(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                    uint32_t *ret_given, PenError *reterr)
{
    Receiver to = {d, region};
    PenOwnRequest request = {.image = header->image,
                             .header = &header->u.jpeg,
                             .at = {region->box, region->shrink},
                             .grey_as_rgb = region->colour == PEN_COLOUR_RGB,
                             .limits = region->limits,
                             .rows = receive_rows,
                             .ctx = &to};
    int r = d->own ? PEN_OK : pen__own_new(&d->own, reterr);
    return r < 0 ? r : pen__own_decode(d->own, &request, ret_given, reterr);
}
