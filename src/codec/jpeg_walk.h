/* SPDX-License-Identifier: Apache-2.0 */
/* From marker to marker through a JPEG file, as libjpeg does it: bytes that are no marker are
 * passed over, and so are fill bytes and markers without meaning here. */
#ifndef PEN_CODEC_JPEG_WALK_H
#define PEN_CODEC_JPEG_WALK_H

#include <stdbool.h>

#include "codec/codec.h"

enum {
    JPEG_TEM = 0x01,
    JPEG_SOF0 = 0xC0,
    JPEG_SOF1 = 0xC1,
    JPEG_SOF2 = 0xC2,
    JPEG_DHT = 0xC4,
    JPEG_JPG = 0xC8,
    JPEG_SOF9 = 0xC9,
    JPEG_SOF10 = 0xCA,
    JPEG_DAC = 0xCC,
    JPEG_SOF15 = 0xCF,
    JPEG_RST0 = 0xD0,
    JPEG_RST7 = 0xD7,
    JPEG_SOI = 0xD8,
    JPEG_EOI = 0xD9,
    JPEG_SOS = 0xDA,
    JPEG_DQT = 0xDB,
    JPEG_DRI = 0xDD,
    JPEG_APP0 = 0xE0,
    JPEG_APP1 = 0xE1,
    JPEG_APP14 = 0xEE,
    JPEG_APP15 = 0xEF,
    JPEG_COM = 0xFE
};

typedef struct PenJpegWalk {
    const uint8_t *data;
    size_t bytes, at;
} PenJpegWalk;

typedef struct PenJpegMarker {
    uint8_t code;
    size_t offset;       /* of its 0xFF */
    const uint8_t *body; /* what follows the length */
    uint32_t body_bytes;
} PenJpegMarker;

/* PEN_E_DECODE unless the file starts with SOI. */
int pen__jpeg_walk_start(PenJpegWalk *walk, const uint8_t *data, size_t bytes, PenError *reterr);

/* The next marker, whole; PEN_E_DECODE, with the offset, when the file ends first. */
int pen__jpeg_walk_next(PenJpegWalk *walk, PenJpegMarker *ret, PenError *reterr);

/* Behind SOS: over the entropy-coded data to the next marker but RSTn, or to the end of the file.
 */
void pen__jpeg_walk_scan(PenJpegWalk *walk);

static inline bool pen__jpeg_is_sof(uint8_t code)
{
    return code >= JPEG_SOF0 && code <= JPEG_SOF15 && code != JPEG_DHT && code != JPEG_JPG &&
           code != JPEG_DAC;
}

#endif
