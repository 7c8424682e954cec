/* SPDX-License-Identifier: Apache-2.0 */
/* The most memory that decoding a region takes, known before any of it is allocated. */
#include "codec/jpeg/markers.h"
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

static uint64_t jpeg_bytes(const PenImageHeader *header, const PenOwnBox *at)
{
    const PenEncoded *image = header->image;
    const PenJpegInfo *info = &header->u.jpeg.info;
    uint64_t max_h = 1, max_v = 1;
    for (size_t i = 0; i < info->components; i++) {
        max_h = PEN_MAX(max_h, info->h_samp[i]);
        max_v = PEN_MAX(max_v, info->v_samp[i]);
    }
    uint64_t bytes = row_bytes(info->width) + (image->tiled ? image->head_bytes : 0);
    bool is_stock = pen__region_is_stock(image), scans = is_stock && pen__region_scans(header);
    bytes += pen__own_memory(is_stock && !scans ? NULL : image, info, at);
    bytes += scans ? pen__entry_scan_memory(info, image->bytes) : 0;
    for (size_t i = 0; i < info->components; i++)
        bytes += plane_bytes(info, i, max_h, max_v);
    return bytes;
}

/* The image; the same as stored, if it has to be unpacked; zlib and libspng's own rows; what is
 * kept of other chunks. */
static uint64_t png_bytes(const PenImageHeader *header)
{
    const PenPngHead *h = &header->u.png;
    uint64_t pixels = (uint64_t)h->width * h->height;
    uint64_t bytes = pixels * (h->colour == PEN_PNG_GREY && !h->has_trns ? 1 + 2 : 4);
    bytes += row_bytes(h->width) + 6 * 8 * (uint64_t)h->width + 2 * header->image->bytes;
    return bytes + (h->has_packed ? PEN_PNG_CACHE_BYTES : 0);
}

/* The image, and as much again for libwebp as webp.c allows it. */
static uint64_t webp_bytes(const PenImageInfo *info)
{
    return (uint64_t)info->width * info->height * (info->channels + 4u) + row_bytes(info->width) +
           128 * (uint64_t)info->width + (256 << 10);
}

uint64_t pen__region_memory(const PenImageHeader *header, const PenBox *box, uint32_t shrink)
{
    PenOwnBox at = {*box, shrink};
    uint64_t kept = FIXED_BYTES + pen__own_memory(NULL, NULL, NULL);
    switch (header->image->codec) {
    case PEN_STORED_JPEG:
        return FIXED_BYTES + jpeg_bytes(header, &at);
    case PEN_STORED_PNG:
        return kept + png_bytes(header);
    case PEN_STORED_WEBP:
        return kept + webp_bytes(&header->u.webp);
    default:
        return kept + row_bytes(box->w);
    }
}
