/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/pass.h"

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
    s.position = pen__split_position(&p->split, p->next_batch, p->next_sample, &s.valid);
    s.chosen = pen__order_at(&p->order, s.position);
    if (p->order.table)
        s.valid = s.valid && !pen__bucket_table_fills(p->order.table, s.position);
    return s;
}

void pen__epoch_pass_advance(PenEpochPass *p)
{
    if (++p->next_sample < p->split.batch)
        return;
    p->next_sample = 0;
    p->next_batch++;
}

uint64_t pen__epoch_pass_assigned(const PenEpochPass *p)
{
    return p->next_batch * p->split.batch + p->next_sample;
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
    return s->start + p->delivered * s->batch * (uint64_t)s->world;
}
