/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run keeps its work: in the pack's own directory, or, for a pack in an object store, in a
 * directory of this machine. */
#ifndef PEN_MANAGE_WORK_HOME_H
#define PEN_MANAGE_WORK_HOME_H

#include "base/error.h"

/* `out` itself when it is a path; else `work`, or when that is NULL a directory of the user's cache
 * whose name follows from the address, so that an interrupted run finds it again. To be freed. */
int pen__home_find(const char *out, const char *work, char **ret, PenError *reterr);
/* Makes it, with .work in it. */
int pen__home_make(const char *out, const char *home, PenError *reterr);
/* Takes it away again when it is empty. */
void pen__home_leave(const char *home);

#endif
