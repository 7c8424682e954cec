/* SPDX-License-Identifier: Apache-2.0 */
/* Slots and leases. A slot is free, under way (being filled, or full and waiting its turn), or
 * leased. Their number grows while the caller holds many, as far as the memory goes, and shrinks
 * again afterwards. */
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "load/core.h"

#define WHERE "load/ring"

enum { ALIGN = 4096 }; /* pages, so that a slot can be pinned by itself */

static uint64_t slot_weight(const PenLoadPlan *plan)
{
    return plan->slot_bytes + PEN_SLOT_EXTRA + (uint64_t)plan->set.batch_size * 16;
}

void pen__slot_free(PenSlot *s)
{
    if (!s)
        return;
    pen__buf_free(&s->swaps);
    pen__free(s->tensors);
    pen__free(s->samples);
    pen__free(s->valid);
    pen__free(s->block);
    pen__free(s);
}

static void describe(PenCore *c, PenSlot *s)
{
    const PenLoadPlan *plan = &c->plan;
    uintptr_t at = ((uintptr_t)s->block + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    s->core = c;
    s->batch.struct_size = sizeof s->batch;
    s->batch.memory = (void *)at;
    s->batch.memory_bytes = (size_t)plan->slot_bytes;
    s->batch.n_samples = plan->set.batch_size;
    s->batch.n_fields = plan->n_fields;
    s->batch.fields = s->tensors;
    s->batch.samples = s->samples;
    s->batch.valid = s->valid;
    for (uint32_t i = 0; i < plan->n_fields; i++) {
        s->tensors[i] = plan->fields[i].tensor;
        s->tensors[i].data = (uint8_t *)s->batch.memory + plan->fields[i].offset;
    }
}

static PenSlot *new_slot(PenCore *c, PenError *reterr)
{
    const PenLoadPlan *plan = &c->plan;
    PenSlot *s = pen__zalloc(sizeof *s);
    if (s) {
        s->block = pen__alloc_array(plan->slot_bytes + ALIGN, 1);
        s->tensors = pen__alloc_array(plan->n_fields, sizeof *s->tensors);
        s->samples = pen__alloc_array(plan->set.batch_size, sizeof *s->samples);
        s->valid = pen__alloc_array(plan->set.batch_size, 1);
    }
    if (!s || !s->block || !s->tensors || !s->samples || !s->valid) {
        pen__slot_free(s);
        pen__fail_memory(reterr, WHERE, "batch");
        return NULL;
    }
    pen__ask_huge(s->block, (size_t)plan->slot_bytes);
    describe(c, s);
    c->n_slots++;
    c->ring_bytes += slot_weight(plan);
    return s;
}

bool pen__ring_can_grow(const PenCore *c)
{
    return c->ring_bytes + slot_weight(&c->plan) <= c->plan.shares.ring;
}

/* One slot is always left for the caller, who usually holds the batch before. */
bool pen__ring_has_room(const PenCore *c)
{
    return c->n_under_way + 1 < c->plan.slots && (c->free_slots || pen__ring_can_grow(c));
}

PenSlot *pen__ring_take(PenCore *c, PenError *reterr)
{
    PenSlot *s = c->free_slots;
    if (s)
        c->free_slots = s->next;
    else
        s = new_slot(c, reterr);
    if (!s)
        return NULL;
    s->next = NULL;
    s->left = c->plan.set.batch_size;
    s->status = PEN_OK;
    s->failed_index = UINT32_MAX;
    s->swaps.bytes = 0;
    *c->under_way_end = s;
    c->under_way_end = &s->next;
    c->n_under_way++;
    return s;
}

static void drop_slot(PenCore *c, PenSlot *s)
{
    c->n_slots--;
    c->ring_bytes -= slot_weight(&c->plan);
    pen__slot_free(s);
}

void pen__ring_recycle(PenCore *c, PenSlot *s)
{
    if (c->stop) {
        drop_slot(c, s);
    } else {
        s->next = c->free_slots;
        c->free_slots = s;
    }
    pthread_cond_broadcast(&c->for_io);
}

/* A loop that takes the next batch before it lets go of the last one holds two. */
void pen__ring_shrink(PenCore *c)
{
    while (c->free_slots && c->n_slots > c->plan.slots + 1 && !c->plan.set.keep_slots) {
        PenSlot *s = c->free_slots;
        c->free_slots = s->next;
        drop_slot(c, s);
    }
}

PenBatch *pen_batch_ref(PenBatch *batch)
{
    atomic_fetch_add(&((PenSlot *)batch)->refs, 1);
    return batch;
}

void pen_batch_unref(PenBatch **batch)
{
    if (!batch || !*batch)
        return;
    PenSlot *s = (PenSlot *)*batch;
    PenCore *c = s->core;
    *batch = NULL;
    /* In the child of a fork the lock may be held by nobody who is there: the memory stays as it
     * is. */
    if (atomic_fetch_sub(&s->refs, 1) != 1 || c->pid != getpid())
        return;
    pthread_mutex_lock(&c->mutex);
    c->n_leased--;
    pen__ring_recycle(c, s);
    pen__core_unref(c);
}
