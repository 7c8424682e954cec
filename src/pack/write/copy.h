/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of one pack on their way into another, as they are stored. */
#ifndef PEN_PACK_WRITE_COPY_H
#define PEN_PACK_WRITE_COPY_H

#include "pack/format/stored.h"
#include "pack/reader/reader.h"

typedef struct PenCopied { /* all that the samples point to */
    PenStoredSample *samples;
    uint32_t n;
    PenStoredValue *values;
    PenStoredImage *images;
    PenStoredVideo *videos;
    uint32_t *lengths; /* of segments */
    PenBuf data;       /* the block */
} PenCopied;

/* Reads and checks one block of the pack. */
int pen__copy_block(PenPack *p, uint64_t block, PenCopied *ret, PenError *reterr);
void pen__copied_free(PenCopied *c);

#endif
