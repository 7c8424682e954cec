/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of upright images, and of the first frames of clips, without reading any of them. */
#ifndef PEN_LOAD_FIELDS_STORED_SIZES_H
#define PEN_LOAD_FIELDS_STORED_SIZES_H

#include <penstock/pack.h>

typedef struct PenSampleRange {
    uint64_t first, n;
} PenSampleRange;

/* Calls `each` for sample `range.first + i` of the pack, for i from 0 on. Width and height are 0 if
 * it has no image. */
int pen__stored_sizes(PenPack *pack, uint32_t field, PenSampleRange range,
                      void (*each)(void *ctx, uint64_t i, uint32_t width, uint32_t height),
                      void *ctx, PenError *reterr);

#endif
