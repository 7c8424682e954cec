/* SPDX-License-Identifier: Apache-2.0 */
#include "load/ring.h"

#include <string.h>

#include "base/bytes.h"
#include "base/sys.h"

#define WHERE "load/ring"

enum { ALIGN = 4096 }; /* pages, so that a slot can be pinned by itself */

/* ---- slots ---- */

void pen__slot_free(PenSlot *s)
{
    if (!s)
        return;
    pen__buf_free(&s->replacements);
    pen__free(s->tensors);
    pen__free(s->lists);
    pen__free(s->samples);
    pen__free(s->ordinals);
    pen__free(s->valid);
    pen__free(s->block);
    pen__free(s);
}

static void describe_lists(const PenLoadPlan *plan, PenSlot *s)
{
    const uint8_t *memory = s->batch.memory;
    s->batch.lists = s->lists;
    for (uint32_t i = 0; i < plan->n_fields; i++) {
        const PenOutField *f = &s->fields[i];
        if (f->list && !f->mask)
            s->lists[i] = (PenList){.kind = f->list,
                                    .offsets = (const int64_t *)(const void *)(memory + f->lengths),
                                    .validity = memory + f->validity};
    }
}

void pen__slot_set_shape(const PenLoadPlan *plan, PenSlot *s, uint32_t shape, uint32_t n)
{
    s->batch.bucket = shape;
    s->batch.n_samples = s->left = n;
    s->fields = pen__load_plan_fields(plan, shape);
    for (uint32_t i = 0; i < plan->n_fields; i++) {
        s->tensors[i] = s->fields[i].tensor;
        s->tensors[i].data = (uint8_t *)s->batch.memory + s->fields[i].offset;
        if (s->tensors[i].shape[0] > 0) /* of a list it is -1 */
            s->tensors[i].shape[0] = n;
    }
    if (s->lists)
        describe_lists(plan, s);
}

