/* SPDX-License-Identifier: Apache-2.0 */
/* Segment tables: payloads cut so that some of their bytes can be fetched and checked without the
 * rest. */
#ifndef PEN_PACK_FORMAT_SEGMENTS_H
#define PEN_PACK_FORMAT_SEGMENTS_H

#include "base/mem.h"
#include "pack/format/place.h"
#include "pack/format/stored.h"

/* A table as it lies in a block's index; checked by pen__segments_read. */
typedef struct PenSegmentTable {
    uint32_t head_bytes, n_segments, n_runs;
    uint16_t unit;
    uint8_t length_bytes, components, h_samp, v_samp;
    uint64_t equal_bytes; /* of every segment, when no lengths are listed */
    const uint8_t *runs;  /* checksums, u32 each */
    const uint8_t *lengths;
} PenSegmentTable;

/* Appends the table of `image` with the checksums of its runs; `place` is that of the image. */
int pen__segments_write(const PenSegments *segments, const uint8_t *data, uint64_t bytes,
                        PenPlace place, PenBuf *out);

/* Parses a table that is to describe `payload_bytes` bytes, and takes all of `bytes`. Returns NULL,
 * or what is wrong with it. */
const char *pen__segments_read(PenSegmentTable *ret, const uint8_t *data, uint64_t bytes,
                               uint64_t payload_bytes);

uint64_t pen__segment_bytes(const PenSegmentTable *t, uint32_t segment);

/* Walking the runs from the first on. */
typedef struct PenRun {
    uint32_t run;           /* number */
    uint32_t first, end;    /* segments [first, end) */
    uint64_t offset, bytes; /* in the payload */
} PenRun;

void pen__run_first(const PenSegmentTable *t, PenRun *run);
int pen__run_next(const PenSegmentTable *t, PenRun *run); /* 0 = there is none */
uint32_t pen__run_sum(const PenSegmentTable *t, uint32_t run);

#endif
