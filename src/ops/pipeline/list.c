/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pipeline/list.h"

#include <penstock/loader.h>

#include "ops/operations/op.h"
#include "ops/pipeline/follow.h"

int pen__list_kind(const PenSpecField *spec)
{
    switch (spec->n_ops ? pen__op_number(spec->ops[0].op) : PEN_N_OPS) {
    case PEN_OP_text:
        return PEN_LIST_TEXT;
    case PEN_OP_json:
        return PEN_LIST_JSON;
    case PEN_OP_bytes:
        return PEN_LIST_BYTES;
    case PEN_OP_key:
        return PEN_LIST_KEY;
    case PEN_OP_ragged:
    case PEN_OP_boxes: /* ragged may follow */
    case PEN_OP_points:
    case PEN_OP_keep:
        return PEN_LIST_RAGGED;
    default:
        return 0;
    }
}

static int check_alone(const PenSpecField *spec, PenError *reterr)
{
    const char *first = spec->ops[0].op->name;
    if (spec->n_ops == 1)
        return PEN_OK;
    return pen__spec_fail(reterr, spec->ops[1].column,
                          "%s after %s: %s must be the only operation of its field",
                          spec->ops[1].op->name, first, first);
}

int pen__list_check(const PenSpecField *spec, const char *holds, uint64_t *ret_max_bytes,
                    PenError *reterr)
{
    const PenSpecOp *op = &spec->ops[0];
    int kind = pen__list_kind(spec);
    if (!kind || kind == PEN_LIST_RAGGED)
        return pen__spec_fail(reterr, op->column,
                              "%s: the field holds %s; use 'text', 'json' or 'bytes'", op->op->name,
                              holds);
    *ret_max_bytes = (uint64_t)op->values[0].v[0];
    return check_alone(spec, reterr);
}

static void set_rule(const PenParamValue *values, PenRaggedRule *ret)
{
    const PenParamValue *pad = &values[1], *at = &values[2], *stride = &values[3];
    *ret = (PenRaggedRule){.max_rows = (uint32_t)values[0].v[0],
                           .pads = pad->n > 0,
                           .pad = pad->n > 0 ? pad->v[0] : 0,
                           .is_window = at->n > 0,
                           .at = at->n > 0 ? (int64_t)at->v[0] : 0,
                           .stride = stride->n > 0 ? (uint32_t)stride->v[0] : 1};
}

static int check_window(const PenSpecField *spec, const PenSpecOp *op, PenError *reterr)
{
    bool has_at = op->values[2].n > 0;
    if (op->values[3].n && !has_at)
        return pen__spec_fail(reterr, op->column, "ragged: stride needs at");
    if (has_at && op->values[1].n)
        return pen__spec_fail(reterr, op->column, "ragged: at and pad are mutually exclusive");
    if (has_at && op != spec->ops)
        return pen__spec_fail(reterr, op->column, "ragged: at after %s: expected no operation",
                              spec->ops[0].op->name);
    return PEN_OK;
}

/* Of rows that follow, where ragged is not given. */
static int set_initial_rule(PenRaggedRule *ret, PenError *reterr)
{
    const PenOp *op = pen__op_find("ragged", 6);
    PenParamValue values[4];
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < PEN_LEN(values); i++)
        r = pen__value_initial(op, &op->params[i], &values[i], reterr);
    if (r == PEN_OK)
        set_rule(values, ret);
    return r;
}

int pen__ragged_rule(const PenSpecField *spec, PenRaggedRule *ret, PenError *reterr)
{
    uint32_t n = pen__follow_spec(spec).n_ops;
    if (pen__list_kind(spec) != PEN_LIST_RAGGED)
        return pen__spec_fail(reterr, spec->ops[0].column,
                              "%s: the number of rows in the field differs between samples; use "
                              "'ragged'",
                              spec->ops[0].op->name);
    if (n == spec->n_ops)
        return set_initial_rule(ret, reterr);
    if (pen__op_number(spec->ops[n].op) != PEN_OP_ragged)
        return pen__spec_fail(reterr, spec->ops[n].column, "%s after %s: only %sragged can follow",
                              spec->ops[n].op->name, spec->ops[n - 1].op->name,
                              pen__op_number(spec->ops[n - 1].op) == PEN_OP_keep ? "" : "keep or ");
    if (n + 1 < spec->n_ops)
        return pen__spec_fail(reterr, spec->ops[n + 1].column,
                              "%s after ragged: ragged must be the last operation",
                              spec->ops[n + 1].op->name);
    set_rule(spec->ops[n].values, ret);
    return check_window(spec, &spec->ops[n], reterr);
}
