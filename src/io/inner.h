/* SPDX-License-Identifier: Apache-2.0 */
/* Writing inside a pack's directory, which somebody else may have prepared. The way to the
 * directory is the user's and may lead through symbolic links; what is inside is reached from an
 * open handle of it, part by part, and never through a link. `root_bytes` says how much of a path
 * names the directory. */
#ifndef PEN_IO_INNER_H
#define PEN_IO_INNER_H

#include <stddef.h>

#include "base/error.h"

typedef struct PenInner {
    int dir;          /* the directory it lies in, open */
    const char *name; /* its name there; points into the path */
} PenInner;
#define PEN_INNER_NONE ((PenInner){.dir = -1})

/* Of a path made by pen__work_path: up to the last part ".work". Of any other: up to its last part.
 */
size_t pen__inner_root(const char *path);
size_t pen__inner_parent(const char *path); /* of any path: up to its last part */

/* PEN_E_NOT_FOUND when a directory on the way is not there, PEN_E_EXISTS when it is something else.
 */
int pen__inner_find(const char *path, size_t root_bytes, PenInner *ret, PenError *reterr);
void pen__inner_close(PenInner *inner); /* accepts an unset one */
/* The same, of a directory itself: its handle. */
int pen__inner_open_dir(const char *path, size_t root_bytes, int *ret_fd, PenError *reterr);

/* Makes the directory when it is not there, and syncs its parent. */
int pen__inner_make(const char *path, size_t root_bytes, PenError *reterr);
/* 0 also when it was not there. */
int pen__inner_remove(const char *path, size_t root_bytes, PenError *reterr);
int pen__inner_remove_dir(const char *path, size_t root_bytes, PenError *reterr);
/* Syncs the directory that `path` lies in. */
int pen__inner_sync(const char *path, size_t root_bytes, PenError *reterr);

#endif
