/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pipeline/spec.h"

#include "ops/operations/op.h"

bool pen__is_composition(const PenOp *op)
{
    return op->n_params && op->params[0].type == PEN_PARAM_OPS;
}

static int check_inside(const PenSpecOp *op, const PenSpecOp *inner, PenError *reterr)
{
    const PenOpWork *work = pen__op_work(inner->op);
    int does = work->does;
    bool fits = does == PEN_DOES_COLOUR || does == PEN_DOES_TONE || does == PEN_DOES_ERASE ||
                does == PEN_DOES_POLICY || does == PEN_DOES_COMPOSE ||
                (does == PEN_DOES_GEOMETRY && !work->size);
    return fits ? PEN_OK
                : pen__spec_fail(reterr, inner->column,
                                 "%s cannot be inside %s: operations in brackets change colors or "
                                 "move pixels, and keep the size of the image",
                                 inner->op->name, op->op->name);
}

static int check_weights(const PenSpecOp *op, uint32_t brackets, PenError *reterr)
{
    const PenParamValue *weights = &op->values[1];
    double sum = 0;
    if (!weights->n)
        return PEN_OK;
    for (uint32_t i = 0; i < weights->n; i++)
        sum += weights->v[i];
    if (weights->n != brackets)
        return pen__spec_fail(reterr, op->column, "%s: p has %u number%s for %u bracket%s",
                              op->op->name, weights->n, weights->n == 1 ? "" : "s", brackets,
                              brackets == 1 ? "" : "s");
    if (sum <= 0)
        return pen__spec_fail(reterr, op->column, "%s: p: expected a number above 0, found none",
                              op->op->name);
    return PEN_OK;
}

int pen__compose_check(const PenSpecOp *op, PenError *reterr)
{
    uint32_t brackets = op->values[0].n;
    int r = PEN_OK;
    if (!brackets)
        return pen__spec_fail(reterr, op->column, "%s needs operations in brackets: '%s [hflip]'",
                              op->op->name, op->op->name);
    if (brackets > op->op->params[0].max)
        return pen__spec_fail(reterr, op->column,
                              "%s: expected one bracket, found %u; separate operations by '|'",
                              op->op->name, brackets);
    for (uint32_t i = 1; r == PEN_OK && i <= op->inside; i += 1 + op[i].inside)
        r = check_inside(op, &op[i], reterr);
    if (r == PEN_OK && pen__op_number(op->op) == PEN_OP_random_choice)
        r = check_weights(op, brackets, reterr);
    return r;
}

uint32_t pen__compose_steps(const PenSpecOp *op)
{
    uint32_t all = 0, most = 0, of_bracket = 0, bracket = 0;
    if (!op->inside)
        return pen__op_steps(op->op, op->values);
    for (uint32_t i = 1; i <= op->inside; i += 1 + op[i].inside) {
        uint32_t steps = pen__compose_steps(&op[i]);
        of_bracket = op[i].bracket == bracket ? of_bracket + steps : steps;
        bracket = op[i].bracket;
        most = PEN_MAX(most, of_bracket);
        all += steps;
    }
    return pen__op_number(op->op) == PEN_OP_random_choice ? most : all;
}

bool pen__compose_moves(const PenSpecOp *op)
{
    for (uint32_t i = 0; i <= op->inside; i++) {
        int does = pen__op_work(op[i].op)->does;
        if (does == PEN_DOES_GEOMETRY || does == PEN_DOES_POLICY)
            return true;
    }
    return false;
}

bool pen__compose_is_colour(const PenSpecOp *op)
{
    for (uint32_t i = 0; i <= op->inside; i++) {
        int does = pen__op_work(op[i].op)->does;
        if (does != PEN_DOES_COLOUR && does != PEN_DOES_TONE && does != PEN_DOES_COMPOSE)
            return false;
    }
    return true;
}
