/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/split.h"

#include "base/attr.h"

PenDeal pen__deal_for(const PenOrder *order, uint32_t world)
{
    if (order->table || (!order->streams && order->plan.kind == PEN_ORDER_SEQUENTIAL))
        return PEN_DEAL_IN_PARTS;
    /* Pairs of streams share blocks. */
    return order->streams && order->streams / 2 % world ? PEN_DEAL_BY_STREAM : PEN_DEAL_IN_TURN;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static uint64_t samples_left(const PenSplit *s)
{
    return s->start < s->n ? s->n - s->start : 0;
}

uint64_t pen__split_steps(const PenSplit *s)
{
    uint64_t global = (uint64_t)s->batch * s->world;
    uint64_t left = samples_left(s);
    bool is_kept = s->last_batch != PEN_LAST_DROP; /* a step that is not full */
    if (s->lengths)
        return pen__lengths_steps(s->lengths, s->epoch, s->step,
                                  left / s->world + (is_kept && left % s->world != 0), is_kept);
    return left / global + (is_kept && left % global != 0);
}

uint64_t pen__split_places(const PenSplit *s, uint64_t g)
{
    return s->lengths ? pen__lengths_samples(s->lengths, s->epoch, s->step, g) : g * s->batch;
}

uint64_t pen__split_samples(const PenSplit *s, uint64_t g)
{
    uint64_t sum = 0;
    if (s->last_batch != PEN_LAST_SHORT || !g)
        return pen__split_places(s, g);
    if (!s->table) /* all steps before the last one are full */
        return pen__split_places(s, g - 1) + pen__split_step(s, g - 1).samples;
    for (uint64_t i = 0; i < g; i++)
        sum += pen__split_step(s, i).samples;
    return sum;
}

/* Of the positions below `end`, those of the ranks before `rank`, dealt in turn. */
static uint64_t dealt_before(uint64_t end, uint32_t rank, uint32_t world)
{
    return end / world * rank + PEN_MIN(end % world, (uint64_t)rank);
}

static uint64_t before(const PenSplit *s, const PenPassStep *step, uint32_t rank)
{
    if (s->deal == PEN_DEAL_IN_TURN)
        return dealt_before(step->first + step->n, rank, s->world) -
               dealt_before(step->first, rank, s->world);
    return step->n / s->world * rank + step->n % s->world * rank / s->world;
}

/* The first position from `first` on that is `rest` modulo `modulus`. */
static uint64_t next_with(uint64_t first, uint64_t rest, uint64_t modulus)
{
    return first + (rest + modulus - first % modulus) % modulus;
}

/* Samples of a batch of a table, whose padding lies at its end. */
static uint32_t without_padding(const PenSplit *s, const PenPassStep *step)
{
    uint32_t n = step->valid;
    while (n && pen__bucket_table_fills(s->table, step->first + step->before + n - 1))
        n--;
    return n;
}

PenPassStep pen__split_step(const PenSplit *s, uint64_t g)
{
    uint64_t done = pen__split_places(s, g) * s->world, left = samples_left(s);
    PenPassStep step = {.first = s->start + done, .batch = s->batch};
    if (s->lengths) {
        step.length = pen__lengths_at(s->lengths, s->epoch, s->step + g);
        step.batch = s->lengths->batch[step.length];
    }
    step.n = PEN_MIN((uint64_t)step.batch * s->world, left - PEN_MIN(done, left));
    step.before = before(s, &step, s->rank);
    step.valid = (uint32_t)(before(s, &step, s->rank + 1) - step.before);
    if (s->last_batch == PEN_LAST_SHORT && s->table)
        step.valid = without_padding(s, &step);
    step.samples = s->last_batch == PEN_LAST_SHORT ? step.valid : step.batch;
    step.row = (uint64_t)s->rank * step.batch;
    step.row_step = 1;
    if (s->deal == PEN_DEAL_IN_TURN) {
        step.row = next_with(step.first, s->rank, s->world) - step.first;
        step.row_step = s->world;
    }
    return step;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* How many of n positions from `first` on are `rest` modulo `modulus`? */
static uint64_t count_with(uint64_t first, uint64_t n, uint64_t rest, uint64_t modulus)
{
    uint64_t skipped = next_with(first, rest, modulus) - first;
    return skipped < n ? (n - skipped - 1) / modulus + 1 : 0;
}

/* The k-th of n positions from `first` on, sorted by the lanes of their streams, and in a stream by
 * position, or back. The digits of a lane are those of its positions in reverse, so each step of
 * the search doubles the modulus. */
static uint64_t nth_by_stream(uint32_t streams, uint64_t first, uint64_t n, uint64_t k, bool back)
{
    uint64_t modulus = 3, rest = 0, count;
    while (rest < 2 && k >= (count = count_with(first, n, rest, modulus))) {
        k -= count;
        rest++;
    }
    for (; modulus < streams; modulus *= 2) {
        count = count_with(first, n, rest, 2 * modulus);
        if (k < count)
            continue;
        k -= count;
        rest += modulus;
    }
    if (back)
        k = count_with(first, n, rest, modulus) - 1 - k;
    return next_with(first, rest, modulus) + k * modulus;
}

/* What pads the last step begins with the first position, and is dealt as the others are, or
 * goes on from rank to rank. */
static uint64_t filling(const PenSplit *s, const PenPassStep *step, uint32_t i)
{
    if (s->deal == PEN_DEAL_IN_TURN)
        return (step->row + i * step->row_step - step->n) % s->n;
    uint64_t fills_before = (uint64_t)s->rank * step->batch - step->before;
    return (fills_before + (i - step->valid)) % s->n;
}

uint64_t pen__split_position(const PenSplit *s, const PenPassStep *step, uint32_t i,
                             bool *ret_valid)
{
    *ret_valid = i < step->valid;
    if (!*ret_valid)
        return filling(s, step, i);
    if (s->deal == PEN_DEAL_IN_TURN)
        return step->first + step->row + i * step->row_step;
    if (s->deal == PEN_DEAL_BY_STREAM)
        /* Back and forth, so that what a rank has of a stream in two global batches lies together.
         */
        return nth_by_stream(s->streams, step->first, step->n, step->before + i,
                             step->first / ((uint64_t)step->batch * s->world) % 2);
    return step->first + step->before + i;
}
