/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a compressed tar, read in order. The parts of one sample may be asked for in any
 * order: those that are passed on the way are kept until the next sample. */
#ifndef PEN_INGEST_PLAN_PART_STREAM_H
#define PEN_INGEST_PLAN_PART_STREAM_H

#include "ingest/plan/plan.h"
#include "io/source.h"

typedef struct PenPartStream PenPartStream;

int pen__part_stream_new(PenPartStream **ret, PenError *reterr);
void pen__part_stream_free(PenPartStream **stream); /* accepts NULL */

/* The member at part->offset of tar number part->source, which is at `path`. Going back to what is
 * no longer kept starts from the beginning. `expected` is what the plan says of the tar. */
int pen__part_stream_read(PenPartStream *stream, const char *path, const PenExpected *expected,
                          const PenPart *part, PenBuf *out, uint64_t *ret_disk_bytes,
                          PenError *reterr);

#endif
