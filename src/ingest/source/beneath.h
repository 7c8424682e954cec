/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a list names have to lie below a folder: a list may come from somebody else, and what
 * it names is copied into the pack. */
#ifndef PEN_INGEST_SOURCE_BENEATH_H
#define PEN_INGEST_SOURCE_BENEATH_H

#include <stdbool.h>

#include "base/error.h"

enum { PEN_REAL_PATH_BYTES = 4096 };

/* The path that `path` leads to, absolute and without links. PEN_E_UNSUPPORTED when that is not
 * below `root` ("" = the working directory), whose own links are resolved too, or cannot be told
 * because it is too long: such a path may be opened all the same. PEN_E_NOT_FOUND when it
 * leads nowhere: a link to nothing, or to itself, is no more than a file that is missing.
 * PEN_E_INVALID when the root cannot be resolved. */
int pen__beneath(const char *root, const char *path, char ret[PEN_REAL_PATH_BYTES],
                 PenError *reterr);

/* -errno of a path that leads nowhere. */
bool pen__leads_nowhere(int r);

#endif
