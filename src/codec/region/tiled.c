/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a box of a tiled JPEG: by the own decoder, or what that does not take by libjpeg, which
 * is given the head, made to say that the image begins at some row of MCUs above the box, and the
 * segments from there on.
 *
 * Both need the same segments, those of the rows of the box and beside it, so that what has to be
 * read does not depend on who will decode it. libjpeg counts restart intervals from the first MCU
 * that it sees: it has to begin with a row that begins a segment, which may be up to seven rows
 * further up. What it is to see there is of no interest, so it gets the first segment that there is
 * again and again. */
#include <string.h>

#include "codec/jpeg/markers.h"
#include "codec/region/region_impl.h"

static const char where[] = "codec/jpeg";

/* What libjpeg needs for some rows. */
typedef struct Cut {
    PenTileGeometry g;
    uint32_t first, last; /* segments that are needed */
    uint32_t top_mcu;     /* row of MCUs to begin with: it begins a segment */
    uint32_t fillers;     /* segments from there up to the first */
} Cut;

/* Rows of the image at 1 / 2^shrink. */
static void cut_rows(const PenJpegInfo *info, uint32_t y, uint32_t h, uint32_t shrink, Cut *ret)
{
    PenTileGeometry g;
    pen__tile_geometry(info, &g);
    uint32_t mcu_height = g.mcu_height >> shrink;
    /* Upsampling of chroma that has half the rows looks at the row above and the row below, and
     * libjpeg does not give the last two rows of an MCU before it has the MCUs below. */
    bool half = g.mcu_height > DCTSIZE;
    uint32_t top = (y - (half && y)) / mcu_height;
    uint32_t bottom = PEN_MIN((y + h - 1 + (half ? 2 : 0)) / mcu_height, g.mcus_y - 1);
    uint32_t first = top * g.mcus_x / PEN_TILE_MCUS;
    while (top * g.mcus_x % PEN_TILE_MCUS)
        top--;
    uint32_t begin = top * g.mcus_x / PEN_TILE_MCUS;
    /* The last segment may be a short one, which cannot stand for others. */
    if (first > begin && first + 1 == g.n_segments)
        first--;
    *ret = (Cut){.g = g,
                 .first = first,
                 .last = ((bottom + 1) * g.mcus_x - 1) / PEN_TILE_MCUS,
                 .top_mcu = top,
                 .fillers = first - begin};
}

void pen__region_segments(const PenCut *cut, uint32_t y, uint32_t h, uint32_t *ret_first,
                          uint32_t *ret_last)
{
    Cut c = {.first = y, .last = y + h - 1};
    if (cut->codec == PEN_STORED_JPEG) {
        PenJpegInfo info = pen__cut_info(cut);
        cut_rows(&info, y, h, cut->shrink, &c);
    }
    *ret_first = c.first;
    *ret_last = c.last;
}

static int check_segments(const PenEncoded *image, const Cut *cut, PenError *reterr)
{
    if (image->end_segment > cut->g.n_segments)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "tiled jpeg: expected %u segments, found a table that ends at %u",
                         cut->g.n_segments, image->end_segment);
    if (cut->first >= image->first_segment && cut->last < image->end_segment)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, where,
                     "tiled jpeg: expected segments %u to %u for these rows, found %u to %u",
                     cut->first, cut->last, image->first_segment, image->end_segment);
}

/* Does segment `s`, which ends at `at`, end with its marker? So every segment that is used is one,
 * whatever the table says. */
static int check_end(const PenEncoded *image, const Cut *cut, uint32_t s, uint64_t at,
                     PenError *reterr)
{
    uint8_t code = pen__tile_closing_code(s, cut->g.n_segments);
    if (at > image->bytes)
        return pen__fail(reterr, PEN_E_DECODE, where,
                         "tiled jpeg: expected %llu bytes up to the end of segment %u, found %zu",
                         (unsigned long long)at, s, image->bytes);
    const uint8_t *p = image->data + at - 2;
    if (p[0] == 0xFF && p[1] == code)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_DECODE, where,
                     "tiled jpeg of %u x %u: segment %u of %u: expected marker ff %02x at its end, "
                     "found %02x %02x",
                     image->width, image->height, s, cut->g.n_segments, code, p[0], p[1]);
}

/* Segments that are there need no others in their place. */
static void use_what_is_there(const PenEncoded *image, Cut *cut)
{
    uint32_t more = PEN_MIN(cut->first - image->first_segment, cut->fillers);
    cut->first -= more;
    cut->fillers -= more;
}

