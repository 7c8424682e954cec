/* SPDX-License-Identifier: Apache-2.0 */
/* What concerns several samples of a batch: how images are mixed, and the targets that follow. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "dsp/half.h"
#include "ops/language/lex.h"
#include "ops/run/program_impl.h"

int pen__program_set_mix(PenProgram *p, const PenSpecOp *op, PenError *reterr)
{
    static const double rounding = 1e-9; /* of numbers such as 0.1 + 0.9 */
    bool is_mixup = pen__op_number(op->op) == PEN_OP_mixup;
    bool is_second = p->mix.mixup.alpha > 0 || p->mix.cutmix.alpha > 0;
    double *alpha = is_mixup ? &p->mix.mixup.alpha : &p->mix.cutmix.alpha;
    int32_t per_sample = op->values[2].word != 0;
    if (p->kind.kind == PEN_KIND_MASK)
        return pen__spec_fail(reterr, op->column, "%s cannot be applied to a mask", op->op->name);
    if (*alpha > 0)
        return pen__spec_fail(reterr, op->column, "%s is given twice", op->op->name);
    if (is_second && per_sample != p->mix.per_sample)
        return pen__spec_fail(reterr, op->column,
                              "%s: per differs from that of %s; give both the same", op->op->name,
                              is_mixup ? "cutmix" : "mixup");
    *alpha = op->values[0].v[0];
    *(is_mixup ? &p->mix.mixup.p : &p->mix.cutmix.p) = op->values[1].v[0];
    p->mix.per_sample = per_sample;
    if (p->mix.mixup.p + p->mix.cutmix.p > 1 + rounding)
        return pen__spec_fail(
            reterr, op->column,
            "%s: the probabilities of mixup and cutmix are %g and %g, and at most "
            "one of both is drawn; pass p=0.5 to both, or others whose sum is at "
            "most 1",
            op->op->name, p->mix.mixup.p, p->mix.cutmix.p);
    return PEN_OK;
}

const PenMixRule *pen__program_mix(const PenProgram *p)
{
    return p->mix.mixup.alpha > 0 || p->mix.cutmix.alpha > 0 ? &p->mix : NULL;
}

/* ---- targets ---- */

static uint32_t to_element(int dtype, double value)
{
    float narrow = (float)value;
    if (dtype == PEN_F32)
        return pen__float_bits(narrow);
    return dtype == PEN_F16 ? pen__to_f16(narrow) : pen__to_bf16(narrow);
}

void pen__program_set_classes(PenProgram *p, const PenSpecOp *op)
{
    double n = op->values[0].v[0], smoothing = op->values[1].v[0], off = smoothing / n;
    p->classes = (PenClasses){.n = (uint32_t)n,
                              .on = to_element(p->tensor.dtype, (1 - smoothing) + off),
                              .off = to_element(p->tensor.dtype, off)};
    if (p->ops[0].values[2].name[0])
        p->classes.of = p->ops[0].values[2].name;
}

int pen__program_store_class(const PenProgram *p, const uint8_t *number, void *dst,
                             PenError *reterr)
{
    const PenClasses *classes = &p->classes;
    int64_t class = (int64_t)pen__load64(number);
    uint8_t *to = dst;
    size_t bytes = pen_dtype_bytes(p->tensor.dtype);
    if (class < 0 || class >= classes->n)
        return pen__fail(reterr, PEN_E_DECODE, "ops/one_hot",
                         "one_hot: expected a class number from 0 to %" PRIu32 ", found %" PRId64,
                         classes->n - 1, class);
    for (size_t i = 0; i < classes->n; i++)
        if (bytes == 2)
            pen__store16(to + 2 * i, (uint16_t)classes->off);
        else
            pen__store32(to + 4 * i, classes->off);
    if (bytes == 2)
        pen__store16(to + 2 * (size_t) class, (uint16_t)classes->on);
    else
        pen__store32(to + 4 * (size_t) class, classes->on);
    return PEN_OK;
}

bool pen__program_is_target(const PenProgram *p, const char **ret_of)
{
    *ret_of = p->classes.of;
    return p->classes.n > 0;
}