static void describe(const PenLoadPlan *plan, PenSlot *s)
{
    uintptr_t at = ((uintptr_t)s->block + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    s->batch.memory = (void *)at;
    s->batch.memory_bytes = (size_t)plan->slot_bytes;
    s->batch.n_fields = plan->n_fields;
    s->batch.fields = s->tensors;
    s->batch.samples = s->samples;
    s->batch.ordinals = s->ordinals;
    s->batch.valid = s->valid;
    pen__slot_set_shape(plan, s, 0, pen__load_plan_batch(plan, 0));
}

PenSlot *pen__slot_new(const PenLoadPlan *plan, PenError *reterr)
{
    PenSlot *s = pen__zalloc(sizeof *s);
    if (s) {
        s->block = pen__alloc_array(plan->slot_bytes + ALIGN, 1);
        s->tensors = pen__alloc_array(plan->n_fields, sizeof *s->tensors);
        s->samples = pen__alloc_array(plan->set.batch_size, sizeof *s->samples);
        s->valid = pen__alloc_array(plan->set.batch_size, 1);
        if (pen__load_plan_repeats(plan))
            s->ordinals = pen__alloc_array(plan->set.batch_size, sizeof *s->ordinals);
        if (plan->n_lists)
            s->lists = pen__zalloc(plan->n_fields * sizeof *s->lists);
    }
    if (!s || !s->block || !s->tensors || !s->samples || !s->valid ||
        (pen__load_plan_repeats(plan) && !s->ordinals) || (plan->n_lists && !s->lists)) {
        pen__slot_free(s);
        pen__fail_memory(reterr, WHERE, "batch");
        return NULL;
    }
    pen__ask_huge(s->block, (size_t)plan->slot_bytes);
    describe(plan, s);
    return s;
}

static PenSlot *add_slot(PenRing *r, PenError *reterr)
{
    PenSlot *s = pen__slot_new(r->plan, reterr);
    if (!s)
        return NULL;
    s->owner = r->owner;
    r->n_slots++;
    r->bytes += r->plan->slot_cost;
    return s;
}

static void drop_slot(PenRing *r, PenSlot *s)
{
    r->n_slots--;
    r->bytes -= r->plan->slot_cost;
    pen__slot_free(s);
}

static void free_list(PenSlot *s)
{
    for (PenSlot *next; s; s = next) {
        next = s->next;
        pen__slot_free(s);
    }
}

void pen__ring_init(PenRing *r, const PenLoadPlan *plan, PenLoadLock *lock, void *owner)
{
    *r = (PenRing){.lock = lock, .plan = plan, .owner = owner};
    r->pending_end = &r->pending;
}

void pen__ring_fini(PenRing *r)
{
    free_list(r->free);
    free_list(r->pending);
}

/* ---- filling ---- */

static bool can_grow(const PenRing *r)
{
    return r->bytes + r->plan->slot_cost <= r->plan->shares.ring;
}

/* One slot is always left for the caller, who usually holds the batch before. */
bool pen__ring_can_open(const PenRing *r)
{
    return r->n_pending + 1 < r->plan->slots && (r->free || can_grow(r));
}

PenSlot *pen__ring_open(PenRing *r, PenError *reterr)
{
    PenSlot *s = r->free;
    if (s)
        r->free = s->next;
    else
        s = add_slot(r, reterr);
    if (!s)
        return NULL;
    s->next = NULL;
    s->opened_ns = pen__sys->now_ns();
    s->status = PEN_OK;
    s->failed_index = UINT32_MAX;
    s->replacements.bytes = 0;
    s->batch.n_valid = 0;
    s->batch.n_substituted = 0;
    *r->pending_end = s;
    r->pending_end = &s->next;
    r->n_pending++;
    r->open = s;
    return s;
}

void pen__ring_add_sample(PenRing *r, uint32_t index, uint64_t sample, bool valid)
{
    PenSlot *s = r->open;
    s->samples[index] = sample;
    s->valid[index] = valid;
    s->batch.n_valid += valid;
    if (index + 1 == s->batch.n_samples)
        r->open = NULL;
}

/* A pending slot is full. */
static void slot_done(PenRing *r, const PenSlot *s)
{
    r->n_full++;
    if (s == r->pending)
        pthread_cond_broadcast(&r->lock->caller);
}

void pen__ring_close_empty(PenRing *r)
{
    slot_done(r, r->open);
    r->open = NULL;
}

void pen__ring_sample_done(PenRing *r, PenSlot *s, uint32_t index, int status,
                           const PenError *error)
{
    if (status < 0 && index < s->failed_index) {
        s->failed_index = index;
        s->status = status;
        s->error = *error;
    }
    if (--s->left == 0)
        slot_done(r, s);
}

int pen__slot_add_replacement(PenSlot *s, const PenReplacement *what)
{
    s->samples[what->index] = what->bad.instead;
    return pen__buf_add(&s->replacements, what, sizeof *what);
}

/* ---- batches ---- */

bool pen__ring_is_ready(const PenRing *r)
{
    return r->pending && !r->pending->left;
}

bool pen__ring_is_exhausted(const PenRing *r)
{
    return !r->n_pending && !r->free && !can_grow(r);
}

PenSlot *pen__ring_pop(PenRing *r)
{
    PenSlot *s = r->pending;
    r->pending = s->next;
    if (!r->pending)
        r->pending_end = &r->pending;
    r->n_pending--;
    if (!s->left)
        r->n_full--;
    pthread_cond_broadcast(&r->lock->readers);
    return s;
}

void pen__ring_lease(PenRing *r, PenSlot *s)
{
    atomic_store(&s->refs, 1);
    r->n_leased++;
}

void pen__ring_recycle(PenRing *r, PenSlot *s)
{
    if (r->lock->stop) {
        drop_slot(r, s);
    } else {
        s->next = r->free;
        r->free = s;
    }
    pthread_cond_broadcast(&r->lock->readers);
}

void pen__ring_return(PenRing *r, PenSlot *s)
{
    r->n_leased--;
    pen__ring_recycle(r, s);
}

/* A loop that takes the next batch before it releases the last one holds two. */
static void shrink(PenRing *r)
{
    while (r->free && r->n_slots > r->plan->slots + 1 && !r->plan->set.keep_slots) {
        PenSlot *s = r->free;
        r->free = s->next;
        drop_slot(r, s);
    }
}

void pen__ring_clear(PenRing *r)
{
    while (r->pending)
        pen__ring_recycle(r, pen__ring_pop(r));
    r->open = NULL;
    shrink(r);
}
