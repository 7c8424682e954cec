/* SPDX-License-Identifier: Apache-2.0 */
/* Files outside of a pack that the pack refers to. What a pack names is hostile: a file is opened
 * only below the directory that holds the pack or below directories that the user has named, part
 * by part and never through a symbolic link. Few of them stay open. Thread-safe. */
#ifndef PEN_IO_OUTSIDE_H
#define PEN_IO_OUTSIDE_H

#include <penstock/pack.h>

#include "io/source.h"

typedef struct PenOutside PenOutside;

enum { PEN_OUTSIDE_PATH_BYTES = 4096 }; /* of a path and its end */

typedef struct PenOutsideFile {
    uint64_t owner;  /* of pen__outside_owner */
    uint32_t number; /* among the owner's files */
    uint32_t path_bytes;
    const char *path; /* as the pack has it, without an end */
    uint64_t bytes;   /* that it had when it was indexed */
} PenOutsideFile;

/* A file in use. */
typedef struct PenOutsideUse {
    PenSource *source;
    int slot; /* -1: it is closed after use */
} PenOutsideUse;

/* Opens nothing. `pack` is the pack's path. */
int pen__outside_new(const char *pack, PenOutside **ret, PenError *reterr);
/* Before the first file is opened. What is given is copied. */
int pen__outside_set(PenOutside *o, const PenFileSettings *settings, PenError *reterr);
void pen__outside_close(PenOutside **o); /* accepts NULL */

/* A number for those whose files are in use, and the end of it: no file of theirs is in use. */
uint64_t pen__outside_owner(PenOutside *o);
void pen__outside_forget(PenOutside *o, uint64_t owner);

/* PEN_E_CORRUPT when it is missing, no file, or of another size; PEN_E_INVALID when it lies where
 * it may not. Messages name it. */
int pen__outside_take(PenOutside *o, const PenOutsideFile *file, PenOutsideUse *ret,
                      PenError *reterr);
void pen__outside_put(PenOutside *o, PenOutsideUse *use);

/* Is it a path that a pack may have? No part is empty, "." or "..", and there is no NUL. An address
 * has a bucket or host and one more part, and nothing that could be a secret or a query. */
bool pen__outside_path_ok(const char *path, size_t bytes);
/* Does it begin as the address of an object does? */
bool pen__outside_is_address(const char *path, size_t bytes);

/* The path of a file as a pack has it: real, relative to the directory that holds the pack when it
 * lies below it, absolute else. */
int pen__outside_name(const char *pack, const char *path, char ret[PEN_OUTSIDE_PATH_BYTES],
                      PenFileStat *ret_stat, PenError *reterr);

#endif