/* Where segment cut->first begins in the data, and the last one ends. */
static int find_segments(const PenEncoded *image, const Cut *cut, size_t *ret_start,
                         size_t *ret_end, PenError *reterr)
{
    uint64_t at = image->head_bytes, start = at;
    for (uint32_t s = image->first_segment; s <= cut->last; s++) {
        at += image->segment_bytes[s - image->first_segment];
        if (s + 1 < cut->first)
            continue;
        int r = check_end(image, cut, s, at, reterr);
        if (r < 0)
            return r;
        start = s + 1 == cut->first ? at : start;
    }
    *ret_start = (size_t)start;
    *ret_end = (size_t)at;
    return PEN_OK;
}

/* A copy of the head with another height. */
static int copy_head(PenDecoder *d, const PenImageHeader *header, uint32_t height, PenError *reterr)
{
    const PenEncoded *image = header->image;
    int r = pen__region_reserve(&d->head, image->head_bytes, reterr);
    if (r < 0)
        return r;
    uint8_t *frame = d->head.data + header->u.jpeg.frame_offset;
    memcpy(d->head.data, image->data, image->head_bytes);
    frame[5] = (uint8_t)(height >> 8);
    frame[6] = (uint8_t)height;
    return PEN_OK;
}

/* The segments are what has to be read anyway; nothing in them is changed. */
static int make_input(PenDecoder *d, const PenImageHeader *header, const Cut *cut,
                      PenJpegInput *ret, PenError *reterr)
{
    const PenEncoded *image = header->image;
    size_t start, end;
    int r = find_segments(image, cut, &start, &end, reterr);
    if (r < 0)
        return r;
    uint32_t top = cut->top_mcu * cut->g.mcu_height;
    *ret = (PenJpegInput){.width = image->width, .height = image->height - top, .top = top};
    if (!cut->first) {
        ret->data = image->data;
        ret->bytes = end;
        return PEN_OK;
    }
    r = copy_head(d, header, ret->height, reterr);
    ret->head = d->head.data;
    ret->head_bytes = image->head_bytes;
    ret->data = image->data + start;
    ret->data_place = start;
    ret->bytes = end - start;
    ret->segment = cut->first - cut->fillers;
    ret->fillers = cut->fillers;
    ret->filler_bytes = image->segment_bytes[cut->first - image->first_segment];
    ret->filler_code = (uint8_t)(PEN_MARKER_RST0 + cut->first % 8);
    return r;
}

/* The segment in which libjpeg stopped. It knows where its last whole MCU ended, with the bits that
 * it had in stock; between two segments the marker it has come upon says whether it had passed
 * over the end of the first. */
static uint32_t failed_segment(const PenDecoder *d, const PenEncoded *image, const Cut *cut)
{
    uint64_t place = pen__turbo_place(&d->turbo), end = image->head_bytes;
    uint32_t s = image->first_segment, code = (uint32_t)d->turbo.d.unread_marker;
    uint32_t n = cut->g.n_segments;
    for (; s < cut->last; s++) {
        end += image->segment_bytes[s - image->first_segment];
        if (place < end || (place == end && code == pen__tile_closing_code(s, n)))
            break;
    }
    return s;
}

static void name_place(const PenDecoder *d, const PenEncoded *image, const Cut *cut,
                       PenError *reterr)
{
    if (!d->started)
        pen__error_prefix(reterr, "tiled jpeg of %u x %u: header", image->width, image->height);
    else
        pen__error_prefix(reterr, "tiled jpeg of %u x %u: segment %u of %u", image->width,
                          image->height, failed_segment(d, image, cut), cut->g.n_segments);
}

static int decode_by_turbo(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                           PenError *reterr)
{
    const PenEncoded *image = header->image;
    Cut cut;
    PenJpegInput input;
    cut_rows(&header->u.jpeg.info, region->box.y, region->box.h, region->shrink, &cut);
    use_what_is_there(image, &cut);
    int r = make_input(d, header, &cut, &input, reterr);
    if (r < 0)
        return r;
    r = pen__region_turbo(d, &input, region, reterr);
    if (r < 0 && d->turbo.status == PEN_E_DECODE) /* of libjpeg's, not of who takes the rows */
        name_place(d, image, &cut, reterr);
    return r;
}

int pen__region_tiled(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                      PenError *reterr)
{
    const PenJpegInfo *info = &header->u.jpeg.info;
    Cut cut;
    uint32_t given = 0;
    int r = pen__region_check_mask(region, info->components, reterr);
    if (r < 0)
        return r;
    cut_rows(info, region->box.y, region->box.h, region->shrink, &cut);
    r = check_segments(header->image, &cut, reterr);
    if (r >= 0)
        r = pen__region_own(d, header, region, &given, reterr);
    if (r != PEN_END)
        return r;
    PenRegion rest = *region;
    rest.box.y += given;
    rest.box.h -= given;
    return decode_by_turbo(d, header, &rest, reterr);
}
