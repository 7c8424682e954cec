/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a region of an image, delivered as they are decoded. What decodes them (our own decoder,
 * libjpeg-turbo's crop and skip calls, a decode of the entire image) is not visible from outside.
 */
#ifndef PEN_CODEC_REGION_REGION_H
#define PEN_CODEC_REGION_REGION_H

#include <penstock/decode.h>

#include "codec/codec.h"
#include "codec/encoded.h"
#include "codec/jpeg/entries.h"
#include "codec/jpeg/header.h"
#include "codec/png_chunks.h"

/* An image and what its header says: parsed and checked once for everything that follows. Valid as
 * long as the image and its bytes are. */
typedef struct PenImageHeader {
    const PenEncoded *image;
    union {
        PenJpegHeader jpeg;
        PenPngHead png;
        PenImageInfo webp;
    } u;          /* by image->codec; nothing for raw pixels and pictures */
    bool no_scan; /* set by those who lack the memory that finding entries takes */
} PenImageHeader;

/* PEN_E_DECODE if the file is damaged, or is not what the index says. */
int pen__image_header(const PenEncoded *image, const PenLimits *limits, PenImageHeader *ret,
                      PenError *reterr);

/* The same for a complete file that no index describes: `image` has its bytes, and gets its codec
 * and size. */
int pen__file_header(PenEncoded *image, const PenLimits *limits, PenImageHeader *ret,
                     uint8_t *ret_orientation, PenError *reterr);

enum { PEN_COLOUR_RGB = 3, PEN_COLOUR_GREY = 1, PEN_COLOUR_MASK = 0 /* one channel, as stored */ };

/* Working memory for one thread at a time; keeps libjpeg's state and its buffers for the next
 * image. */
typedef struct PenDecoder PenDecoder;

int pen__decoder_new(PenDecoder **ret, PenError *reterr);
void pen__decoder_free(PenDecoder **d); /* accepts NULL */

/* For tests and benchmarks: decodes JPEGs with the kernels of one tier ("c", "avx2", ...), also
 * those without an index that are too small to be worth it, or with libjpeg ("turbo").
 * PEN_E_UNSUPPORTED if this CPU does not have them. */
int pen__decoder_use(PenDecoder *d, const char *tier, PenError *reterr);

/* `n` rows of box->w pixels, the next ones from the top of the box. < 0 stops and is returned. */
typedef int (*PenRowsFn)(void *ctx, const uint8_t *rows, size_t stride, uint32_t n,
                         PenError *reterr);

typedef struct PenRegion {
    PenBox box;      /* in stored pixels, before the orientation */
    int32_t colour;  /* PEN_COLOUR_* */
    uint32_t shrink; /* 1 to 3: the box is one of the image at 1/2, 1/4 or 1/8 of its size, rounded
                      * up, as libjpeg decodes it with scale_denom; JPEG only. 0: at its size */
    const PenLimits *limits;
    PenRowsFn rows;
    void *ctx;
} PenRegion;

/* Delivers exactly the rows of the box, bit for bit the crop of the entire image as
 * pen__image_decode returns it (grey made RGB by repetition, alpha dropped, RGB made grey as
 * Pillow's "L" does), or an error.
 * PEN_END: a part of a JPEG with an entry index is not enough. Rows may have been delivered; decode
 * the complete file from the first row. */
int pen__region_rows(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                     PenError *reterr);

/* The same with the header parsed here, for callers that need it for nothing else. */
int pen__region_decode(PenDecoder *d, const PenEncoded *image, const PenRegion *region,
                       PenError *reterr);

/* The most memory that pen__region_rows may hold at once beside the image's bytes, with what the
 * decoder keeps from earlier images. */
uint64_t pen__region_memory(const PenImageHeader *header, const PenBox *box, uint32_t shrink);

/* An image of which a part is to be read; `components`, `h_samp`, `v_samp` as in its table. */
typedef struct PenCut {
    uint8_t codec, components, h_samp, v_samp;
    uint32_t width, height;
    uint32_t shrink; /* of the region */
} PenCut;

/* Segments of a tiled JPEG or of raw pixels that rows [y, y + h) of the region need, with all that
 * pen__region_rows needs around them, as one range of all columns. */
void pen__region_segments(const PenCut *cut, uint32_t y, uint32_t h, uint32_t *ret_first,
                          uint32_t *ret_last);

/* Is a part of a JPEG with an entry index of any use? Not if libjpeg decodes everything. */
bool pen__region_takes_parts(void);
/* Bytes [*ret_from, *ret_end) of its scan that a box needs. */
void pen__region_scan(const PenCut *cut, const PenJpegEntries *entries, const PenBox *box,
                      uint64_t *ret_from, uint64_t *ret_end);

#endif
