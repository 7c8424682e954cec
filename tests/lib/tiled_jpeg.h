/* SPDX-License-Identifier: Apache-2.0 */
/* Tiled JPEG files, as earlier builds wrote them. The library reads them but no longer writes them,
 * so tests make them with libjpeg. */
#ifndef PEN_TESTS_LIB_TILED_JPEG_H
#define PEN_TESTS_LIB_TILED_JPEG_H

#include "codec/jpeg/tiled.h"

typedef struct TiledJpeg {
    PenBuf jpeg;
    uint32_t head_bytes;
    uint32_t n_segments;
    uint32_t *segment_bytes; /* n_segments of them */
    PenJpegInfo info;        /* of the tiled file, but with the source's orientation */
} TiledJpeg;

/* What libjpeg writes for these coefficients with optimal tables and restart markers (0 = none);
 * replaces what `out` holds. Ends the process when it fails. */
void reference_transcode(const uint8_t *data, size_t bytes, uint32_t restart_interval, PenBuf *out);

/* Zero-initialised is empty and may be filled again and again. Returns what pen__jpeg_baseline
 * does: PEN_END for a file that cannot be tiled (CMYK, RGB, 12 bit, odd sampling). */
int tile_jpeg(const uint8_t *data, size_t bytes, TiledJpeg *ret);
void tiled_free(TiledJpeg *t);

#endif
