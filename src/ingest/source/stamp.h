/* SPDX-License-Identifier: Apache-2.0 */
/* How it is noticed that an input is no longer the file that was scanned. The size is recorded
 * beside the stamp. See docs/explanation/adr/0007-inputs-and-resumed-runs.md. */
#ifndef PEN_INGEST_SOURCE_STAMP_H
#define PEN_INGEST_SOURCE_STAMP_H

#include "base/error.h"
#include "base/sys.h"
#include "net/remote/remote.h"

/* Of a file; of a folder of frames, sums over its files. All zero: there was no file. */
typedef struct PenStamp {
    int64_t mtime_ns, ctime_ns;
    uint64_t inode;
} PenStamp;

#define PEN_STAMP_BYTES 24

static inline PenStamp pen__stamp_of(const PenFileStat *st)
{
    return (PenStamp){st->mtime_ns, st->ctime_ns, st->inode};
}

static inline int pen__stamp_is_set(const PenStamp *s)
{
    return s->mtime_ns || s->ctime_ns || s->inode;
}

/* A hash of its ETag. All zero when the server gives none: then only sizes are compared. */
PenStamp pen__stamp_of_object(const PenObject *object);

/* Adds a frame; the order does not matter, the name does. */
void pen__stamp_add(PenStamp *sum, const char *name, const PenFileStat *st);

void pen__stamp_store(uint8_t to[PEN_STAMP_BYTES], const PenStamp *stamp);
PenStamp pen__stamp_load(const uint8_t from[PEN_STAMP_BYTES]);

#define PEN_RUN_AGAIN "run the same command again"

/* What the plan says of a file, and what to do when it is no longer true. */
typedef struct PenExpected {
    uint64_t bytes;
    PenStamp stamp;
    const char *advice;
} PenExpected;

/* Compares sizes and times; PEN_E_INVALID "NAME: changed since the plan was made: ...". Inodes are
 * left out: some file systems number their files anew while they are in use. */
int pen__expected_check(const char *name, const PenExpected *expected, uint64_t bytes,
                        const PenStamp *found, PenError *reterr);
/* It was there, and cannot be opened now: PEN_E_NOT_FOUND or what `code` (an errno) means. */
int pen__expected_gone(const char *path, int code, const char *advice, PenError *reterr);
/* The same for what a path leads to now. */
int pen__expected_check_path(const char *path, const PenExpected *expected, PenError *reterr);

#endif
