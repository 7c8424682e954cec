/* SPDX-License-Identifier: Apache-2.0 */
/* The header of an image, compared with what the index says about it. */
#include "codec/codec_impl.h"
#include "codec/picture/picture.h"
#include "codec/region/region_impl.h"

static const char where[] = "codec/region";

static int check_size(const PenEncoded *image, uint32_t width, uint32_t height, PenError *reterr)
{
    if (width == image->width && height == image->height)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "image: expected %u x %u pixels as in the index, found a file of %u x %u",
                     image->width, image->height, width, height);
}

/* The index says what the file is; the bytes have to say the same. */
static int check_codec(const PenEncoded *image, PenError *reterr)
{
    if (image->codec == PEN_STORED_RAW || image->codec == PEN_STORED_PICTURE)
        return PEN_OK;
    int found = pen__image_sniff(image->data, image->bytes);
    if (image->codec != PEN_STORED_NONE && found == image->codec)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "image: expected a file of codec %u (%s) as in the index, found %s",
                     image->codec, pen__codec_name(image->codec), pen__codec_name(found));
}

/* Only what consists of segments or has an entry index can be present in part. */
static int check_partial(const PenEncoded *image, PenError *reterr)
{
    bool cut = image->codec == PEN_STORED_RAW || pen__region_is_tiled(image) ||
               pen__region_is_indexed(image);
    if (!image->partial || cut)
        return PEN_OK;
    return pen__fail(
        reterr, PEN_E_INVALID, where,
        "image: expected the entire %s because it has no segments, found only a part of it",
        pen__codec_name(image->codec));
}

static int read_tiled(const PenEncoded *image, const PenLimits *limits, PenJpegHeader *ret,
                      PenError *reterr)
{
    const PenJpegInfo *info = &ret->info;
    if (image->head_bytes > image->bytes)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "tiled jpeg: expected a header of %u bytes, found %zu bytes in total",
                         image->head_bytes, image->bytes);
    int r = pen__jpeg_tiled_header(image->data, image->head_bytes, limits, ret, reterr);
    if (r >= 0)
        r = check_size(image, info->width, info->height, reterr);
    if (r < 0)
        return r;
    if (info->head_bytes != image->head_bytes || info->scan_components != info->components ||
        !pen__tile_sampling_fits(info))
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "tiled jpeg: expected a header of %u bytes, one scan and sampling of 1 or "
                         "2, found %zu, %u of %u components and %u x %u",
                         image->head_bytes, info->head_bytes, info->scan_components,
                         info->components, info->h_samp[0], info->v_samp[0]);
    return PEN_OK;
}

/* The plan of a picture is made for the size of its video, which may change on the way. */
static int check_picture(const PenEncoded *image, const PenLimits *limits, PenError *reterr)
{
    const PenVideoPicture *p = image->picture;
    if (!p)
        return pen__fail(reterr, PEN_E_INVALID, where, "picture: expected its planes, found none");
    int r = pen__picture_check(p, reterr);
    if (r >= 0)
        r = pen__limits_check(limits, p->width, p->height, where, reterr);
    return r < 0 ? r : check_size(image, p->width, p->height, reterr);
}

/* Refuses what pen__image_decode refuses, with the same words. */
static int parse(const PenEncoded *image, const PenLimits *limits, PenImageHeader *ret,
                 PenError *reterr)
{
    switch (image->codec) {
    case PEN_STORED_JPEG:
        return pen__jpeg_header(image->data, image->bytes, limits, &ret->u.jpeg, reterr);
    case PEN_STORED_PNG:
        return pen__png_head(image->data, image->bytes, limits, &ret->u.png, reterr);
    default:
        return pen__image_probe(image->data, image->bytes, limits, &ret->u.webp, reterr);
    }
}

/* Its size and orientation. */
static PenImageInfo info_of(const PenImageHeader *h)
{
    const PenJpegInfo *jpeg = &h->u.jpeg.info;
    const PenPngHead *png = &h->u.png;
    switch (h->image->codec) {
    case PEN_STORED_JPEG:
        return (PenImageInfo){
            .width = jpeg->width, .height = jpeg->height, .orientation = jpeg->orientation};
    case PEN_STORED_PNG:
        return (PenImageInfo){
            .width = png->width, .height = png->height, .orientation = png->orientation};
    default:
        return h->u.webp;
    }
}

static int read_header(const PenEncoded *image, const PenLimits *limits, PenImageHeader *ret,
                       PenError *reterr)
{
    if (image->codec == PEN_STORED_RAW)
        return PEN_OK;
    if (image->codec == PEN_STORED_PICTURE)
        return check_picture(image, limits, reterr);
    if (pen__region_is_tiled(image))
        return read_tiled(image, limits, &ret->u.jpeg, reterr);
    int r = parse(image, limits, ret, reterr);
    if (r < 0)
        return r;
    PenImageInfo info = info_of(ret);
    /* Only YCbCr has an index. What says so may be before the part. */
    if (image->codec == PEN_STORED_JPEG)
        ret->u.jpeg.has_jfif |= image->partial;
    return check_size(image, info.width, info.height, reterr);
}

int pen__image_header(const PenEncoded *image, const PenLimits *limits, PenImageHeader *ret,
                      PenError *reterr)
{
    int r = check_codec(image, reterr);
    if (r >= 0)
        r = check_partial(image, reterr);
    ret->image = image;
    ret->no_scan = false;
    return r < 0 ? r : read_header(image, limits, ret, reterr);
}

int pen__file_header(PenEncoded *image, const PenLimits *limits, PenImageHeader *ret,
                     uint8_t *ret_orientation, PenError *reterr)
{
    image->codec = (uint8_t)pen__image_sniff(image->data, image->bytes);
    ret->image = image;
    ret->no_scan = false;
    int r = parse(image, limits, ret, reterr);
    if (r < 0)
        return r;
    PenImageInfo info = info_of(ret);
    image->width = info.width;
    image->height = info.height;
    *ret_orientation = info.orientation;
    return PEN_OK;
}
