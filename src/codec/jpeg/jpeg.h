/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG beyond the common calls of codec.h: headers, tiles, quality, metadata.
 * A tiled JPEG is a plain baseline JPEG with optimal Huffman tables and a restart marker every
 * PEN_TILE_MCUS MCUs counted straight through the image. It is cut into a head (all up to and with
 * the SOS header) and segments; a segment's length counts its entropy bytes and the two bytes of
 * the marker that ends it (RSTn, or EOI for the last), so head + sum(lengths) = the whole file. */
#ifndef PEN_CODEC_JPEG_JPEG_H
#define PEN_CODEC_JPEG_JPEG_H

#include "codec/codec.h"

#define PEN_TILE_MCUS 8

typedef struct PenJpegInfo {
    uint32_t width, height;
    uint8_t components; /* 1, 3 or 4 */
    uint8_t precision;  /* 8 or 12 */
    uint8_t sof;        /* the SOF marker's low byte: 0xC0, 0xC1, 0xC2, 0xC9, ... */
    uint8_t h_samp[4], v_samp[4];
    uint8_t scan_components;   /* of the first scan */
    uint8_t quality;           /* 1-100, estimated from the quantisation tables; 0 = cannot say */
    uint8_t orientation;       /* 1-8 */
    uint8_t adobe_transform;   /* 0, 1, 2; 0xFF = no Adobe marker */
    uint32_t restart_interval; /* in MCUs, 0 = none; of the first scan */
    size_t head_bytes;         /* up to and with the first SOS header */
} PenJpegInfo;

typedef struct PenTiledJpeg {
    PenBuf jpeg;
    uint32_t head_bytes;
    uint32_t n_segments;
    uint32_t *segment_bytes; /* n_segments of them */
    PenJpegInfo info;        /* of the tiled file, but with the source's orientation */

    PenBuf segment_buf, tokens, entropy; /* scratch, kept for the next image */
} PenTiledJpeg;

/* Zero-initialised is empty and may be filled again and again: buffers are used again. After a
 * failure its content is undefined, but it may still be filled or freed. */
void pen__tiled_free(PenTiledJpeg *t);

int pen__jpeg_info(const uint8_t *data, size_t bytes, const PenLimits *limits, PenJpegInfo *ret,
                   PenError *reterr);

/* Walks every marker and scan to EOI without decoding. */
int pen__jpeg_check(const uint8_t *data, size_t bytes, const PenLimits *limits, PenError *reterr);

/* Lossless transcode. PEN_OK: `ret` is filled, its pixels equal the source's bit for bit.
 * PEN_END: a good file that cannot be tiled exactly; *ret_why says why in a word or two
 * ("arithmetic", "12 bit", "cmyk", "sampling", "incomplete progressive", ...).
 * < 0: broken (truncated, damaged) or over a limit. Reads every coefficient, so damage is found. */
int pen__jpeg_tile(const uint8_t *data, size_t bytes, const PenLimits *limits, PenTiledJpeg *ret,
                   const char **ret_why, PenError *reterr);

/* Encodes 1 or 3 channels as a tiled JPEG (3 channels as 4:2:0). */
int pen__jpeg_encode(const PenPixels *pixels, int quality, const PenLimits *limits,
                     PenTiledJpeg *ret, PenError *reterr);

/* Lengths of the segments of a file claimed to be tiled as above, without decoding it; fails with
 * PEN_E_DECODE when the restart interval or the number of segments is not that of a tiled JPEG.
 * `ret` (n of them) is the caller's to pen__free. */
int pen__jpeg_segments(const uint8_t *data, size_t bytes, const PenLimits *limits,
                       uint32_t *ret_head_bytes, uint32_t **ret, uint32_t *ret_n, PenError *reterr);

/* The header of a file claimed to be tiled; PEN_E_DECODE when it cannot be one. */
int pen__jpeg_tiled_info(const uint8_t *data, size_t bytes, const PenLimits *limits,
                         PenJpegInfo *ret, PenError *reterr);

/* The MCU geometry that a region decoder and a reader of rows need. */
typedef struct PenTileGeometry {
    uint32_t mcu_width, mcu_height; /* in pixels */
    uint32_t mcus_x, mcus_y;
    uint32_t n_segments;
} PenTileGeometry;

void pen__tile_geometry(const PenJpegInfo *info, PenTileGeometry *ret);

/* APPn and COM segments before the first scan but JFIF and Adobe, whole ("FF E1 length data"), one
 * after another: EXIF, ICC, XMP. Appended to `out`. */
int pen__jpeg_metadata(const uint8_t *data, size_t bytes, PenBuf *out, PenError *reterr);

/* The reverse: the JPEG with those segments put behind SOI and JFIF. Appended to `out`. */
int pen__jpeg_with_metadata(const uint8_t *data, size_t bytes, const uint8_t *metadata,
                            size_t metadata_bytes, PenBuf *out, PenError *reterr);

/* EXIF orientation of a TIFF block, with or without "Exif\0\0" before it; 1 when absent or
 * damaged. */
int pen__exif_orientation(const uint8_t *exif, size_t bytes);

#endif
