/* SPDX-License-Identifier: Apache-2.0 */
#include "load/spans.h"

#include "base/attr.h"
#include "base/thread.h"

/* What a sample has taken in a stage is not one span: the stages alternate. It is shown as one that
 * ends with the span around it, or where the stage after it begins. */
static uint64_t add_stage(const PenThread *me, const PenSpan *around, PenSpanTag tag, uint64_t ns,
                          uint64_t end_ns)
{
    PenSpan s = *around;
    s.tag = tag;
    s.end_ns = end_ns;
    s.begin_ns = end_ns - PEN_MIN(ns, end_ns - around->begin_ns);
    pen__span_ring_add(me->spans, &s);
    return s.begin_ns;
}

static PenSpan span_of(const PenThread *me, const PenTask *t, PenSpanTag tag, uint64_t begin_ns)
{
    return (PenSpan){.tag = tag,
                     .tid = me->tid,
                     .begin_ns = begin_ns,
                     .end_ns = me->since_ns,
                     .subject = t->to.sample,
                     .bytes = t->bytes_read,
                     .epoch = t->to.epoch,
                     .batch = t->to.batch};
}

void pen__spans_request(const PenThread *me, uint64_t block, uint64_t bytes, uint64_t begin_ns)
{
    if (PEN_LIKELY(!me->spans))
        return;
    pen__span_ring_add(me->spans, &(PenSpan){.tag = PEN_SPAN_REQUEST,
                                             .tid = me->tid,
                                             .begin_ns = begin_ns,
                                             .end_ns = me->since_ns,
                                             .subject = block,
                                             .bytes = bytes});
}

void pen__spans_read(const PenThread *me, const PenTask *task, uint64_t begin_ns)
{
    if (PEN_LIKELY(!me->spans))
        return;
    PenSpan s = span_of(me, task, PEN_SPAN_READ, begin_ns);
    pen__span_ring_add(me->spans, &s);
    if (task->timed)
        (void)add_stage(me, &s, PEN_SPAN_VERIFY, task->clock.ns[PEN_TIMED_VERIFY], s.end_ns);
}

void pen__spans_decode(const PenThread *me, const PenTask *task, uint64_t sample, uint64_t begin_ns)
{
    if (PEN_LIKELY(!me->spans))
        return;
    PenSpan s = span_of(me, task, PEN_SPAN_DECODE, begin_ns);
    s.subject = sample;
    pen__span_ring_add(me->spans, &s);
    if (!task->timed)
        return;
    uint64_t store = task->clock.ns[PEN_TIMED_STORE], rows = task->clock.ns[PEN_TIMED_ROWS];
    uint64_t at = add_stage(me, &s, PEN_SPAN_STORE, store, s.end_ns);
    (void)add_stage(me, &s, PEN_SPAN_RESAMPLE, rows > store ? rows - store : 0, at);
}

void pen__spans_sample_done(const PenThread *me, const PenTask *task)
{
    if (PEN_LIKELY(!me->spans) || task->to.slot->left > 0)
        return;
    PenSpan s = span_of(me, task, PEN_SPAN_BATCH, task->to.slot->opened_ns);
    pen__span_ring_add(me->spans, &s);
}

void pen__spans_next(const PenThreads *threads, const PenEpochPass *pass, uint64_t begin_ns,
                     uint64_t end_ns)
{
    if (PEN_LIKELY(!threads->spans))
        return;
    pen__span_ring_add(threads->spans, &(PenSpan){.tag = PEN_SPAN_NEXT,
                                                  .tid = pen__thread_id(),
                                                  .begin_ns = begin_ns,
                                                  .end_ns = end_ns,
                                                  .epoch = pass->order.epoch,
                                                  .batch = pass->delivered});
}
