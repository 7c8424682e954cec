/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread has done, from when to when; and a ring of spans, in bounded memory, from those who
 * add spans to the thread that writes them.
 *
 * One thread at a time adds spans: those of a loader do so while they hold its lock, which they
 * take anyway. One thread takes them. Neither waits for the other. */
#ifndef PEN_TRACE_SPAN_H
#define PEN_TRACE_SPAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum PenSpanTag {
    PEN_SPAN_REQUEST, /* blocks of a remote pack */
    PEN_SPAN_READ,    /* a sample */
    PEN_SPAN_VERIFY,
    PEN_SPAN_DECODE, /* a sample; contains the next two */
    PEN_SPAN_RESAMPLE,
    PEN_SPAN_STORE,
    PEN_SPAN_WAIT_SLOT,  /* for memory of another batch */
    PEN_SPAN_WAIT_QUEUE, /* for samples that were read to be decoded */
    PEN_SPAN_WAIT_BYTES, /* for memory of a sample */
    PEN_SPAN_WAIT_WORK,
    PEN_SPAN_NEXT,   /* the caller waits for a batch */
    PEN_SPAN_BATCH,  /* from the first sample of a batch to its last */
    PEN_SPAN_THREAD, /* not a span: the name of a thread */
    PEN_SPAN_COUNT
} PenSpanTag;

typedef struct PenSpan {
    uint64_t begin_ns, end_ns;
    uint64_t subject; /* number of the sample, or of the first block; of a thread, its number */
    uint64_t bytes;
    uint64_t epoch, batch;
    uint32_t tid;
    PenSpanTag tag;
    const char *name; /* of PEN_SPAN_THREAD: static text */
} PenSpan;

enum { PEN_SPAN_RING = 1 << 15 }; /* spans that fit: 2 MiB */

typedef struct PenSpanRing {
    struct PenSpanRing *next; /* of the trace */
    atomic_uint users;        /* the trace and the loader */
    _Atomic uint64_t added, taken, dropped;
    PenSpan spans[PEN_SPAN_RING];
} PenSpanRing;

PenSpanRing *pen__span_ring_new(void); /* with two users; NULL: no memory */
void pen__span_ring_leave(PenSpanRing *ring);
bool pen__span_ring_is_left(const PenSpanRing *ring); /* one user is left */

void pen__span_ring_add(PenSpanRing *ring, const PenSpan *span);
/* How many there are to take, and one of them; then `n` have been taken. */
uint64_t pen__span_ring_ready(const PenSpanRing *ring);
const PenSpan *pen__span_ring_at(const PenSpanRing *ring, uint64_t i);
void pen__span_ring_take(PenSpanRing *ring, uint64_t n);

#endif
