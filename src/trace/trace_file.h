/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is written from its start to its end, as it is or compressed by gzip. What was
 * flushed can be read after the process was killed. */
#ifndef PEN_TRACE_TRACE_FILE_H
#define PEN_TRACE_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <penstock/error.h>

#include "base/mem.h"

struct z_stream_s;

typedef struct PenTraceFile {
    int fd;
    uint64_t bytes;          /* written */
    struct z_stream_s *gzip; /* NULL: not compressed */
    PenBuf packed;
} PenTraceFile;

int pen__trace_file_open(PenTraceFile *f, const char *path, PenError *reterr);
/* Adds to the file, and flushes it. `end` also ends it. Returns 0 or -errno. */
int pen__trace_file_write(PenTraceFile *f, const PenBuf *text, bool end);
/* Returns 0 or -errno. */
int pen__trace_file_close(PenTraceFile *f);

#endif
