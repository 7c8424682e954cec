/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary file for what does not fit in memory. It has no name while it is in use, so nothing
 * of it remains when the process ends, however it ends; unless another program has to read it. */
#ifndef PEN_INGEST_SPILL_SPILL_H
#define PEN_INGEST_SPILL_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* How much memory may be used, and where the rest goes. */
typedef struct PenSpace {
    const char *path; /* of temporary files; NULL: all is kept in memory */
    size_t memory;    /* bytes; each user of a space takes about that much */
} PenSpace;

/* Zero-initialised, with a path, it is empty. The file is made by the first write. */
typedef struct PenSpill {
    const char *path; /* must outlive it */
    bool is_named;    /* set by the user: `path` names it until it is closed */
    bool is_open, is_made;
    int fd;
    uint64_t bytes;
} PenSpill;

/* Appends. */
int pen__spill_write(PenSpill *s, const void *data, size_t bytes, PenError *reterr);
/* To any place of a file that is open; by several threads. */
int pen__spill_put(const PenSpill *s, const void *data, size_t bytes, uint64_t offset,
                   PenError *reterr);
int pen__spill_read(const PenSpill *s, void *to, size_t bytes, uint64_t offset, PenError *reterr);
/* Releases the descriptor of a named file, which can be read by its path from now on. */
void pen__spill_finish(PenSpill *s);
void pen__spill_close(PenSpill *s); /* removes it */

#endif
