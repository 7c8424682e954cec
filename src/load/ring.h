/* SPDX-License-Identifier: Apache-2.0 */
/* Slots and leases. A slot is free, pending (being filled, or full until its turn comes), or leased
 * to the caller as a batch. The number of slots grows while the caller holds many, as far as the
 * memory allows, and shrinks again afterwards.
 *
 * Lock rule: the lock of lock.h guards the lists and counters of the ring, and the members of a
 * slot. It is held for every function but init and fini. Without the lock are written: the memory
 * of a pending slot, by the threads to whose tasks its samples are assigned, each its own part; and
 * `refs` of a leased slot, which is atomic. A leased slot belongs to the caller. */
#ifndef PEN_LOAD_RING_H
#define PEN_LOAD_RING_H

#include <stdatomic.h>

#include "load/lock.h"
#include "load/plan/plan.h"

/* Another sample took the place of a broken one. */
typedef struct PenReplacement {
    uint32_t index; /* in the batch */
    PenBadSample bad;
} PenReplacement;

typedef struct PenSlot {
    PenBatch batch; /* first: a batch pointer is a slot pointer */
    void *owner;    /* of the ring; NULL: the slot is in none */
    struct PenSlot *next;
    atomic_uint refs;
    uint32_t left;             /* samples that are not done; 0 = it is full */
    PenPassStep step;          /* which samples of the global batch it has */
    uint64_t opened_ns;        /* when its first sample was assigned; for a trace */
    const PenOutField *fields; /* of its bucket */
    PenTensor *tensors;
    PenList *lists; /* NULL: the pipeline has none */
    uint64_t *samples;
    uint64_t *ordinals; /* NULL: all are 0 */
    uint8_t *valid;
    void *block; /* the allocation that batch.memory lies in */
    int status;  /* of the first sample in order that failed */
    uint32_t failed_index;
    PenError error;
    PenBuf replacements; /* PenReplacement each, in no order */
} PenSlot;

typedef struct PenRing {
    PenLoadLock *lock;
    const PenLoadPlan *plan;
    void *owner;
    PenSlot *pending, **pending_end; /* in the order of batches */
    PenSlot *open;                   /* the last one, if more samples go into it; else NULL */
    PenSlot *free;
    uint32_t n_slots, n_pending, n_full, n_leased;
    uint64_t bytes; /* of all slots */
} PenRing;

void pen__ring_init(PenRing *r, const PenLoadPlan *plan, PenLoadLock *lock, void *owner);
void pen__ring_fini(PenRing *r); /* when no slot is leased */

/* ---- filling ---- */

bool pen__ring_can_open(const PenRing *r); /* may another batch be begun? */
/* Begins a batch in a slot that becomes `open`; NULL: no memory. */
PenSlot *pen__ring_open(PenRing *r, PenError *reterr);
/* The place of a sample in the open slot; the last one of the batch closes it. */
void pen__ring_add_sample(PenRing *r, uint32_t index, uint64_t sample, bool valid);
/* The open slot has no samples: it is full. */
void pen__ring_close_empty(PenRing *r);
/* A sample of a pending slot is done, with `status` and the error of a failed one. */
void pen__ring_sample_done(PenRing *r, PenSlot *s, uint32_t index, int status,
                           const PenError *error);
/* A slot outside of the ring, without the lock; free accepts NULL. */
PenSlot *pen__slot_new(const PenLoadPlan *plan, PenError *reterr);
/* Its batch gets the shapes of a bucket or length, and n samples; a new slot has those of the
 * first, full. */
void pen__slot_set_shape(const PenLoadPlan *plan, PenSlot *s, uint32_t shape, uint32_t n);
void pen__slot_free(PenSlot *s);
int pen__slot_add_replacement(PenSlot *s, const PenReplacement *what); /* negative: no memory */

/* ---- batches ---- */

bool pen__ring_is_ready(const PenRing *r);      /* is the first pending slot full? */
bool pen__ring_is_exhausted(const PenRing *r);  /* all slots are leased, and there is no other */
PenSlot *pen__ring_pop(PenRing *r);             /* the first pending slot */
void pen__ring_lease(PenRing *r, PenSlot *s);   /* a slot that was popped */
void pen__ring_return(PenRing *r, PenSlot *s);  /* a slot that was leased */
void pen__ring_recycle(PenRing *r, PenSlot *s); /* a slot that was popped and is not leased */
void pen__ring_clear(PenRing *r);               /* recycles all pending slots, and shrinks */

#endif
