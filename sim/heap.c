/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/heap.h"

#include "base/attr.h"
#include "base/mem.h"

static bool is_before(const PenSimEvent *a, const PenSimEvent *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void set(PenSimHeap *h, size_t i, PenSimEvent *e)
{
    h->events[i] = e;
    e->place = i + 1;
}

static void settle(PenSimHeap *h, size_t i, PenSimEvent *e)
{
    for (; i > 0 && is_before(e, h->events[(i - 1) / 2]); i = (i - 1) / 2)
        set(h, i, h->events[(i - 1) / 2]);
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && is_before(h->events[child + 1], h->events[child]))
            child++;
        if (!is_before(h->events[child], e))
            break;
        set(h, i, h->events[child]);
    }
    set(h, i, e);
}

bool pen__sim_heap_reserve(PenSimHeap *h, size_t n)
{
    if (n <= h->cap)
        return true;
    size_t cap = PEN_MAX(n, h->cap * 2);
    PenSimEvent **more = pen__resize(h->events, cap * sizeof(PenSimEvent *));
    if (!more)
        return false;
    h->events = more;
    h->cap = cap;
    return true;
}

void pen__sim_heap_put(PenSimHeap *h, PenSimEvent *e)
{
    settle(h, e->place ? e->place - 1 : h->n++, e);
}

void pen__sim_heap_take(PenSimHeap *h, PenSimEvent *e)
{
    if (!e->place)
        return;
    PenSimEvent *last = h->events[--h->n];
    if (last != e)
        settle(h, e->place - 1, last);
    e->place = 0;
}

void pen__sim_heap_fini(PenSimHeap *h)
{
    pen__free(h->events);
    *h = (PenSimHeap){0};
}
