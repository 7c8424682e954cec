/* SPDX-License-Identifier: Apache-2.0 */
/* Tiled JPEG files, which earlier builds wrote, and where their segments are.
 * A tiled JPEG is a plain baseline JPEG with optimal Huffman tables and a restart marker every
 * PEN_TILE_MCUS MCUs, counted through the entire image. It consists of a head (everything up to and
 * with the SOS header) and segments. A segment's length counts its entropy-coded bytes and the two
 * bytes of the marker that ends it (RSTn, or EOI for the last), so head + sum(lengths) = the file.
 */
#ifndef PEN_CODEC_JPEG_TILED_H
#define PEN_CODEC_JPEG_TILED_H

#include "codec/jpeg/header.h"

#define PEN_TILE_MCUS 8

typedef struct PenTileGeometry {
    uint32_t mcu_width, mcu_height; /* in pixels */
    uint32_t mcus_x, mcus_y;
    uint32_t n_segments;
} PenTileGeometry;

void pen__tile_geometry(const PenJpegInfo *info, PenTileGeometry *ret);

/* Is the sampling one of those that tiled files have: grey, or three components with
 * chroma 1 x 1 and luma at most 2 x 2? */
bool pen__tile_sampling_fits(const PenJpegInfo *info);

/* The code of the marker that ends a segment. */
uint8_t pen__tile_closing_code(uint32_t segment, uint32_t n_segments);

/* The header of a file claimed to be tiled; PEN_E_DECODE if it cannot be one. */
int pen__jpeg_tiled_header(const uint8_t *data, size_t bytes, const PenLimits *limits,
                           PenJpegHeader *ret, PenError *reterr);

/* Lengths of the segments of a file claimed to be tiled, without decoding it; fails with
 * PEN_E_DECODE if the restart interval or the number of segments is not that of a tiled JPEG.
 * `ret` (n of them) is the caller's to pen__free. */
int pen__jpeg_segments(const uint8_t *data, size_t bytes, const PenLimits *limits,
                       uint32_t *ret_head_bytes, uint32_t **ret, uint32_t *ret_n, PenError *reterr);

#endif
