/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that do not fit in memory, and the order of inputs. All that are spilled go to one sorter,
 * whose key has a number for each range of inputs (u32), then the number of the input (u64), or its
 * key in a range that is ordered by keys. Both are big-endian. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "ingest/source/input.h"

#define WHERE "ingest/plan"
#define REPORT_EVERY 65536

enum { RANGE_BYTES = 4, NUMBER_BYTES = 8 };

static void store_be(uint8_t *to, uint64_t v, int bytes)
{
    for (int i = bytes; i-- > 0; v >>= 8)
        to[i] = (uint8_t)v;
}

/* ---- spilling -------------------------------------------------------------------------------- */

/* `number` is the input's own, unless its range is ordered by keys. */
static int spill_item(PenInputs *in, uint64_t i, uint64_t number, PenError *reterr)
{
    PenInput input;
    uint8_t *to;
    bool by_key = in->range.is_open && i >= in->range.first;
    pen__inputs_get(in, i, &input);
    uint32_t key_bytes = RANGE_BYTES + (by_key ? input.key_bytes : NUMBER_BYTES);
    int r =
        pen__sorter_add(in->spilled, key_bytes, (uint32_t)pen__input_bytes(&input), &to, reterr);
    if (r < 0)
        return r;
    store_be(to, 2 * in->range.number + by_key, RANGE_BYTES);
    if (by_key)
        memcpy(to + RANGE_BYTES, input.key, input.key_bytes);
    else
        store_be(to + RANGE_BYTES, number, NUMBER_BYTES);
    pen__input_store(to + key_bytes, &input);
    return PEN_OK;
}

static int begin_spilling(PenInputs *in, PenError *reterr)
{
    PenInput first;
    pen__inputs_get(in, 0, &first);
    pen__input_name(in, &first, in->first_name, sizeof in->first_name);
    in->first_is_labelled = first.label != PEN_NO_LABEL;
    return pen__sorter_open(&in->space, &in->spilled, reterr);
}

int pen__inputs_spill(PenInputs *in, bool all, PenError *reterr)
{
    uint64_t n = in->n_items;
    size_t bytes = in->arena.bytes + (size_t)n * sizeof *in->items;
    if (!in->space.path || !n || (!all && bytes < in->space.memory))
        return PEN_OK;
    int r = PEN_OK;
    if (in->has_unmeasured && pen_is_remote(in->roots[in->n_roots - 1].path))
        r = pen__inputs_measure(in, in->unmeasured, reterr);
    if (r == PEN_OK && !in->spilled)
        r = begin_spilling(in, reterr);
    for (uint64_t i = 0; r == PEN_OK && i < n; i++)
        r = spill_item(in, i, in->n - n + i, reterr);
    if (r < 0)
        return r;
    in->range.is_spilled = in->range.is_open;
    in->range.first = 0;
    in->unmeasured = 0;
    in->n_items = 0;
    in->arena.bytes = 0;
    return PEN_OK;
}

int pen__inputs_finish(PenInputs *in, PenError *reterr)
{
    if (!in->spilled) {
        pen__inputs_trim(in);
        return PEN_OK;
    }
    int r = pen__inputs_spill(in, true, reterr);
    pen__buf_free(&in->arena);
    pen__free(in->items);
    in->items = NULL;
    in->cap = 0;
    return r;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b, void *ctx)
{
    const PenInputs *in = ctx;
    const uint8_t *p = in->arena.data + ((const struct PenInputAt *)a)->at;
    const uint8_t *q = in->arena.data + ((const struct PenInputAt *)b)->at;
    uint32_t m = pen__load32(p), n = pen__load32(q);
    int order = memcmp(p + PEN_INPUT_HEAD, q + PEN_INPUT_HEAD, PEN_MIN(m, n));
    return order ? order : (m > n) - (m < n);
}

void pen__inputs_sort_begin(PenInputs *in)
{
    in->range.is_open = true;
    in->range.is_spilled = false;
    in->range.first = in->n_items;
}

int pen__inputs_sort_end(PenInputs *in, PenError *reterr)
{
    int r = PEN_OK;
    uint64_t first = in->range.first;
    if (in->range.is_spilled)
        r = pen__inputs_spill(in, true, reterr);
    else if (in->n_items - first > 1)
        qsort_r(in->items + first, (size_t)(in->n_items - first), sizeof *in->items, by_key, in);
    in->range.is_open = false;
    in->range.number++;
    return r;
}

/* ---- walking --------------------------------------------------------------------------------- */

int pen__inputs_start(const PenInputs *in, const char *stage, PenInputWalk *ret, PenError *reterr)
{
    *ret = (PenInputWalk){.inputs = in, .stage = stage};
    return in->spilled ? pen__sorter_start(in->spilled, reterr) : PEN_OK;
}

int pen__inputs_next(PenInputWalk *w, PenInput *ret, PenError *reterr)
{
    const PenInputs *in = w->inputs;
    PenSorted sorted;
    int r = w->next == in->n ? PEN_END : PEN_OK;
    if (r == PEN_OK && w->next % REPORT_EVERY == 0)
        r = pen__inputs_report(in, w->stage, w->next, in->n, reterr);
    if (r != PEN_OK)
        return r;
    if (in->spilled) {
        r = pen__sorter_next(in->spilled, &sorted, reterr);
        if (r != PEN_OK)
            return r;
        pen__input_load(sorted.data, ret);
    } else {
        pen__inputs_get(in, w->next, ret);
    }
    ret->number = w->next++;
    return PEN_OK;
}
