/* SPDX-License-Identifier: Apache-2.0 */
/* Folders whose files are the frames of one clip. */
#ifndef PEN_INGEST_SOURCE_FRAMES_H
#define PEN_INGEST_SOURCE_FRAMES_H

#include "base/mem.h"
#include "ingest/source/stamp.h"
#include "io/dir.h"

/* The names of the frames, in order: by the numbers in them, so that 2.jpg comes before 10.jpg.
 * Hidden files are no frames. */
int pen__frames_list(const char *folder, PenNames *ret, PenError *reterr);
typedef struct PenFramesSize {
    uint64_t n, bytes;
    PenStamp stamp; /* of all together */
} PenFramesSize;

/* PEN_E_INVALID when a name is that of something else than a file. */
int pen__frames_measure(const char *folder, PenFramesSize *ret, PenError *reterr);
/* The order of names; < 0, 0, > 0. */
int pen__frames_compare(const char *a, const char *b);

#endif
