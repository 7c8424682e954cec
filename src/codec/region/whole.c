/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of pixels that are all there: raw ones as stored, others decoded as a whole. */
#include "base/bytes.h"
#include "codec/region/region_impl.h"

static const char where[] = "codec/region";

/* Rows from `first` on begin at `data`. */
static int give_box(PenDecoder *d, const PenRegion *region, const PenPixels *pixels, uint32_t first,
                    PenError *reterr)
{
    const PenBox *box = &region->box;
    size_t stride = (size_t)pixels->width * pixels->channels;
    PenRowSpan span = {.data = pixels->data + (box->y - first) * stride +
                               (size_t)box->x * pixels->channels,
                       .stride = stride,
                       .n = box->h,
                       .channels = pixels->channels};
    return pen__rows_give(d, region, &span, reterr);
}

int pen__region_raw(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                    PenError *reterr)
{
    const PenEncoded *image = header->image;
    const PenBox *box = &region->box;
    uint32_t first = image->partial ? image->first_segment : 0;
    uint32_t end = image->partial ? image->end_segment : image->height;
    uint64_t need;
    if (image->channels != 1 && image->channels != 3 && image->channels != 4)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "raw pixels: expected 1, 3 or 4 channels, found %u", image->channels);
    if (first > end || end > image->height || first > box->y || end < box->y + box->h)
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "raw pixels: expected rows %u to %u, found %u to %u", box->y,
                         box->y + box->h, first, end);
    if (pen__mul_over((uint64_t)image->width * image->channels, end - first, &need) ||
        need != image->bytes)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "raw pixels: expected %u rows of %u x %u bytes, found %zu bytes",
                         end - first, image->width, image->channels, image->bytes);
    int r = pen__region_check_mask(region, image->channels, reterr);
    if (r < 0)
        return r;
    PenPixels pixels = {.data = image->data, .width = image->width, .channels = image->channels};
    return give_box(d, region, &pixels, first, reterr);
}

int pen__region_whole(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                      PenError *reterr)
{
    const PenEncoded *image = header->image;
    PenPixels pixels = {0};
    int r = (region->colour == PEN_COLOUR_MASK ? pen__mask_decode : pen__image_decode)(
        image->data, image->bytes, region->limits, &pixels, reterr);
    if (r >= 0)
        r = give_box(d, region, &pixels, 0, reterr);
    pen__pixels_free(&pixels);
    return r;
}
