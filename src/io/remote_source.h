/* SPDX-License-Identifier: Apache-2.0 */
/* An object of a remote place as a source. It is the object that was there when it was opened, or
 * an error. */
#ifndef PEN_IO_REMOTE_SOURCE_H
#define PEN_IO_REMOTE_SOURCE_H

#include "io/source.h"
#include "net/remote/remote.h"

/* One request brings its size and its end, which is where a shard's index lies: PEN_REMOTE_END, or
 * `end_bytes` when it is more, up to PEN_REMOTE_END_MOST: what asks for it may be wrong. */
enum { PEN_REMOTE_END = 64 * 1024, PEN_REMOTE_END_MOST = 8 << 20 };
int pen__source_open_remote(PenRemote *remote, const char *name, uint64_t end_bytes,
                            PenSource **ret, PenError *reterr);
/* An object that is known to have `bytes` bytes, without a request: its size is compared with every
 * response. The first one brings its ETag, and later requests carry it. */
int pen__source_open_object(PenRemote *remote, const char *name, uint64_t bytes, PenSource **ret,
                            PenError *reterr);
/* What was read when it was opened is not needed any more; accepts any source. */
void pen__source_settle(PenSource *s);
/* NULL: it is not remote. What the object was when it was opened. */
const PenObject *pen__source_object(const PenSource *s);

#endif
