/* SPDX-License-Identifier: Apache-2.0 */
/* Directories: paths, making, listing, locking. */
#ifndef PEN_IO_DIR_H
#define PEN_IO_DIR_H

#include <stdint.h>

#include "base/error.h"

/* "a/b", to be freed with pen__free; NULL when out of memory. */
char *pen__path_join(const char *dir, const char *name);
char *pen__path_add(const char *path, const char *suffix); /* "plan" and ".part": "plan.part" */

/* Makes the directory when it is not there, and syncs its parent. A link to one counts as one: for
 * directories that the user names. Those inside a pack: io/inner.h. */
int pen__dir_make(const char *path, PenError *reterr);
int pen__dir_sync(const char *path, PenError *reterr);

/* 1 exists, 0 does not, < 0 failure. */
int pen__file_exists(const char *path, PenError *reterr);
/* 0 also when it was not there. Never through a link in ".work". */
int pen__file_remove(const char *path, PenError *reterr);
int pen__dir_remove(const char *path, PenError *reterr); /* must be empty; 0 when not there */

typedef struct PenNames {
    char **names; /* sorted by bytes */
    uint64_t n, cap;
} PenNames;

int pen__dir_list(const char *path, PenNames *ret, PenError *reterr);
/* The same of an open directory, which lies at `path`. */
int pen__dir_list_fd(int dir, const char *path, PenNames *ret, PenError *reterr);
/* Appends a copy; -ENOMEM. They are not sorted then. */
int pen__names_add(PenNames *names, const char *name);
void pen__names_free(PenNames *names);

/* A kernel lock on a directory; released by closing, or by the death of the process. PEN_E_BUSY
 * when another process holds it. */
typedef struct PenLock {
    int fd;
} PenLock;
#define PEN_LOCK_NONE ((PenLock){-1})

int pen__dir_lock(const char *path, int exclusive, PenLock *ret, PenError *reterr);
/* The same, exclusive, of a directory in ".work". */
int pen__inner_lock(const char *path, PenLock *ret, PenError *reterr);
void pen__dir_unlock(PenLock *lock); /* accepts an unset one */

#endif
