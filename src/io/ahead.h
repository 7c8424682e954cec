/* SPDX-License-Identifier: Apache-2.0 */
/* A remote object that is read from its beginning to its end: several requests run ahead of the
 * reader, so that it does not wait for each. */
#ifndef PEN_IO_AHEAD_H
#define PEN_IO_AHEAD_H

#include "io/source.h"
#include "net/remote/remote.h"

/* Takes over `*source`, which lies in `remote`, and puts a source in its place that has the same
 * bytes; on failure both are closed. Reads may go back by PEN_AHEAD_PIECE bytes at least; a jump
 * further back, or far ahead, starts over from there. Takes up to 9 pieces of memory. Closing it
 * ends all requests to the place that are under way. */
enum { PEN_AHEAD_PIECE = 4 << 20 };
int pen__source_ahead(PenRemote *remote, PenSource **source, PenError *reterr);

#endif
