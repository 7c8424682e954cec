/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/mixup.h"

#include <string.h>

#include "dsp/dsp.h"

enum { CHUNK = 4096 }; /* bytes of both samples that are copied, in the first-level cache */

typedef struct Range {
    size_t from, to;
} Range;

/* How the elements of a sample lie: `rows` of `row` elements each, of which every `height` are an
 * image or a plane of it. */
typedef struct Layout {
    int32_t dtype;
    size_t element; /* bytes */
    size_t rows, row, height, pixel;
} Layout;

/* What becomes of one of the two samples. */
typedef struct Change {
    int32_t kind; /* PEN_MIX_* */
    PenMix mix;
    PenBox box;
} Change;

/* ---- a pair ---- */

/* Elements of a row that change. */
static Range reach(const Layout *l, const Change *c, size_t row)
{
    size_t y = row % l->height;
    if (c->kind == PEN_MIX_MIXUP)
        return (Range){0, l->row};
    if (c->kind == PEN_MIX_NONE || y < c->box.y || y >= (size_t)c->box.y + c->box.h)
        return (Range){0, 0};
    return (Range){c->box.x * l->pixel, ((size_t)c->box.x + c->box.w) * l->pixel};
}

/* dst holds elements [at.from, at.to) of a row; own and other are copies of them. */
static void change(const Layout *l, const Change *c, Range is, Range at, const uint8_t *own,
                   const uint8_t *other, uint8_t *dst)
{
    size_t from = PEN_MAX(is.from, at.from), to = PEN_MIN(is.to, at.to);
    if (from >= to)
        return;
    size_t skip = (from - at.from) * l->element;
    if (c->kind == PEN_MIX_MIXUP)
        pen__dsp()->mix(&c->mix, own + skip, other + skip, dst + skip, to - from);
    else
        memcpy(dst + skip, other + skip, (to - from) * l->element);
}

static void change_row(const Layout *l, const Change changes[2], size_t row, uint8_t *a, uint8_t *b)
{
    _Alignas(64) uint8_t copy[2][CHUNK];
    Range of_a = reach(l, &changes[0], row), of_b = reach(l, &changes[1], row);
    Range both = {PEN_MIN(of_a.from, of_b.from), PEN_MAX(of_a.to, of_b.to)};
    if (of_a.from == of_a.to)
        both = of_b;
    if (of_b.from == of_b.to)
        both = of_a;
    for (Range at = both; at.from < both.to; at.from = at.to) {
        at.to = PEN_MIN(at.from + CHUNK / l->element, both.to);
        size_t skip = (row * l->row + at.from) * l->element;
        memcpy(copy[0], a + skip, (at.to - at.from) * l->element);
        memcpy(copy[1], b + skip, (at.to - at.from) * l->element);
        change(l, &changes[0], of_a, at, copy[0], copy[1], a + skip);
        change(l, &changes[1], of_b, at, copy[1], copy[0], b + skip);
    }
}

static void change_pair(const Layout *l, const Change changes[2], uint8_t *a, uint8_t *b)
{
    for (size_t row = 0; row < l->rows; row++)
        change_row(l, changes, row, a, b);
}

/* ---- fields ---- */

/* Of one sample of a batch's tensor; its last dimensions are height and width, before the channels
 * if these come last. */
static Layout layout_of(const PenTensor *t)
{
    size_t all = 1;
    for (uint32_t i = 1; i < t->n_dims; i++)
        all *= (size_t)t->shape[i];
    uint32_t last = t->n_dims - (t->channels_last ? 2 : 1);
    size_t pixel = t->channels_last ? (size_t)t->shape[t->n_dims - 1] : 1;
    size_t row = (size_t)t->shape[last] * pixel;
    return (Layout){.dtype = t->dtype,
                    .element = pen_dtype_bytes(t->dtype),
                    .rows = all / row,
                    .row = row,
                    .height = (size_t)t->shape[last - 1],
                    .pixel = pixel};
}

