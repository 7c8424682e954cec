/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/region/region.h"

#include "codec/region/region_impl.h"

static const char where[] = "codec/region";

int pen__decoder_new(PenDecoder **ret, PenError *reterr)
{
    PenDecoder *d = pen__zalloc(sizeof *d);
    if (!d)
        return pen__fail_memory(reterr, where, "decoder");
    *ret = d;
    return PEN_OK;
}

void pen__decoder_free(PenDecoder **d)
{
    if (!d || !*d)
        return;
    jpeg_destroy_decompress(&(*d)->turbo.d);
    pen__turbo_free_coefs(&(*d)->turbo);
    pen__buf_free(&(*d)->rows);
    pen__buf_free(&(*d)->converted);
    pen__buf_free(&(*d)->head);
    pen__own_free(&(*d)->own);
    pen__entry_scan_free(&(*d)->scan);
    pen__free(*d);
    *d = NULL;
}

int pen__decoder_use(PenDecoder *d, const char *tier, PenError *reterr)
{
    int r = d->own ? PEN_OK : pen__own_new(&d->own, reterr);
    d->scans_all = true;
    return r < 0 ? r : pen__own_use(d->own, tier, reterr);
}

static int check_box(const PenEncoded *image, const PenRegion *region, PenError *reterr)
{
    const PenBox *box = &region->box;
    if (region->shrink > PEN_SHRINK_MOST || (region->shrink && image->codec != PEN_STORED_JPEG))
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "shrink: expected 0, or up to %d for a JPEG, found %u for %s",
                         PEN_SHRINK_MOST, region->shrink, pen__codec_name(image->codec));
    uint32_t width = pen__shrunk_side(image->width, region->shrink);
    uint32_t height = pen__shrunk_side(image->height, region->shrink);
    if (box->w && box->h && box->w <= width && box->x <= width - box->w && box->h <= height &&
        box->y <= height - box->h)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, where,
                     "box: expected a box inside %u x %u pixels, found %u x %u at %u, %u", width,
                     height, box->w, box->h, box->x, box->y);
}

static PenRegionFn choose(const PenEncoded *image)
{
    switch (image->codec) {
    case PEN_STORED_JPEG:
        return pen__region_is_tiled(image)     ? pen__region_tiled
               : pen__region_is_indexed(image) ? pen__region_indexed
                                               : pen__region_stock;
    case PEN_STORED_RAW:
        return pen__region_raw;
    case PEN_STORED_PICTURE:
        return pen__region_picture;
    default:
        return pen__region_whole;
    }
}

static void drop_large(PenBuf *buf)
{
    if (buf->cap > PEN_REGION_KEEP_BYTES)
        pen__buf_free(buf);
}

int pen__region_rows(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                     PenError *reterr)
{
    int r = check_box(header->image, region, reterr);
    if (r < 0)
        return r;
    PenRegionFn decode = choose(header->image);
    if (decode != pen__region_stock) /* what others take is counted without it */
        pen__entry_scan_free(&d->scan);
    r = decode(d, header, region, reterr);
    drop_large(&d->rows);
    drop_large(&d->converted);
    drop_large(&d->head);
    pen__entry_scan_trim(d->scan);
    return r;
}

int pen__region_decode(PenDecoder *d, const PenEncoded *image, const PenRegion *region,
                       PenError *reterr)
{
    PenImageHeader header;
    int r = pen__image_header(image, region->limits, &header, reterr);
    return r < 0 ? r : pen__region_rows(d, &header, region, reterr);
}
