/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a remote tar once: its images are prepared while they arrive, and a summary of all
 * members is written. Later the samples are made from the summary. */
#ifndef PEN_INGEST_PREPARE_SUMMARIZE_H
#define PEN_INGEST_PREPARE_SUMMARIZE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "ingest/prepare/prepare.h"
#include "ingest/tar/summary.h"
#include "io/places.h"

typedef struct PenSummarize {
    const PenSummaries *all;
    const PenPrepareSettings *prepare; /* of the calling thread */
    PenPlaces *places;                 /* likewise: closing a tar ends the requests to its place */
    atomic_uint_least64_t *images, *bytes; /* read so far */
    const atomic_bool *stop;
} PenSummarize;

/* Streams the tar and writes its summary, unless there is one of this very object. */
int pen__summarize_tar(const PenSummarize *s, const char *address, PenError *reterr);

/* Fills an image from the record of a member, which lies in p->index. PEN_END: the record does not
 * have what an image of this kind needs. A broken image gives the error that preparing it gave,
 * `name` before it. */
int pen__summary_image(const PenMemberRecord *m, bool mask, const char *name, PenPreparedImage *p,
                       PenError *reterr);

#endif
