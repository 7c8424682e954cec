/* SPDX-License-Identifier: Apache-2.0 */
/* Folders whose files are the frames of one clip. */
#ifndef PEN_INGEST_SOURCE_FRAMES_H
#define PEN_INGEST_SOURCE_FRAMES_H

#include <stdbool.h>

#include "base/mem.h"
#include "ingest/source/stamp.h"
#include "io/dir.h"

/* Is it the name of a frame? Hidden files and those that are no images by their names are not. */
bool pen__frames_has(const char *name);
/* The names of the frames, in order: by the numbers in them, so that 2.jpg comes before 10.jpg. */
int pen__frames_list(const char *folder, PenNames *ret, PenError *reterr);
typedef struct PenFramesSize {
    uint64_t n, bytes;
    PenStamp stamp; /* of all together */
} PenFramesSize;

/* PEN_E_INVALID when a frame is something else than a file, or there is a folder in it. */
int pen__frames_measure(const char *folder, PenFramesSize *ret, PenError *reterr);
/* The order of names; < 0, 0, > 0. */
int pen__frames_compare(const char *a, const char *b);

#endif
