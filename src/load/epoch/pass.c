/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/pass.h"

static void open_batch(PenEpochPass *p)
{
    if (p->next_batch < p->steps)
        p->step = pen__split_step(&p->split, p->next_batch);
}

void pen__epoch_pass_init(PenEpochPass *p)
{
    p->split.deal = p->split.has_pairs && !p->order.table
                        ? PEN_DEAL_IN_TURN /* which leaves both of a pair with one rank */
                        : pen__deal_for(&p->order, p->split.world);
    p->split.streams = p->order.streams;
    p->split.table = p->order.table;
    p->steps = p->split.start < p->split.n ? pen__split_steps(&p->split) : 0;
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
    s.position = pen__split_position(&p->split, &p->step, p->next_sample, &s.valid);
    s.chosen = pen__order_at(&p->order, s.position);
    if (p->order.table)
        s.valid = s.valid && !pen__bucket_table_fills(p->order.table, s.position);
    return s;
}

void pen__epoch_pass_advance(PenEpochPass *p)
{
    bool is_empty = pen__epoch_pass_is_empty(p);
    p->assigned += !is_empty;
    if (!is_empty && ++p->next_sample < p->step.samples)
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
    return s->start + pen__split_places(s, p->delivered) * s->world;
}
