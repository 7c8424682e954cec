/* SPDX-License-Identifier: Apache-2.0 */
/* What the region decoders share. One more of them is a function of the type PenRegionFn and a line
 * in region.c's choose(). */
#ifndef PEN_CODEC_REGION_REGION_IMPL_H
#define PEN_CODEC_REGION_REGION_IMPL_H

#include "codec/jpeg/decoder/decoder.h"
#include "codec/jpeg/decoder/scan.h"
#include "codec/jpeg/turbo/session.h"
#include "codec/region/region.h"

enum {
    PEN_REGION_ROWS = 16, /* handed over at once when they are made one by one */
    /* Buffers of rows larger than this are not kept for the next image. */
    PEN_REGION_KEEP_BYTES = 128 << 10,
    /* In a file without an index that has fewer bytes it does not pay to find entries. */
    PEN_REGION_SCAN_BYTES = 8 << 10
};

/* A JPEG file as libjpeg is to see it: all of `data`; or, when `head` is set, that, then the first
 * segment of `data` as often as `fillers` says, and then `data`, segments of a tiled file whose
 * rows above `top` are left out. */
typedef struct PenJpegInput {
    const uint8_t *head, *data;
    size_t head_bytes, bytes;
    uint32_t width, height; /* expected, of what libjpeg sees */
    uint32_t top;           /* row of the image that it sees as its first */
    uint32_t segment;       /* number of the segment that it sees as its first */
    size_t data_place;      /* of `data` in what the caller gave, for messages */
    uint32_t fillers, filler_bytes;
    uint8_t filler_code; /* marker at its end */
    bool filling;
} PenJpegInput;

struct PenDecoder {
    PenTurbo turbo; /* first: libjpeg's client_data, and the PenTurbo of a body, point to it */
    struct jpeg_source_mgr source;
    PenJpegInput input;
    const PenRegion *region;
    uint32_t images; /* decoded by this decompressor */
    bool started;    /* libjpeg has read the head */
    PenBuf rows, converted, head;
    PenOwn *own;        /* NULL until it is needed */
    PenEntryScan *scan; /* the same */
    bool scans_all;     /* files of any size: for tests */
};

typedef int (*PenRegionFn)(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                           PenError *reterr);

int pen__region_jpeg(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                     PenError *reterr);
int pen__region_stock(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                      PenError *reterr);
int pen__region_tiled(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                      PenError *reterr);
int pen__region_indexed(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                        PenError *reterr);
int pen__region_raw(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                    PenError *reterr);
int pen__region_picture(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                        PenError *reterr);
int pen__region_whole(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                      PenError *reterr);

/* Is it a tiled JPEG whose segments are known? Others are files like any other. */
static inline bool pen__region_is_tiled(const PenEncoded *image)
{
    return image->codec == PEN_STORED_JPEG && image->tiled && image->segment_bytes;
}

/* Is it a JPEG with an entry index? */
static inline bool pen__region_is_indexed(const PenEncoded *image)
{
    return image->codec == PEN_STORED_JPEG && image->entries;
}

/* Is it a JPEG of which nothing is known but its bytes? */
static inline bool pen__region_is_stock(const PenEncoded *image)
{
    return !pen__region_is_tiled(image) && !pen__region_is_indexed(image);
}

/* Are its entries looked for, in a JPEG of which nothing else is known? */
bool pen__region_scans(const PenImageHeader *header);

static inline PenJpegInfo pen__cut_info(const PenCut *cut)
{
    return (PenJpegInfo){.width = cut->width,
                         .height = cut->height,
                         .components = cut->components,
                         .h_samp = {cut->h_samp, 1, 1},
                         .v_samp = {cut->v_samp, 1, 1}};
}

/* Decodes the region with the own decoder. PEN_END: *ret_given rows are delivered, and the others
 * are left to libjpeg. */
int pen__region_own(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                    uint32_t *ret_given, PenError *reterr);

/* Decodes the region of what `input` describes with libjpeg. */
int pen__region_turbo(PenDecoder *d, const PenJpegInput *input, const PenRegion *region,
                      PenError *reterr);

/* Makes libjpeg read d->input. */
void pen__region_source(PenDecoder *d);

/* Delivers rows in the colour that the region asks for: without a copy if it is theirs. */
int pen__rows_give(PenDecoder *d, const PenRegion *region, const PenRowSpan *span,
                   PenError *reterr);

/* PEN_E_DECODE unless a mask has one channel. */
int pen__region_check_mask(const PenRegion *region, uint32_t channels, PenError *reterr);

/* Memory for `bytes` and PEN_SLACK more; the previous content is lost. */
int pen__region_reserve(PenBuf *buf, size_t bytes, PenError *reterr);

#endif
