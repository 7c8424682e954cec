/* SPDX-License-Identifier: Apache-2.0 */
/* What the region decoders share. One more of them is a function of the type PenRegionFn and a line
 * in region.c's choose(). */
#ifndef PEN_CODEC_REGION_REGION_IMPL_H
#define PEN_CODEC_REGION_REGION_IMPL_H

#include "codec/jpeg/jpeg.h"
#include "codec/jpeg/turbo/session.h"
#include "codec/region/region.h"

enum {
    PEN_REGION_ROWS = 16, /* handed over at once when they are made one by one */
    /* Buffers of rows larger than this are not kept for the next image. */
    PEN_REGION_KEEP_BYTES = 128 << 10
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
    struct PenOwn *own; /* NULL until it is needed */
};

typedef int (*PenRegionFn)(PenDecoder *d, const PenEncoded *image, const PenRegion *region,
                           PenError *reterr);

int pen__region_jpeg(PenDecoder *d, const PenEncoded *image, const PenRegion *region,
                     PenError *reterr);
int pen__region_tiled(PenDecoder *d, const PenEncoded *image, const PenRegion *region,
                      PenError *reterr);
int pen__region_raw(PenDecoder *d, const PenEncoded *image, const PenRegion *region,
                    PenError *reterr);
int pen__region_whole(PenDecoder *d, const PenEncoded *image, const PenRegion *region,
                      PenError *reterr);

/* Are the components of the only forms that tiled files are written in? */
bool pen__region_sampling_fits(const PenJpegInfo *info);

/* Decodes the region of what `input` describes with libjpeg. */
int pen__region_turbo(PenDecoder *d, const PenJpegInput *input, const PenRegion *region,
                      PenError *reterr);

/* Makes libjpeg read d->input. */
void pen__region_source(PenDecoder *d);

/* Rows of the box as a decoder has them: 1 (grey), 3 (RGB) or 4 (RGBA) channels. */
typedef struct PenRowSpan {
    const uint8_t *data; /* of the box's first column */
    size_t stride;
    uint32_t n, channels;
} PenRowSpan;

/* Hands them over in the colour asked for: without a copy when it is theirs. */
int pen__rows_give(PenDecoder *d, const PenRegion *region, const PenRowSpan *span,
                   PenError *reterr);

/* PEN_E_DECODE unless the file has the size that the index says, and one channel for a mask. */
int pen__region_check_size(const PenEncoded *image, uint32_t width, uint32_t height,
                           PenError *reterr);
int pen__region_check_mask(const PenRegion *region, uint32_t channels, PenError *reterr);

/* Room for `bytes` and PEN_SLACK more; what was in it is lost. */
int pen__region_reserve(PenBuf *buf, size_t bytes, PenError *reterr);

#endif
