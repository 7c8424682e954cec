/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a compressed tar, read in order. The parts of one sample may be asked for in any
 * order: those that are passed on the way are kept until the next sample. */
#ifndef PEN_INGEST_PLAN_PART_STREAM_H
#define PEN_INGEST_PLAN_PART_STREAM_H

#include "ingest/plan/plan.h"
#include "io/places.h"
#include "io/source.h"

typedef struct PenPartStream PenPartStream;

int pen__part_stream_new(PenPartStream **ret, PenError *reterr);
void pen__part_stream_free(PenPartStream **stream); /* accepts NULL */

typedef struct PenStreamFile {
    const char *path;            /* of the tar, or its address */
    PenPlaces *places;           /* of an address */
    const PenExpected *expected; /* what the plan says of it */
} PenStreamFile;

/* The member at part->offset of tar number part->source, which is `file`. Going back to what is no
 * longer kept starts from the beginning. */
int pen__part_stream_read(PenPartStream *stream, const PenStreamFile *file, const PenPart *part,
                          PenBuf *out, uint64_t *ret_disk_bytes, PenError *reterr);

#endif
