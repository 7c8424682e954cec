/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks of a PNG file, read without decoding it. */
#ifndef PEN_CODEC_PNG_CHUNKS_H
#define PEN_CODEC_PNG_CHUNKS_H

#include <stdbool.h>

#include "codec/codec.h"

enum {
    PEN_PNG_GREY = 0,
    PEN_PNG_RGB = 2,
    PEN_PNG_PALETTE = 3,
    PEN_PNG_GREY_ALPHA = 4,
    PEN_PNG_RGBA = 6
};

typedef struct PenPngHead {
    uint32_t width, height;
    uint8_t depth;       /* bits a sample: 1, 2, 4, 8, 16 */
    uint8_t colour;      /* PEN_PNG_* */
    bool has_trns;       /* some colour is transparent */
    bool has_packed;     /* text or a profile that a decoder unpacks */
    uint8_t orientation; /* of an eXIf chunk before the pixels */
} PenPngHead;

/* All up to the first IDAT; checked against the limits. */
int pen__png_head(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPngHead *ret,
                  PenError *reterr);

/* What a file may hold beside its pixels, unpacked. */
#define PEN_PNG_CACHE_BYTES ((size_t)16 << 20)

/* All chunks to IEND, with their checksums. */
int pen__png_check(const uint8_t *data, size_t bytes, const PenLimits *limits, PenError *reterr);

#endif
