/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of regions share: the crop of a whole image as it has to be, and the one found. */
#ifndef PEN_TESTS_LIB_REGION_HELP_H
#define PEN_TESTS_LIB_REGION_HELP_H

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "codec/region/region.h"
#include "tiled_jpeg.h"

/* Rows as a region gives them, put one behind the other. */
typedef struct Collected {
    PenBuf pixels;
    size_t row_bytes;
    uint32_t rows, calls;
    uint32_t fail_at; /* the call that fails, counting from 1; 0 = none */
} Collected;

/* An exact copy on the heap, so that the address sanitizer sees every byte too many. */
uint8_t *exact_copy(const void *data, size_t bytes);
int find_region(PenDecoder *d, const PenEncoded *image, PenBox box, int32_t colour, Collected *c,
                PenError *err);

/* The same of the image at 1 / 2^shrink of its size. */
int find_shrunk(PenDecoder *d, const PenEncoded *image, const PenRegion *region, Collected *c,
                PenError *err);

/* How many bytes differ from the crop of the whole image; all when the number of rows does. */
size_t count_different(const PenPixels *whole, PenBox box, int32_t colour, const Collected *c);

/* A tiled JPEG, all of it. */
static inline PenEncoded whole_tiled(const TiledJpeg *t)
{
    return (PenEncoded){.data = t->jpeg.data,
                        .bytes = t->jpeg.bytes,
                        .width = t->info.width,
                        .height = t->info.height,
                        .codec = PEN_STORED_JPEG,
                        .channels = t->info.components,
                        .tiled = 1,
                        .head_bytes = t->head_bytes,
                        .end_segment = t->n_segments,
                        .segment_bytes = t->segment_bytes};
}

/* The head and the segments that some rows need, `more` of them before and behind where there are
 * any; `out` holds their bytes, exactly. */
PenEncoded part_of(const TiledJpeg *t, PenBox box, uint32_t more, uint8_t **out);
PenEncoded part_of_shrunk(const TiledJpeg *t, PenBox box, uint32_t shrink, uint32_t more,
                          uint8_t **out);

/* What a reader reads of a complete JPEG with an entry index for a box: SOI, the tables, and bytes
 * of the scan; `out` holds them, exactly. */
PenEncoded part_of_indexed(const PenEncoded *image, const PenJpegInfo *info, PenBox box,
                           uint8_t **out);
PenEncoded shrunk_part_of_indexed(const PenEncoded *image, const PenJpegInfo *info, PenBox box,
                                  uint32_t shrink, uint8_t **out);

#endif
