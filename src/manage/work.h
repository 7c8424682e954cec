/* SPDX-License-Identifier: Apache-2.0 */
/* NAME.pen/.work: what a run leaves for its continuation. */
#ifndef PEN_MANAGE_WORK_H
#define PEN_MANAGE_WORK_H

#include "base/error.h"

/* NAME.pen/.work[/name]; to be freed; NULL when out of memory. */
char *pen__work_path(const char *out, const char *name);
/* Makes NAME.pen and NAME.pen/.work. */
int pen__work_make(const char *out, PenError *reterr);
/* Is all in .work of the names we give? PEN_E_INVALID when not; no .work is fine. */
int pen__work_check(const char *out, PenError *reterr);
/* Removes .work and all in it; links in it are removed, not followed, and a .work that is a link is
 * refused. What it counts may be NULL. */
int pen__work_remove(const char *out, uint64_t *files, uint64_t *bytes, PenError *reterr);

/* Removes a file, or a link itself, of the open directory `dir`, which lies at `path`. */
int pen__entry_remove(int dir, const char *name, const char *path, uint64_t *files, uint64_t *bytes,
                      PenError *reterr);

#endif
