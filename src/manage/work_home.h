/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run keeps its work: in the pack's own directory, or, for a pack in an object store, in a
 * directory of this machine. */
#ifndef PEN_MANAGE_WORK_HOME_H
#define PEN_MANAGE_WORK_HOME_H

#include "base/error.h"
#include "io/dir.h"

/* `out` itself when it is a path; else `work`, or when that is NULL a directory of the user's cache
 * whose name follows from the address, so that an interrupted run finds it again. To be freed. */
int pen__home_find(const char *out, const char *work, char **ret, PenError *reterr);
/* For a pack in an object store: a directory of `part` alone, such as "task-3-of-8", "plan" or
 * "finalise". Tasks on one machine then need not wait for each other. */
int pen__home_find_part(const char *out, const char *work, const char *part, char **ret,
                        PenError *reterr);
/* Takes away those of all parts that no process uses. */
void pen__home_leave_parts(const char *out, const char *work);
/* Makes it, with .work in it. */
int pen__home_make(const char *out, const char *home, PenError *reterr);
/* Makes it and locks it. PEN_E_BUSY also when another process took it away in the meantime: the
 * next attempt makes it again. */
int pen__home_lock(const char *out, const char *home, int exclusive, PenLock *ret,
                   PenError *reterr);
/* Takes it away again when it is empty. */
void pen__home_leave(const char *home);

#endif
