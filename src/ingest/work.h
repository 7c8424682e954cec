/* SPDX-License-Identifier: Apache-2.0 */
/* NAME.pen/.work: what a run leaves for its continuation. */
#ifndef PEN_INGEST_WORK_H
#define PEN_INGEST_WORK_H

#include "base/error.h"

/* NAME.pen/.work[/name]; to be freed; NULL when out of memory. */
char *pen__work_path(const char *out, const char *name);
/* Makes NAME.pen and NAME.pen/.work. */
int pen__work_make(const char *out, PenError *reterr);
/* Removes .work and all in it. What it counts may be NULL. */
int pen__work_remove(const char *out, uint64_t *files, uint64_t *bytes, PenError *reterr);

/* Removes every file and folder in a folder that penstock made, and the folder; at most `depth`
 * levels. */
int pen__tree_remove(const char *path, int depth, uint64_t *files, uint64_t *bytes,
                     PenError *reterr);
int pen__file_remove_counted(const char *path, uint64_t *files, uint64_t *bytes, PenError *reterr);

#endif
