/* SPDX-License-Identifier: Apache-2.0 */
/* An image on its way through a decoder: the bytes that go in, and the rows that come out. */
#ifndef PEN_CODEC_ENCODED_H
#define PEN_CODEC_ENCODED_H

#include <stddef.h>
#include <stdint.h>

/* JPEGs can be decoded at 1/2, 1/4 and 1/8 of their size: at 1 / 2^shrink. */
enum { PEN_SHRINK_MOST = 3 };

/* A side of the image at that size. */
static inline uint32_t pen__shrunk_side(uint32_t side, uint32_t shrink)
{
    return (uint32_t)(((uint64_t)side + (1u << shrink) - 1) >> shrink);
}

/* An image's bytes as a pack stores them: the complete file; or, if it consists of segments (a
 * tiled JPEG, raw pixels row by row), its head and the segments [first_segment, end_segment). For a
 * complete tiled JPEG these are 0 and the number of its segments. */
typedef struct PenEncoded {
    uint8_t *data; /* only read; PEN_SLACK readable bytes follow what consists of segments */
    size_t bytes;
    uint32_t width, height; /* from the index; another size in the file is PEN_E_DECODE */
    uint8_t codec;          /* PEN_STORED_* */
    uint8_t channels;       /* as stored */
    uint8_t tiled;          /* a JPEG that consists of segments */
    uint8_t partial;        /* only some segments are present */
    uint32_t head_bytes;
    uint32_t first_segment, end_segment;
    const uint32_t *segment_bytes; /* of each of them; NULL for raw */
    /* Of a JPEG that is kept as it is and has an entry index, else NULL. If only a part of it is
     * present, that is the head, which may lack metadata, and then bytes of the scan, from
     * scan_offset on. */
    const struct PenJpegEntries *entries;
    uint64_t scan_offset;
    const struct PenVideoPicture
        *picture; /* of PEN_STORED_PICTURE, which has no `data`; else NULL */
} PenEncoded;

/* Decoded rows of a box: 1 (grey), 3 (RGB) or 4 (RGBA) channels. */
typedef struct PenRowSpan {
    const uint8_t *data; /* of the box's first column */
    size_t stride;
    uint32_t n, channels;
} PenRowSpan;

#endif
