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
    PenSampleDraft draft = {
        .sample_plan = ret,
        .width = upright.w,
        .height = upright.h,
        .nearest = p->kind.kind == PEN_KIND_MASK,
        .crop = view % crops,
        .shrinks = p->shrinks && shape->shrinks,
    };
    for (uint32_t i = 0; r == PEN_OK && i < p->n_ops; i++) {
        const PenProgramOp *op = &p->ops[i];
        const PenOpWork *work = pen__op_work(op->op);
        PenDraw draw = pen__draw_start(key, sample, op->op->name, op->occurrence);
        /* Each of several clips or repeats has numbers of its own; no operation draws so many. */
        draw.counter[3] = view / crops << 20;
        /* Of what changes pixels, none is done at another size, whether it is drawn or not. */
        draft.shrinks &= work->does == PEN_DOES_DECODE || work->does == PEN_DOES_SELECT ||
                         work->does == PEN_DOES_GEOMETRY;
        if (work->draft)
            r = work->draft(&draft, op->values, &draw, reterr);
    }
    if (r == PEN_OK)
        r = pen__draft_end(&draft, reterr);
    if (r == PEN_OK) {
        pen__draft_narrow(&draft);
        r = set_size(p, &draft, reterr);
    }
    if (r < 0)
        return r;
    PenImageShape decoded = {.width = pen__shrunk_side(shape->width, ret->shrink),
                             .height = pen__shrunk_side(shape->height, ret->shrink),
                             .orientation = shape->orientation};
    ret->region = pen__turn_box(&decoded, pen__pass_needs(&ret->steps[0].u.pass, p->channels));
    return PEN_OK;
}
