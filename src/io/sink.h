/* SPDX-License-Identifier: Apache-2.0 */
/* Writing files that appear whole or not at all: written beside their final place, synced, renamed.
 */
#ifndef PEN_IO_SINK_H
#define PEN_IO_SINK_H

#include <stdint.h>
#include <sys/uio.h>

#include "base/error.h"
#include "net/remote/remote.h"

typedef struct PenSink PenSink;

/* Creates `part_path`; nothing is at its final place yet. A file, link or FIFO that has this name
 * is removed, not written to. Both paths are reached as io/inner.h says. */
int pen__sink_open(const char *part_path, PenSink **ret, PenError *reterr);
/* An object, uploaded in parts; it appears under its name when it is committed. */
int pen__sink_open_remote(PenRemote *remote, const char *name, PenSink **ret, PenError *reterr);
int pen__sink_write(PenSink *s, const void *data, size_t bytes, PenError *reterr);
/* All of the pieces, in order; `iov` is used up. */
int pen__sink_writev(PenSink *s, struct iovec *iov, int n, PenError *reterr);
uint64_t pen__sink_bytes(const PenSink *s);
/* Syncs, renames to `path` and syncs the directory of `path`. A failed sync is final. An object has
 * its name already: `path` is not looked at. */
int pen__sink_commit(PenSink **s, const char *path, PenError *reterr);
/* The same; the first `root_bytes` of the path name the pack's directory. */
int pen__sink_commit_in(PenSink **s, const char *path, size_t root_bytes, PenError *reterr);
void pen__sink_abort(PenSink **s); /* closes and removes the part file; accepts NULL */

/* Writes a whole small file that way. */
int pen__file_store(const char *part_path, const char *path, const void *data, size_t bytes,
                    PenError *reterr);
int pen__file_store_in(const char *part_path, const char *path, size_t root_bytes, const void *data,
                       size_t bytes, PenError *reterr);

#endif
