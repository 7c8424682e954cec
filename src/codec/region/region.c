/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/region/region.h"

#include "codec/jpeg/decoder/decoder.h"
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
    pen__own_free(*d);
    pen__free(*d);
    *d = NULL;
}

int pen__region_reserve(PenBuf *buf, size_t bytes, PenError *reterr)
{
    buf->bytes = 0;
    if (pen__buf_reserve(buf, bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, where, "rows of pixels");
    return PEN_OK;
}

int pen__region_check_size(const PenEncoded *image, uint32_t width, uint32_t height,
                           PenError *reterr)
{
    if (width == image->width && height == image->height)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "image: expected %u x %u pixels as the index says, found a file of %u x %u",
                     image->width, image->height, width, height);
}

int pen__region_check_mask(const PenRegion *region, uint32_t channels, PenError *reterr)
{
    if (region->colour != PEN_COLOUR_MASK || channels == 1)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "mask: expected 1 channel, found %u; masks are grey or palette images",
                     channels);
}

static int check_box(const PenEncoded *image, const PenBox *box, PenError *reterr)
{
    if (box->w && box->h && box->w <= image->width && box->x <= image->width - box->w &&
        box->h <= image->height && box->y <= image->height - box->h)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, where,
                     "box: expected one inside of %u x %u pixels, found %u x %u at %u, %u",
                     image->width, image->height, box->w, box->h, box->x, box->y);
}

/* The index says what the file is; the bytes have to say the same. */
static int check_codec(const PenEncoded *image, PenError *reterr)
{
    if (image->codec == PEN_STORED_RAW)
        return PEN_OK;
    int found = pen__image_sniff(image->data, image->bytes);
    if (image->codec != PEN_STORED_NONE && found == image->codec)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "image: expected a file of codec %u (%s) as the index says, found %s",
                     image->codec, pen__codec_name(image->codec), pen__codec_name(found));
}

/* Only what is cut into segments can be there in part. */
static int check_partial(const PenEncoded *image, PenError *reterr)
{
    bool cut = image->codec == PEN_STORED_RAW ||
               (image->codec == PEN_STORED_JPEG && image->tiled && image->segment_bytes);
    if (!image->partial || cut)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, where,
                     "image: expected all of a %s without segments, found a part of it",
                     pen__codec_name(image->codec));
}

static PenRegionFn choose(const PenEncoded *image)
{
    switch (image->codec) {
    case PEN_STORED_JPEG:
        return image->tiled && image->segment_bytes ? pen__region_tiled : pen__region_jpeg;
    case PEN_STORED_RAW:
        return pen__region_raw;
    default:
        return pen__region_whole;
    }
}

static void drop_large(PenBuf *buf)
{
    if (buf->cap > PEN_REGION_KEEP_BYTES)
        pen__buf_free(buf);
}

int pen__region_decode(PenDecoder *d, const PenEncoded *image, const PenRegion *region,
                       PenError *reterr)
{
    int r = check_box(image, &region->box, reterr);
    if (r >= 0)
        r = check_codec(image, reterr);
    if (r >= 0)
        r = check_partial(image, reterr);
    if (r < 0)
        return r;
    r = choose(image)(d, image, region, reterr);
    drop_large(&d->rows);
    drop_large(&d->converted);
    drop_large(&d->head);
    return r;
}
