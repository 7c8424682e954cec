/* SPDX-License-Identifier: Apache-2.0 */
/* From a program, the size of an image and its draws: what is done to it. */
#include "ops/run/program_impl.h"
#include "ops/sample/draft.h"
#include "ops/sample/orientation.h"

static const char where[] = "ops/sample_plan";

/* Operations bound the results, see pen__size_resize: what is stored depends on it. */
static int set_size(const PenProgram *p, const PenSampleDraft *d, PenError *reterr)
{
    uint32_t longer = PEN_MAX(d->width, d->height), shorter = PEN_MIN(d->width, d->height);
    bool fits = p->width ? d->width == p->width && d->height == p->height
                         : longer <= p->most.most_long && shorter <= p->most.most_short;
    d->sample_plan->width = d->width;
    d->sample_plan->height = d->height;
    return fits ? PEN_OK
                : pen__fail(reterr, PEN_E_LIMIT, where, "the result would have %u x %u pixels",
                            d->width, d->height);
}

typedef struct Making {
    const PenProgram *p;
    PenDrawKey key;
    uint64_t sample;
    uint32_t first_draw;
    PenSampleDraft draft;
    PenError *reterr;
} Making;

static int make_op(Making *m, uint32_t at);

/* The operations of one bracket. */
static int make_bracket(Making *m, uint32_t at, uint32_t bracket)
{
    const PenProgramOp *op = &m->p->ops[at];
    int r = PEN_OK;
    for (uint32_t i = 1; r == PEN_OK && i <= op->inside; i += 1 + op[i].inside)
        if (op[i].bracket == bracket)
            r = make_op(m, at + i);
    return r;
}

/* Each order is as likely as any other. */
static int make_shuffled(Making *m, uint32_t at, PenDraw *draw)
{
    const PenProgramOp *op = &m->p->ops[at];
    uint32_t order[PEN_MAX_OPS], n = 0;
    int r = PEN_OK;
    for (uint32_t i = 1; i <= op->inside; i += 1 + op[i].inside)
        order[n++] = at + i;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t j = (uint32_t)pen__draw_below(draw, i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (uint32_t i = 0; r == PEN_OK && i < n; i++)
        r = make_op(m, order[i]);
    return r;
}

static int make_composition(Making *m, uint32_t at, PenDraw *draw)
{
    const PenProgramOp *op = &m->p->ops[at];
    switch (pen__op_number(op->op)) {
    case PEN_OP_random_apply:
        return pen__draw_happens(draw, op->values[1].v[0]) ? make_bracket(m, at, 0) : PEN_OK;
    case PEN_OP_random_choice:
        return make_bracket(m, at, pen__draw_choice(draw, &op->values[1], op->values[0].n));
    default:
        return make_shuffled(m, at, draw);
    }
}

static int make_op(Making *m, uint32_t at)
{
    const PenProgramOp *op = &m->p->ops[at];
    const PenOpWork *work = pen__op_work(op->op);
    PenDraw draw = pen__draw_start(m->key, m->sample, op->draw_id, op->occurrence);
    draw.counter[3] = m->first_draw;
    /* Of what changes pixels, none is done at another size, whether it is drawn or not. */
    m->draft.shrinks &= work->does == PEN_DOES_DECODE || work->does == PEN_DOES_SELECT ||
                        work->does == PEN_DOES_GEOMETRY;
    if (work->does == PEN_DOES_COMPOSE)
        return make_composition(m, at, &draw);
    /* In brackets a mask can have operations on colours, which do not change it. */
    bool is_colour = work->does == PEN_DOES_COLOUR || work->does == PEN_DOES_TONE;
    if (!work->draft || (m->draft.nearest && is_colour))
        return PEN_OK;
    return work->draft(&m->draft, op->values, &draw, m->reterr);
}

int pen__sample_plan_make(const PenProgram *p, const PenImageShape *shape, PenDrawKey key,
                          uint64_t sample, PenSamplePlan *ret, PenError *reterr)
{
    return pen__sample_plan_make_view(p, shape, key, sample, 0, ret, reterr);
}

int pen__sample_plan_make_view(const PenProgram *p, const PenImageShape *shape, PenDrawKey key,
                               uint64_t sample, uint32_t view, PenSamplePlan *ret, PenError *reterr)
{
    uint32_t crops = PEN_MAX(p->clip_shape.crops, 1u);
    PenBox upright = pen__turn_upright(shape);
    int r = PEN_OK;
    if (p->kind.kind == PEN_KIND_NUMBER || !shape->width || !shape->height)
        return pen__fail(reterr, PEN_E_INVALID, where, "expected an image, found %u x %u pixels",
                         shape->width, shape->height);
    ret->shape = *shape;
    ret->n_steps = ret->n_erase = ret->shrink = 0;
    Making m = {
        .p = p,
        .key = key,
        .sample = sample,
        /* Each of several clips or repeats has numbers of its own; no operation draws so many. */
        .first_draw = view / crops << 20,
        .draft =
            {
                .sample_plan = ret,
                .width = upright.w,
                .height = upright.h,
                .nearest = p->kind.kind == PEN_KIND_MASK,
                .crop = view % crops,
                .shrinks = p->shrinks && shape->shrinks,
            },
        .reterr = reterr,
    };
    for (uint32_t i = 0; r == PEN_OK && i < p->n_ops; i += 1 + p->ops[i].inside)
        r = make_op(&m, i);
    if (r == PEN_OK)
        r = pen__draft_end(&m.draft, reterr);
    if (r == PEN_OK) {
        pen__draft_narrow(&m.draft);
        r = set_size(p, &m.draft, reterr);
    }
    if (r < 0)
        return r;
    PenImageShape decoded = {.width = pen__shrunk_side(shape->width, ret->shrink),
                             .height = pen__shrunk_side(shape->height, ret->shrink),
                             .orientation = shape->orientation};
    ret->region = pen__turn_box(&decoded, pen__pass_needs(&ret->steps[0].u.pass, p->channels));
    return PEN_OK;
}
