/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/pass.h"

static void open_batch(PenEpochPass *p)
{
    const PenSplit *s = &p->split;
    if (!s->lengths)
        return;
    p->length = pen__lengths_at(s->lengths, s->epoch, s->step + p->next_batch);
    p->batch = s->lengths->batch[p->length];
}

void pen__epoch_pass_init(PenEpochPass *p)
{
    p->batch = p->split.batch;
    open_batch(p);
}

bool pen__epoch_pass_is_running(const PenEpochPass *p)
{
    return !p->ended && !p->status;
}

bool pen__epoch_pass_has_next(const PenEpochPass *p)
{
    return pen__epoch_pass_is_running(p) && p->next_batch < p->steps;
}

PenPassSample pen__epoch_pass_peek(const PenEpochPass *p)
{
    PenPassSample s = {.index = p->next_sample};
    s.position = pen__split_nth(&p->split, p->assigned, &s.valid);
    s.chosen = pen__order_at(&p->order, s.position);
    if (p->order.table)
        s.valid = s.valid && !pen__bucket_table_fills(p->order.table, s.position);
    return s;
}

uint64_t pen__epoch_pass_batch_at(const PenEpochPass *p)
{
    const PenSplit *s = &p->split;
    bool valid;
    if (s->by_batch)
        return pen__split_position(s, p->next_batch, 0, &valid);
    return s->start + pen__split_samples(s, p->next_batch) * s->world;
}

void pen__epoch_pass_advance(PenEpochPass *p)
{
    p->assigned++;
    if (++p->next_sample < p->batch)
        return;
    p->next_sample = 0;
    p->next_batch++;
    open_batch(p);
}

void pen__epoch_pass_fail(PenEpochPass *p, int status, const PenError *error)
{
    p->error = *error;
    p->status = status;
}

int pen__epoch_pass_take_error(PenEpochPass *p, PenError *reterr)
{
    int r = p->status;
    if (r < 0 && reterr)
        *reterr = p->error;
    p->status = PEN_OK;
    return r;
}

uint64_t pen__epoch_pass_position(const PenEpochPass *p)
{
    const PenSplit *s = &p->split;
    if (p->delivered == p->steps)
        return s->n;
    return s->start + pen__split_samples(s, p->delivered) * s->world;
}
