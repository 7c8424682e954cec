/* SPDX-License-Identifier: Apache-2.0 */
/* A trace: rings of spans, and the thread that writes them to a file. */
#ifndef PEN_TRACE_TRACE_H
#define PEN_TRACE_TRACE_H

#include <penstock/trace.h>

#include "trace/span.h"

/* A ring for a loader, which leaves it with pen__span_ring_leave. `pack` is its path, `args` are
 * further numbers about it, as JSON. */
int pen__trace_join(PenTrace *t, const char *pack, const char *args, PenSpanRing **ret,
                    PenError *reterr);

#endif
