/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/mixup.h"

#include "load/plan/views.h"
#include "ops/language/lex.h"
#include "ops/operations/op.h"

/* The operation by which a field mixes, or makes targets. */
static const PenSpecOp *op_of(const PenLoadPlan *p, const PenOutField *f)
{
    const PenSpecField *spec = pen__plan_spec(p, f);
    uint32_t i = 0;
    while (pen__op_work(spec->ops[i].op)->does != PEN_DOES_MIX &&
           pen__op_work(spec->ops[i].op)->does != PEN_DOES_CLASSES)
        i++;
    return &spec->ops[i];
}

static bool mixes(const PenOutField *f)
{
    return f->program && pen__program_mix(f->program);
}

/* The first one; NULL: there is none. */
static const PenOutField *find_mixed(const PenLoadPlan *p, uint32_t *ret_n)
{
    const PenOutField *first = NULL;
    *ret_n = 0;
    for (uint32_t i = p->n_fields; i-- > 0;)
        if (mixes(&p->fields[i])) {
            first = &p->fields[i];
            ++*ret_n;
        }
    return first;
}

static int find_image(const PenLoadPlan *p, const PenOutField *target, const char *of,
                      const PenOutField **ret, PenError *reterr)
{
    uint32_t n;
    *ret = find_mixed(p, &n);
    if (n > 1 && !of)
        return pen__spec_fail(reterr, op_of(p, target)->column,
                              "one_hot: the pipeline mixes %u images; name the one that the labels "
                              "follow: 'one_hot ... of=%.60s'",
                              n, (*ret)->name);
    if (!of)
        return PEN_OK;
    *ret = pen__plan_find(p, of);
    if (*ret && mixes(*ret))
        return PEN_OK;
    return pen__spec_fail(reterr, op_of(p, target)->column,
                          "one_hot: of: the pipeline has no image '%.60s' with mixup or cutmix",
                          of);
}

static int check_batch(const PenLoadPlan *p, const PenOutField *image, PenError *reterr)
{
    const PenSpecOp *op = op_of(p, image);
    if (p->lengths)
        return pen__spec_fail(reterr, op->column,
                              "%s does not work with a token budget; mix in the training loop",
                              op->op->name);
    if (p->set.batch_size == 1)
        return pen__spec_fail(reterr, op->column,
                              "%s: a single sample has no partner; use a loader with batches, or "
                              "remove %s and mix in the training loop",
                              op->op->name, op->op->name);
    if (p->set.batch_size % 2 == 0)
        return PEN_OK;
    return pen__spec_fail(reterr, op->column,
                          "%s: samples are mixed in pairs; batch_size: expected an even number, "
                          "found %u",
                          op->op->name, p->set.batch_size);
}

/* A mixed image without mixed labels would be trained for the wrong class. */
static int check_targets(const PenLoadPlan *p, const PenOutField *image, PenError *reterr)
{
    uint32_t number = (uint32_t)(image - p->fields);
    for (uint32_t i = 0; i < p->n_fields; i++)
        if (p->fields[i].is_target && p->fields[i].mixed_by == number)
            return PEN_OK;
    return pen__spec_fail(
        reterr, op_of(p, image)->column,
        "%s: the labels of '%.60s' must be mixed too; add a field with one_hot to "
        "the pipeline: '%.60s: decode | ...; label: one_hot CLASSES'",
        op_of(p, image)->op->name, image->name, image->name);
}

int pen__plan_mixup(PenLoadPlan *p, PenError *reterr)
{
    const PenOutField *image;
    const char *of;
    uint32_t n;
    int r = PEN_OK;
    for (uint32_t i = 0; i < p->n_fields && r == PEN_OK; i++) {
        PenOutField *f = &p->fields[i];
        if (!f->program || !pen__program_is_target(f->program, &of))
            continue;
        r = find_image(p, f, of, &image, reterr);
        if (r == PEN_OK && image) {
            f->is_target = true;
            f->mixed_by = (uint32_t)(image - p->fields);
        }
    }
    find_mixed(p, &n);
    p->has_pairs = n > 0;
    for (uint32_t i = 0; n && i < p->n_fields && r == PEN_OK; i++) {
        if (!mixes(&p->fields[i]))
            continue;
        r = check_batch(p, &p->fields[i], reterr);
        if (r == PEN_OK)
            r = check_targets(p, &p->fields[i], reterr);
    }
    p->n_values += n;
    return r;
}
