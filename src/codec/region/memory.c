/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a region takes at most, known before any of it is. */
#include "codec/jpeg/decoder/decoder.h"
#include "codec/jpeg/markers.h"
#include "codec/png_chunks.h"
#include "codec/region/region_impl.h"

/* What depends on no size: the decoder with what it keeps, and libjpeg's tables and first pools. */
#define FIXED_BYTES (3 * (uint64_t)PEN_REGION_KEEP_BYTES + PEN_TURBO_KEEP_BYTES + (128u << 10))

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* The buffers of rows, before they are dropped again: at most 4 channels in, 3 out. */
static uint64_t row_bytes(uint32_t width)
{
    return (uint64_t)PEN_REGION_ROWS * width * (4 + 3);
}

/* Every component's rows of blocks, with those above and below, its upsampled rows, and, when there
 * is more than one scan, all its coefficients. Factors that do not divide are rounded up. */
static uint64_t plane_bytes(const PenJpegInfo *info, size_t i, uint64_t max_h, uint64_t max_v)
{
    uint64_t h = info->h_samp[i], v = info->v_samp[i];
    uint64_t mcus_x = ceil_div(info->width, DCTSIZE * max_h);
    uint64_t mcus_y = ceil_div(info->height, DCTSIZE * max_v);
    uint64_t bytes = (DCTSIZE + 2) * v * (mcus_x * h * DCTSIZE + 128);
    bytes += max_v * (mcus_x * max_h * DCTSIZE + 128);
    if (info->sof == PEN_MARKER_SOF2 || info->sof == PEN_MARKER_SOF10 ||
        info->scan_components != info->components)
        bytes += mcus_y * v * (mcus_x * h * sizeof(JBLOCK) + 2 * sizeof(void *));
    return bytes;
}

static int jpeg_bytes(const PenEncoded *image, const PenRegion *region, uint64_t *ret,
                      PenError *reterr)
{
    PenJpegInfo info;
    uint64_t max_h = 1, max_v = 1;
    int r = pen__jpeg_info(image->data, image->bytes, region->limits, &info, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < info.components; i++) {
        max_h = PEN_MAX(max_h, info.h_samp[i]);
        max_v = PEN_MAX(max_v, info.v_samp[i]);
    }
    *ret = row_bytes(info.width) + (image->tiled ? image->head_bytes : 0);
    *ret += pen__own_memory(image, &info, &region->box);
    for (size_t i = 0; i < info.components; i++)
        *ret += plane_bytes(&info, i, max_h, max_v);
    return PEN_OK;
}

/* The image; the same as stored, when it has to be unpacked; zlib and libspng's own rows; what is
 * kept of other chunks. */
static int png_bytes(const PenEncoded *image, const PenRegion *region, uint64_t *ret,
                     PenError *reterr)
{
    PenPngHead h;
    int r = pen__png_head(image->data, image->bytes, region->limits, &h, reterr);
    if (r < 0)
        return r;
    uint64_t pixels = (uint64_t)h.width * h.height;
    *ret = pixels * (h.colour == PEN_PNG_GREY && !h.has_trns ? 1 + 2 : 4);
    *ret += row_bytes(h.width) + 6 * 8 * (uint64_t)h.width + 2 * image->bytes;
    if (h.has_packed)
        *ret += PEN_PNG_CACHE_BYTES;
    return PEN_OK;
}

/* The image, and as much again for libwebp as webp.c allows it. */
static int webp_bytes(const PenEncoded *image, const PenRegion *region, uint64_t *ret,
                      PenError *reterr)
{
    PenImageInfo info;
    int r = pen__image_probe(image->data, image->bytes, region->limits, &info, reterr);
    if (r < 0)
        return r;
    *ret = (uint64_t)info.width * info.height * (info.channels + 4u) + row_bytes(info.width) +
           128 * (uint64_t)info.width + (256 << 10);
    return PEN_OK;
}

int pen__region_memory(const PenEncoded *image, const PenRegion *region, uint64_t *ret_bytes,
                       PenError *reterr)
{
    uint64_t bytes = 0;
    int r = PEN_OK;
    switch (image->codec) {
    case PEN_STORED_JPEG:
        r = jpeg_bytes(image, region, &bytes, reterr);
        break;
    case PEN_STORED_PNG:
        r = png_bytes(image, region, &bytes, reterr);
        break;
    case PEN_STORED_WEBP:
        r = webp_bytes(image, region, &bytes, reterr);
        break;
    default:
        bytes = row_bytes(region->box.w);
        break;
    }
    if (image->codec != PEN_STORED_JPEG)
        bytes += pen__own_memory(NULL, NULL, NULL);
    if (r >= 0)
        *ret_bytes = FIXED_BYTES + bytes;
    return r;
}
