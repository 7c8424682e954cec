/* SPDX-License-Identifier: Apache-2.0 */
/* A part: where the bytes of one field of one sample come from. */
#ifndef PEN_INGEST_SOURCE_PART_H
#define PEN_INGEST_SOURCE_PART_H

#include <stdint.h>

#include "ingest/source/stamp.h"

/* What one part of a sample may have; more is PEN_E_LIMIT when it is read. */
#define PEN_PART_BYTES ((uint64_t)256 << 20)

/* The frames of one clip, together. */
#define PEN_CLIP_BYTES ((uint64_t)2 << 30)
#define PEN_CLIP_FRAMES ((uint64_t)1 << 20)
#define PEN_NO_END UINT64_MAX

enum {
    PEN_PART_NONE = 0,   /* the sample has no such part */
    PEN_PART_FILE = 1,   /* a file: path under the root of source `source` */
    PEN_PART_RANGE = 2,  /* bytes of an uncompressed tar: source `source`, offset, bytes */
    PEN_PART_STREAM = 3, /* a member of a compressed tar: offset in the unpacked stream */
    PEN_PART_INLINE = 4, /* in the plan itself: numbers (as the pack stores them) and texts */
    PEN_PART_FRAMES = 5, /* a folder: its files are the frames of a clip. offset: how many */
    PEN_PART_VIDEO = 6,  /* a file: from offset to end, in nanoseconds */
    PEN_PART_GULP = 7    /* frames that lie in a .gulp file. offset: how many, data: where */
};

typedef struct PenPart {
    uint8_t kind;
    uint32_t source; /* number of the root folder or tar in the plan */
    uint64_t offset;
    uint64_t bytes;   /* size seen when the plan was made */
    uint64_t end;     /* of a VIDEO: PEN_NO_END = to its end */
    PenStamp stamp;   /* of a FILE, FRAMES or VIDEO, seen when the plan was made */
    const char *path; /* of a FILE: below the root, or absolute; of a tar's member: its name */
    const void *data; /* of an INLINE or GULP part; else NULL */
    uint32_t data_bytes;
} PenPart;

/* Does a part of this kind lie in a file or folder of its own? */
static inline int pen__kind_has_stamp(uint8_t kind)
{
    return kind == PEN_PART_FILE || kind == PEN_PART_FRAMES || kind == PEN_PART_VIDEO;
}
/* Is it a clip whose frames are files of their own, or lie in a .gulp? */
static inline int pen__part_has_frames(const PenPart *part)
{
    return part->kind == PEN_PART_FRAMES || part->kind == PEN_PART_GULP;
}

#endif
