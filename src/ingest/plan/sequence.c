/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs in the order of the pack. Where they are in memory it has their numbers, else the
 * inputs themselves. */
#include "base/bytes.h"
#include "ingest/plan/plan_impl.h"

int pen__sequence_open(PenSequence *q, const PenInputs *in, PenError *reterr)
{
    *q = (PenSequence){.inputs = in};
    return in->spilled ? pen__sorter_open(&in->space, &q->sorter, reterr)
                       : pen__scatter_open(&in->space, in->n, 1, &q->numbers, reterr);
}

int pen__sequence_add(PenSequence *q, uint64_t position, const PenInput *input, PenError *reterr)
{
    uint8_t *to;
    if (q->numbers)
        return pen__scatter_add(q->numbers, &(PenPlaced){position, input->number, 0}, reterr);
    int r =
        pen__sorter_add(q->sorter, sizeof position, (uint32_t)pen__input_bytes(input), &to, reterr);
    if (r < 0)
        return r;
    pen__store64(to, __builtin_bswap64(position));
    pen__input_store(to + sizeof position, input);
    return PEN_OK;
}

int pen__sequence_start(PenSequence *q, PenError *reterr)
{
    return q->sorter ? pen__sorter_start(q->sorter, reterr) : PEN_OK;
}

int pen__sequence_next(PenSequence *q, PenInput *ret, PenError *reterr)
{
    PenPlaced at;
    PenSorted sorted;
    int r = q->sorter ? pen__sorter_next(q->sorter, &sorted, reterr)
                      : pen__scatter_next(q->numbers, &at, reterr);
    if (r == PEN_OK && q->sorter)
        pen__input_load(sorted.data, ret);
    else if (r == PEN_OK)
        pen__inputs_get(q->inputs, at.a, ret);
    return r;
}

void pen__sequence_close(PenSequence *q)
{
    pen__sorter_close(&q->sorter);
    pen__scatter_close(&q->numbers);
}
