/* SPDX-License-Identifier: Apache-2.0 */
/* Which inputs are taken, and in which order. Nothing here holds memory for each input beyond what
 * the space of the inputs allows. */
#include <stdbool.h>
#include <string.h>

#include "ingest/plan/plan_impl.h"
#include "ingest/spill/scatter.h"

#define WHERE "ingest/plan"

/* ---- shuffled places ------------------------------------------------------------------------- */

/* `ctx`: by input, its position. */
static int note_position(void *ctx, uint64_t position, uint64_t input, PenError *reterr)
{
    return pen__scatter_add(ctx, &(PenPlaced){input, position, 0}, reterr);
}

static int shuffle(const PenInputs *in, uint64_t seed, PenScatter **ret, PenError *reterr)
{
    int r = pen__scatter_open(&in->space, in->n, 1, ret, reterr);
    PenShuffle what = {in->n, seed, PEN_ORDER_STREAM, note_position, *ret};
    return r < 0 ? r : pen__shuffle(&what, &in->space, reterr);
}

/* ---- a fraction ------------------------------------------------------------------------------ */

/* ceil(fraction * n), without taking one more where the product is off by a rounding error. */
static uint64_t share(double fraction, uint64_t n)
{
    double x = fraction * (double)n - 1e-6;
    uint64_t k = x > 0 ? (uint64_t)x : 0;
    k += (double)k < x;
    return n && !k ? 1 : PEN_MIN(k, n);
}

/* By position, the label and the input; counts the inputs of each label. */
static int collect_labels(const PenInputs *in, PenScatter *positions, PenScatter *ret,
                          uint64_t *counts, PenError *reterr)
{
    PenInputWalk walk;
    PenInput input;
    PenPlaced at;
    int r = pen__inputs_start(in, "sort", &walk, reterr);
    while (r == PEN_OK && (r = pen__inputs_next(&walk, &input, reterr)) == PEN_OK) {
        uint32_t label = in->labels.n ? input.label : 0;
        counts[label]++;
        r = pen__scatter_next(positions, &at, reterr);
        if (r == PEN_OK)
            r = pen__scatter_add(ret, &(PenPlaced){at.a, label, input.number}, reterr);
    }
    return r == PEN_END ? PEN_OK : r;
}

/* Of each label the first ones of the shuffled list, as many as `left` says. */
static int choose(PenScatter *labels, uint64_t *left, PenScatter *ret, PenError *reterr)
{
    PenPlaced at;
    int r = PEN_OK;
    while (r == PEN_OK && (r = pen__scatter_next(labels, &at, reterr)) == PEN_OK)
        if (left[at.a]) {
            left[at.a]--;
            r = pen__scatter_add(ret, &(PenPlaced){at.b, at.place, 0}, reterr);
        }
    return r == PEN_END ? PEN_OK : r;
}

/* Replaces the positions of all inputs by those of the inputs that stay. */
static int keep_fraction(const PenInputs *in, double fraction, PenScatter **positions,
                         PenError *reterr)
{
    PenScatter *labels = NULL, *kept = NULL;
    uint32_t n_groups = in->labels.n ? in->labels.n : 1;
    uint64_t *quota = pen__alloc_array(n_groups, sizeof *quota);
    if (!quota)
        return pen__fail_memory(reterr, WHERE, "list of classes");
    memset(quota, 0, n_groups * sizeof *quota);
    int r = pen__scatter_open(&in->space, in->n, 2, &labels, reterr);
    if (r == PEN_OK)
        r = collect_labels(in, *positions, labels, quota, reterr);
    for (uint32_t i = 0; i < n_groups; i++)
        quota[i] = share(fraction, quota[i]);
    pen__scatter_close(positions);
    if (r == PEN_OK)
        r = pen__scatter_open(&in->space, in->n, 1, &kept, reterr);
    if (r == PEN_OK)
        r = choose(labels, quota, kept, reterr);
    pen__scatter_close(&labels);
    pen__free(quota);
    *positions = kept;
    return r;
}

/* ---- the sequence ---------------------------------------------------------------------------- */

typedef struct Filling {
    PenPlanDraft *draft;
    PenScatter *positions; /* by input; NULL: all, in source order */
    bool by_source;
    PenPlaced next; /* of the positions */
} Filling;

/* What the schema and the size of blocks depend on. */
static void count_parts(PenPlanDraft *d, const PenInput *input)
{
    const uint8_t *at = input->cells;
    for (uint32_t k = 0; k < input->n_cells; k++) {
        PenCell c;
        pen__cell_next(&at, &c);
        d->n_parts[d->shape.field_of_column[c.column]]++;
        d->total_bytes += c.kind == PEN_PART_INLINE ? c.text_bytes : c.bytes;
    }
}

static int take_input(Filling *f, const PenInput *input, PenError *reterr)
{
    PenPlanDraft *d = f->draft;
    const PenPlanRequest *request = d->request;
    uint64_t position = f->positions && !f->by_source ? f->next.a : input->number;
    int r = 0;
    if (request->known)
        r = request->known(request->known_ctx, input->key, input->key_bytes, reterr);
    if (r < 0)
        return r;
    if (r) {
        d->n_known++;
        return PEN_OK;
    }
    d->n++;
    count_parts(d, input);
    return pen__sequence_add(&d->sequence, position, input, reterr);
}

static int fill(Filling *f, PenError *reterr)
{
    PenInputWalk walk;
    PenInput input;
    const PenInputs *in = &f->draft->inputs;
    int r = pen__inputs_start(in, "sort", &walk, reterr);
    if (r == PEN_OK && f->positions)
        r = pen__scatter_next(f->positions, &f->next, reterr);
    while (r == PEN_OK && (r = pen__inputs_next(&walk, &input, reterr)) == PEN_OK) {
        if (f->positions && f->next.place != input.number)
            continue;
        r = take_input(f, &input, reterr);
        if (r == PEN_OK && f->positions)
            r = pen__scatter_next(f->positions, &f->next, reterr);
    }
    return r == PEN_END ? PEN_OK : r;
}

int pen__order_make(PenPlanDraft *d, PenError *reterr)
{
    const PenIngestSettings *s = d->request->settings;
    const PenInputs *in = &d->inputs;
    Filling f = {.draft = d};
    f.by_source = s->order == PEN_PACK_SOURCE;
    int r = pen__inputs_report(in, "sort", 0, in->n, reterr);
    if (r == PEN_OK && (!f.by_source || s->fraction < 1))
        r = shuffle(in, s->seed, &f.positions, reterr);
    if (r == PEN_OK && s->fraction < 1)
        r = keep_fraction(in, s->fraction, &f.positions, reterr);
    if (r == PEN_OK)
        r = pen__sequence_open(&d->sequence, in, reterr);
    if (r == PEN_OK)
        r = fill(&f, reterr);
    pen__scatter_close(&f.positions);
    return r;
}
