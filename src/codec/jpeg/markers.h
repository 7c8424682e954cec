/* SPDX-License-Identifier: Apache-2.0 */
/* From marker to marker through a JPEG file, as libjpeg does it: bytes that are no marker are
 * passed over, and so are fill bytes and markers without meaning here. */
#ifndef PEN_CODEC_JPEG_MARKERS_H
#define PEN_CODEC_JPEG_MARKERS_H

#include <stdbool.h>

#include "codec/codec.h"

enum {
    PEN_MARKER_TEM = 0x01,
    PEN_MARKER_SOF0 = 0xC0,
    PEN_MARKER_SOF1 = 0xC1,
    PEN_MARKER_SOF2 = 0xC2,
    PEN_MARKER_DHT = 0xC4,
    PEN_MARKER_JPG = 0xC8,
    PEN_MARKER_SOF9 = 0xC9,
    PEN_MARKER_SOF10 = 0xCA,
    PEN_MARKER_DAC = 0xCC,
    PEN_MARKER_SOF15 = 0xCF,
    PEN_MARKER_RST0 = 0xD0,
    PEN_MARKER_RST7 = 0xD7,
    PEN_MARKER_SOI = 0xD8,
    PEN_MARKER_EOI = 0xD9,
    PEN_MARKER_SOS = 0xDA,
    PEN_MARKER_DQT = 0xDB,
    PEN_MARKER_DRI = 0xDD,
    PEN_MARKER_APP0 = 0xE0,
    PEN_MARKER_APP1 = 0xE1,
    PEN_MARKER_APP14 = 0xEE,
    PEN_MARKER_APP15 = 0xEF,
    PEN_MARKER_COM = 0xFE
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
    return code >= PEN_MARKER_SOF0 && code <= PEN_MARKER_SOF15 && code != PEN_MARKER_DHT &&
           code != PEN_MARKER_JPG && code != PEN_MARKER_DAC;
}

#endif
