/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the status of a loader to other processes of the user: 'penstock top' reads it. The text
 * lies in a memory file (docs/explanation/adr/0013-a-pack-in-shared-memory.md describes how it is
 * found). It is written, never mapped, so that nothing that others do to it can end this process. A
 * failure is silent, and ends it.
 *
 * Lock rule: belongs to the thread of the caller; pen__status_show takes the lock of the engine. */
#ifndef PEN_LOAD_STATUS_WRITER_H
#define PEN_LOAD_STATUS_WRITER_H

#include "load/engine.h"

/* The counters at a moment. */
typedef struct PenStatusMark {
    uint64_t ns;
    PenLoadCounters counters;
} PenStatusMark;

typedef struct PenStatusWriter {
    bool is_open;
    bool has_begun; /* the first pass: nothing was counted before it */
    int fd, name_fd;
    uint64_t due_ns; /* not before; 0: nothing was shown yet; UINT64_MAX: it has ended */
    /* Rates are those since `from`, one to two seconds ago, or longer if batches take longer;
     * `next` is to replace it. */
    PenStatusMark from, next;
} PenStatusWriter;

static inline bool pen__status_is_due(const PenStatusWriter *w, uint64_t now_ns)
{
    return now_ns >= w->due_ns;
}

void pen__status_show(PenStatusWriter *w, PenLoadEngine *e, uint64_t epoch);
void pen__status_close(PenStatusWriter *w); /* a zeroed one is fine */

#endif
