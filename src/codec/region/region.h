/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a region of an image, handed over as they are decoded. What decodes them (libjpeg-turbo's
 * crop and skip calls, a whole decode, raw bytes) is not visible from outside. */
#ifndef PEN_CODEC_REGION_REGION_H
#define PEN_CODEC_REGION_REGION_H

#include "base/box.h"
#include "codec/codec.h"

/* An image's bytes as a pack gives them. All of the file; or, of one that is cut into segments (a
 * tiled JPEG, raw pixels row by row), its head and the segments [first_segment, end_segment): of a
 * tiled JPEG that is all there these are 0 and their number. */
typedef struct PenEncoded {
    uint8_t *data; /* PEN_SLACK readable bytes follow; decoding may change it */
    size_t bytes;
    uint32_t width, height; /* as the index says; another size in the file is PEN_E_DECODE */
    uint8_t codec;          /* PEN_STORED_* */
    uint8_t channels;       /* as stored */
    uint8_t tiled;          /* a JPEG cut into segments */
    uint8_t partial;        /* only some segments are there */
    uint32_t head_bytes;
    uint32_t first_segment, end_segment;
    const uint32_t *segment_bytes; /* of each of them; NULL for raw */
} PenEncoded;

enum { PEN_COLOUR_RGB = 3, PEN_COLOUR_GREY = 1, PEN_COLOUR_MASK = 0 /* one channel, as stored */ };

/* Working memory for one thread at a time; keeps libjpeg's state and its buffers for the next
 * image. */
typedef struct PenDecoder PenDecoder;

int pen__decoder_new(PenDecoder **ret, PenError *reterr);
void pen__decoder_free(PenDecoder **d); /* accepts NULL */

/* `n` rows of box->w pixels, the next ones from the top of the box. < 0 stops and is returned. */
typedef int (*PenRowsFn)(void *ctx, const uint8_t *rows, size_t stride, uint32_t n,
                         PenError *reterr);

typedef struct PenRegion {
    PenBox box;     /* in stored pixels, before the orientation */
    int32_t colour; /* PEN_COLOUR_* */
    const PenLimits *limits;
    PenRowsFn rows;
    void *ctx;
} PenRegion;

/* Gives exactly the rows of the box, bit for bit the crop of the whole image as pen__image_decode
 * gives it (grey made RGB by repetition, alpha dropped, RGB made grey as Pillow's "L" does), or an
 * error. */
int pen__region_decode(PenDecoder *d, const PenEncoded *image, const PenRegion *region,
                       PenError *reterr);

/* The most memory that the call above may hold at once beside the image's bytes, with what the
 * decoder keeps from images before; from the header of the file. */
int pen__region_memory(const PenEncoded *image, const PenRegion *region, uint64_t *ret_bytes,
                       PenError *reterr);

/* Segments of a tiled JPEG or of raw pixels that rows [y, y + h) need, with all that
 * pen__region_decode wants around them, as one range of all columns. `components`, `h_samp`,
 * `v_samp` as in its table. */
typedef struct PenCut {
    uint8_t codec, components, h_samp, v_samp;
    uint32_t width, height;
} PenCut;

void pen__region_segments(const PenCut *cut, uint32_t y, uint32_t h, uint32_t *ret_first,
                          uint32_t *ret_last);

#endif
