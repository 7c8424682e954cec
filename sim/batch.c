/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a rank, as the loader makes them: a sample has its place in a slot before its block is
 * here, those whose block is here are made first, and batches leave in order. One decoder makes one
 * sample after another. */
#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "sim/rank.h"

#define WHERE "sim/batch"

enum { SLOTS_MORE = 2 };

int pen__sim_batch_init(PenSimRank *k, PenError *reterr)
{
    uint64_t batch = k->job->s->batch;
    k->n_slots = PEN_MIN(k->job->s->prefetch, 1024u) + SLOTS_MORE;
    k->slots = pen__alloc_array(k->n_slots, sizeof *k->slots);
    k->next = pen__alloc_array(k->n_slots * batch, sizeof *k->next);
    return k->slots && k->next ? PEN_OK : pen__fail_memory(reterr, WHERE, "batches");
}

void pen__sim_batch_fini(PenSimRank *k)
{
    pen__free(k->slots);
    pen__free(k->next);
}

static void make(PenSimRank *k, uint32_t place)
{
    const PenSimSettings *s = k->job->s;
    PenSimSlot *slot = &k->slots[place / s->batch];
    k->made_ns =
        PEN_MAX(k->made_ns, pen__sim_rank_now(k)) + (uint64_t)(s->decode_ms * 1e6 / s->batch);
    slot->made_ns = k->made_ns;
    slot->left--;
}

void pen__sim_batch_arrived(PenSimRank *k, PenBlockPart *b)
{
    uint32_t place = (uint32_t)(uintptr_t)b->waiting;
    b->waiting = NULL;
    for (; place; place = k->next[place - 1]) {
        make(k, place - 1);
        pen__schedule_sample_done(&k->schedule, b);
    }
}

bool pen__sim_batch_place(PenSimRank *k)
{
    uint64_t batch = k->job->s->batch, end = PEN_MIN(k->schedule.cursor, k->schedule.n);
    uint64_t places = (k->released + k->n_slots) * batch, before = k->given;
    for (; k->given < end && k->given < places; k->given++) {
        uint32_t place = (uint32_t)(k->given % (batch * k->n_slots));
        if (place % batch == 0)
            k->slots[place / batch] = (PenSimSlot){.left = (uint32_t)batch};
        PenBlockPart *b = pen__schedule_take(&k->schedule);
        if (b->state == PEN_FETCH_ARRIVED) {
            make(k, place);
            pen__schedule_sample_done(&k->schedule, b);
        } else {
            k->next[place] = (uint32_t)(uintptr_t)b->waiting;
            b->waiting = (void *)(uintptr_t)(place + 1);
        }
    }
    return k->given != before;
}
