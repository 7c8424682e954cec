/* SPDX-License-Identifier: Apache-2.0 */
/* What is to happen, by its time. An event lies in the thing it is of, and knows its place. */
#ifndef PEN_SIM_HEAP_H
#define PEN_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct PenSimEvent {
    uint64_t at;
    uint64_t order; /* at the same time, the lower first; no two are equal */
    size_t place;   /* in its heap, from 1; 0: in none */
} PenSimEvent;

/* Zero-initialised is empty. */
typedef struct PenSimHeap {
    PenSimEvent **events;
    size_t n, cap;
} PenSimHeap;

static inline PenSimEvent *pen__sim_heap_first(const PenSimHeap *h)
{
    return h->n ? h->events[0] : NULL;
}

bool pen__sim_heap_reserve(PenSimHeap *h, size_t n); /* for n; false: no memory */
/* Memory for it has been reserved. One that is in it already is moved to its new time. */
void pen__sim_heap_put(PenSimHeap *h, PenSimEvent *e);
void pen__sim_heap_take(PenSimHeap *h, PenSimEvent *e); /* out; accepts one that is in none */
void pen__sim_heap_fini(PenSimHeap *h);

#endif
