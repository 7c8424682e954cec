/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome trace events as JSON text, one a line. Every line but the last of a file ends in a comma.
 */
#ifndef PEN_TRACE_EVENT_H
#define PEN_TRACE_EVENT_H

#include <sys/types.h>

#include "base/mem.h"
#include "trace/span.h"

/* All return 0, or PEN_E_NO_MEMORY with the text as it was. */

/* The events of a span, *ret_events of them. `id` tells batches apart. */
int pen__event_span(PenBuf *text, pid_t pid, const PenSpan *span, uint64_t id,
                    unsigned *ret_events);
/* A span with a name of the user's. */
int pen__event_named(PenBuf *text, pid_t pid, const PenSpan *span, const char *name);
/* A value of a counter. */
int pen__event_counter(PenBuf *text, pid_t pid, uint64_t ns, const char *name, const char *series,
                       double value);
/* Metadata with one text: {"ph": "M", "name": `kind`, "args": {`key`: `value`}}. */
int pen__event_text(PenBuf *text, pid_t pid, uint32_t tid, const char *kind, const char *key,
                    const char *value);
/* Metadata with numbers; `args` is their JSON. */
int pen__event_args(PenBuf *text, pid_t pid, const char *kind, const char *args);

#endif
