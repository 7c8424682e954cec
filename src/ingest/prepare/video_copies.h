/* SPDX-License-Identifier: Apache-2.0 */
/* Videos that are objects of a store: each is a file of this machine while its parts are prepared,
 * since ffprobe reads files. */
#ifndef PEN_INGEST_PREPARE_VIDEO_COPIES_H
#define PEN_INGEST_PREPARE_VIDEO_COPIES_H

#include "ingest/video/packets.h"
#include "net/remote/remote.h"

typedef struct PenVideoCopies PenVideoCopies;

typedef struct PenVideoCopy {
    const char *path; /* of the file */
    char *address;
    PenObject object;
    PenVideoList list; /* its packets */
} PenVideoCopy;

/* The files are in `home`/.work. `settings` are the program's, and may be NULL. */
int pen__video_copies_new(const PenRemoteSettings *settings, const char *home, uint32_t n_fields,
                          PenVideoCopies **ret, PenError *reterr);
void pen__video_copies_free(PenVideoCopies **copies); /* removes the files; accepts NULL */

/* A field has one copy, which stays until another object is requested. */
int pen__video_copies_get(PenVideoCopies *copies, const PenVideoSettings *settings, uint32_t field,
                          const char *address, const PenVideoCopy **ret, PenError *reterr);
/* In the message of an error, the address takes the place of the path of the copy. */
void pen__video_copy_rename(const PenVideoCopy *copy, PenError *err);

#endif
