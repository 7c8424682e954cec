/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Writes what the threads of loaders do to a file, span by span, while they run. Perfetto and
 * chrome://tracing show it; docs/reference/trace.md lists the spans.
 *
 * A trace never fails a loader. If the file cannot be written, or if spans arrive faster than they
 * are written, spans are dropped and counted. Any thread may call pen_trace_span,
 * pen_trace_counter and pen_trace_thread; one thread at a time may call pen_loader_trace for a
 * loader. */
#ifndef PENSTOCK_TRACE_H
#define PENSTOCK_TRACE_H

#include <penstock/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PenTrace PenTrace;

typedef struct PenTraceSettings {
    uint32_t rank;  /**< of this process, for the name of its tracks; default 0 */
    uint32_t world; /**< number of ranks; default 1 */
} PenTraceSettings;

typedef struct PenTraceStats {
    uint64_t events;  /**< written to the file */
    uint64_t dropped; /**< spans that are not in the file */
    uint64_t bytes;   /**< of the file */
} PenTraceStats;

PEN_API void pen_trace_settings_init(PenTraceSettings *settings);

/** Creates the file and starts a thread that writes it. A name that ends in ".gz" selects gzip. A
 * regular file of that name is replaced, unless another process is writing a trace to it. */
PEN_NODISCARD PEN_API int pen_trace_open(const char *path, const PenTraceSettings *settings,
                                         PenTrace **ret_trace, PenError *reterr);

/** Writes what is left and closes the file; waits for the disk for 10 seconds at most. A failure
 * means that the file is not complete; the statistics are filled in all the same, and `ret` may be
 * NULL. What loaders do afterwards is not traced. In a forked child it only sets the handle to
 * NULL. */
PEN_API int pen_trace_close(PenTrace **trace, PenTraceStats *ret, PenError *reterr);

/** Traces a loader from now on, instead of any trace before. NULL ends its trace. */
PEN_API int pen_loader_trace(PenLoader *loader, PenTrace *trace, PenError *reterr);

/** Adds a span of the calling thread, in nanoseconds of CLOCK_MONOTONIC. The spans of a thread
 * must not overlap, unless one contains the other. */
PEN_API void pen_trace_span(PenTrace *trace, const char *name, uint64_t begin_ns, uint64_t end_ns);
/** Adds a value of now to one series of a counter: "cpu_percent", "decode 0", 97.5. */
PEN_API void pen_trace_counter(PenTrace *trace, const char *name, const char *series, double value);
/** Names the track of the calling thread. */
PEN_API void pen_trace_thread(PenTrace *trace, const char *name);

#ifdef __cplusplus
}
#endif
#endif
