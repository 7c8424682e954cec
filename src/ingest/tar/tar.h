/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a tar file, plain or compressed, in order. Hostile input is expected: nothing but
 * tar is recognised, no program is started, no file is opened, and sizes are limited before memory
 * is taken. Members that are not regular files are refused, directories are passed over. */
#ifndef PEN_INGEST_TAR_TAR_H
#define PEN_INGEST_TAR_TAR_H

#include <stdbool.h>

#include "io/source.h"

#define PEN_TAR_MEMBER_BYTES ((uint64_t)256 << 20)

typedef struct PenTar PenTar;

typedef struct PenMember {
    const char *name; /* without "./" in front; lives until the next call */
    uint64_t offset; /* of its data: in the file, or in the unpacked stream when it is compressed */
    uint64_t bytes;
} PenMember;

/* `source` stays the caller's and must outlive the reader. */
int pen__tar_open(PenSource *source, PenTar **ret, PenError *reterr);
void pen__tar_close(PenTar **tar); /* accepts NULL */
bool pen__tar_compressed(const PenTar *tar);

/* 0, or PEN_END behind the last member. After a failure only closing is of use. */
int pen__tar_next(PenTar *tar, PenMember *ret, PenError *reterr);
/* The data of the member that next gave; once. Replaces what is in `out`; PEN_SLACK bytes follow.
 */
int pen__tar_read(PenTar *tar, PenBuf *out, PenError *reterr);
/* How many bytes of the source have been read so far. */
uint64_t pen__tar_taken(const PenTar *tar);

#endif
