/* SPDX-License-Identifier: Apache-2.0 */
/* The ignorable sections at the end of a block. */
#ifndef PEN_PACK_READER_SECTIONS_H
#define PEN_PACK_READER_SECTIONS_H

#include "pack/reader/reader.h"

typedef struct PenSection {
    uint32_t number;
    char type[5];
    uint32_t sample, field, frame;
    const uint8_t *data;
    uint64_t bytes;
} PenSection;

/* Calls `each` for every section in `data` (the bytes of the block from sections_offset to its
 * end), each checked; stops when it returns other than PEN_OK and returns that. */
int pen__sections_walk(const PenBlock *b, const uint8_t *data,
                       int (*each)(void *ctx, const PenSection *section), void *ctx,
                       PenError *reterr);

#endif
