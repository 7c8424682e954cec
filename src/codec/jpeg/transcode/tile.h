/* SPDX-License-Identifier: Apache-2.0 */
/* Makes tiled JPEG files (codec/jpeg/tiled.h describes them), and baseline files without tiles. */
#ifndef PEN_CODEC_JPEG_TRANSCODE_TILE_H
#define PEN_CODEC_JPEG_TRANSCODE_TILE_H

#include "codec/jpeg/tiled.h"

/* Lossless transcode. PEN_OK: `ret` is filled, its pixels equal the source's bit for bit.
 * PEN_END: a good file that cannot be tiled exactly; *ret_why says why in a word or two
 * ("arithmetic", "12 bit", "CMYK", "sampling", "incomplete progressive", ...).
 * < 0: broken (truncated, damaged) or over a limit. Reads every coefficient, so damage is found. */
int pen__jpeg_tile(const uint8_t *data, size_t bytes, const PenLimits *limits, PenTiledJpeg *ret,
                   const char **ret_why, PenError *reterr);

/* The same for a baseline JPEG of one scan, without restart markers. It has JFIF, but no other
 * metadata of the source. Replaces what `ret` holds; after a failure that is undefined. */
int pen__jpeg_baseline(const uint8_t *data, size_t bytes, const PenLimits *limits, PenBuf *ret,
                       const char **ret_why, PenError *reterr);

/* Encodes 1 or 3 channels as a tiled JPEG (3 channels as 4:2:0). */
int pen__jpeg_encode(const PenPixels *pixels, int quality, const PenLimits *limits,
                     PenTiledJpeg *ret, PenError *reterr);

#endif
