/* SPDX-License-Identifier: Apache-2.0 */
/* Images that are large, or say they are. All replace what `out` holds, and abort when they
 * cannot. */
#ifndef PEN_TESTS_LIB_BIG_IMAGES_H
#define PEN_TESTS_LIB_BIG_IMAGES_H

#include <stdbool.h>

#include "base/mem.h"

typedef struct BigSpec {
    uint32_t width, height;
    int channels; /* 1, 3, 4 (CMYK) */
    bool subsample, progressive, arithmetic;
    uint32_t restart_interval;
} BigSpec;

/* Row by row, so that large ones take little memory. */
void big_jpeg(const BigSpec *spec, PenBuf *out);
/* RGB, of one colour: a small file. */
void big_png(uint32_t width, uint32_t height, PenBuf *out);
/* A grey progressive JPEG of this size and number of scans (at most 127), all of them empty: some
 * bytes for each, and all blocks to be looked at. */
void many_scans(uint32_t width, uint32_t height, uint32_t scans, PenBuf *out);
/* A PNG header that says this, with its checksum, and no more than a few bytes behind. */
void empty_png(uint32_t width, uint32_t height, uint8_t depth, uint8_t colour, bool interlaced,
               PenBuf *out);
/* Writes another size into the frame header of a JPEG. */
void resize_header(PenBuf *jpeg, uint32_t width, uint32_t height);
/* Offset of the first marker with this code. */
size_t jpeg_marker(const PenBuf *jpeg, uint8_t code);

#endif