static Layout flat_layout(const PenTensor *t)
{
    return (Layout){.dtype = t->dtype,
                    .element = pen_dtype_bytes(t->dtype),
                    .rows = 1,
                    .row = (size_t)t->shape[1],
                    .height = 1,
                    .pixel = 1};
}

static Change change_by(const PenMixDraw *d, int32_t dtype)
{
    return (Change){
        .kind = d->kind, .mix = {dtype, {(float)d->lambda, (float)(1 - d->lambda)}}, .box = d->box};
}

/* Targets are mixed by the shares, for cutmix too. */
static Change target_by(const PenMixDraw *d, int32_t dtype)
{
    Change c = change_by(d, dtype);
    if (c.kind == PEN_MIX_CUTMIX)
        c.kind = PEN_MIX_MIXUP;
    return c;
}

typedef struct Mixing {
    const PenLoadPlan *plan;
    const PenSlot *slot;
    uint32_t field;
    const PenMixRule *rule;
    Layout layout;
    PenDrawKey key;
    PenMixDraw of_batch;
} Mixing;

static PenMixDraw draw(const Mixing *m, uint64_t position)
{
    const Layout *l = &m->layout;
    return pen__mix_draw(m->rule, m->key, position, (uint32_t)(l->row / l->pixel),
                         (uint32_t)l->height);
}

static PenMixDraw draw_for(const Mixing *m, uint32_t i)
{
    const PenPassStep *step = &m->slot->step;
    if (!m->rule->per_sample)
        return m->of_batch;
    return draw(m, step->first + step->row + i * step->row_step);
}

static uint8_t *place(const Mixing *m, const PenOutField *f, uint32_t i)
{
    return (uint8_t *)m->slot->batch.memory + f->offset + i * f->bytes;
}

static void mix_two(const Mixing *m, uint32_t i, uint32_t k)
{
    const PenOutField *image = &m->slot->fields[m->field];
    PenMixDraw draws[2] = {draw_for(m, i), draw_for(m, k)};
    int32_t dtype = m->layout.dtype;
    Change changes[2] = {change_by(&draws[0], dtype), change_by(&draws[1], dtype)};
    change_pair(&m->layout, changes, place(m, image, i), place(m, image, k));
    for (uint32_t n = 0; n < m->plan->n_fields; n++) {
        const PenOutField *f = &m->slot->fields[n];
        if (!f->is_target || f->mixed_by != m->field)
            continue;
        Layout flat = flat_layout(&f->tensor);
        Change targets[2] = {target_by(&draws[0], flat.dtype), target_by(&draws[1], flat.dtype)};
        change_pair(&flat, targets, place(m, f, i), place(m, f, k));
    }
}

/* Sample j of a global batch of G is paired with j + G / 2. Ranks have every world-th of them, so
 * both are of one rank. With buckets a rank has a run of places, and neighbours are paired. In the
 * last batch, samples whose partner is missing or padding stay as they are, so that the number of
 * ranks plays no part. */
void pen__mixup_run(const PenLoadPlan *plan, PenSlot *s, uint32_t field)
{
    const PenOutField *f = &s->fields[field];
    uint32_t n = s->step.valid, half = s->step.batch / 2;
    PenDrawKey key = pen__draw_key(plan->set.seed, s->batch.epoch);
    Mixing m = {.plan = plan,
                .slot = s,
                .field = field,
                .rule = pen__program_mix(f->program),
                .layout = layout_of(&f->tensor),
                .key = pen__draw_key_view(key, f->draws)};
    if (!m.rule->per_sample)
        m.of_batch = draw(&m, s->step.first);
    for (uint32_t i = 0; plan->buckets && 2 * i + 1 < n; i++)
        mix_two(&m, 2 * i, 2 * i + 1);
    for (uint32_t i = 0; !plan->buckets && i + half < n; i++)
        mix_two(&m, i, i + half);
}
