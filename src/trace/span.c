/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/span.h"

#include "base/mem.h"

PenSpanRing *pen__span_ring_new(void)
{
    PenSpanRing *r = pen__alloc(sizeof *r);
    if (!r)
        return NULL;
    r->next = NULL;
    atomic_init(&r->users, 2);
    atomic_init(&r->added, 0);
    atomic_init(&r->taken, 0);
    atomic_init(&r->dropped, 0);
    return r;
}

void pen__span_ring_leave(PenSpanRing *ring)
{
    if (ring && atomic_fetch_sub(&ring->users, 1) == 1)
        pen__free_large(ring, sizeof *ring);
}

bool pen__span_ring_is_left(const PenSpanRing *ring)
{
    return atomic_load(&ring->users) == 1;
}

void pen__span_ring_add(PenSpanRing *ring, const PenSpan *span)
{
    uint64_t at = atomic_load_explicit(&ring->added, memory_order_relaxed);
    if (at - atomic_load_explicit(&ring->taken, memory_order_acquire) >= PEN_SPAN_RING) {
        atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
        return;
    }
    ring->spans[at % PEN_SPAN_RING] = *span;
    atomic_store_explicit(&ring->added, at + 1, memory_order_release);
}

uint64_t pen__span_ring_ready(const PenSpanRing *ring)
{
    return atomic_load_explicit(&ring->added, memory_order_acquire) -
           atomic_load_explicit(&ring->taken, memory_order_relaxed);
}

const PenSpan *pen__span_ring_at(const PenSpanRing *ring, uint64_t i)
{
    uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    return &ring->spans[(taken + i) % PEN_SPAN_RING];
}

void pen__span_ring_take(PenSpanRing *ring, uint64_t n)
{
    uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    atomic_store_explicit(&ring->taken, taken + n, memory_order_release);
}
