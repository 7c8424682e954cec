/* SPDX-License-Identifier: Apache-2.0 */
/* Files outside of a pack that the pack refers to. What a pack names is hostile: a file is opened
 * only below the directory that holds the pack or below directories that the user has named, part
 * by part and never through a symbolic link. Few of them stay open. What is an object of a store is
 * read by objects.h. Thread-safe. */
#ifndef PEN_IO_OUTSIDE_H
#define PEN_IO_OUTSIDE_H

#include "io/helpers.h"
#include "io/objects.h"

typedef struct PenOutside PenOutside;

/* A file in use. */
typedef struct PenOutsideUse {
    PenSource *source;
    int slot; /* -1: it is closed after use */
} PenOutsideUse;

/* A file of the pack that tells it from any other directory: its manifest. */
typedef struct PenOutsideMark {
    const char *name;
    uint64_t bytes;
    uint8_t id[16]; /* the beginning of its SHA-256 */
} PenOutsideMark;

/* `pack` is the pack's path or address. The directory that holds it is opened here and stays open.
 * PEN_E_CHANGED when `mark` (NULL: none) is not in the pack. */
int pen__outside_new(const char *pack, const PenOutsideMark *mark, PenOutside **ret,
                     PenError *reterr);
/* Of a pack in a store: objects below the prefix that holds it may be read as the pack, which is at
 * `of`, is. */
int pen__outside_open_home(PenOutside *o, PenRemote *of, PenError *reterr);
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
/* Exactly these bytes of a file or an object, by one read; `arrival` may be NULL. */
int pen__outside_read(PenOutside *o, const PenOutsideFile *file, const struct iovec *v, int n,
                      uint64_t offset, const PenArrival *arrival, PenError *reterr);
/* What a file is now; fails as pen__outside_take. Of an object nothing is requested: all is 0, or
 * PEN_E_CORRUPT says how the last read of it failed. */
int pen__outside_stat(PenOutside *o, const PenOutsideFile *file, PenFileStat *ret,
                      PenError *reterr);

/* Of the objects: see objects.h. */
PenRemote *pen__outside_place(const PenOutside *o);
void pen__outside_stop(const PenOutside *o, int stop);
void pen__outside_count(const PenOutside *o, PenPolicyCounts *counts);
PenHelpers *pen__outside_helpers(PenOutside *o);

/* The path of a file as a pack has it: real, relative to the directory that holds the pack when it
 * lies below it, absolute else. */
int pen__outside_name(const char *pack, const char *path, char ret[PEN_OUTSIDE_PATH_BYTES],
                      PenFileStat *ret_stat, PenError *reterr);

#endif
