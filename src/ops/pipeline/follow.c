/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pipeline/follow.h"

#include "ops/operations/op.h"

static bool is_move(const PenSpecOp *op)
{
    uint32_t number = pen__op_number(op->op);
    return number == PEN_OP_boxes || number == PEN_OP_points;
}

PenFollowSpec pen__follow_spec(const PenSpecField *spec)
{
    PenFollowSpec ret = {.n_ops = 0};
    if (ret.n_ops < spec->n_ops && is_move(&spec->ops[ret.n_ops]))
        ret.moves = &spec->ops[ret.n_ops++];
    if (ret.n_ops < spec->n_ops && pen__op_number(spec->ops[ret.n_ops].op) == PEN_OP_keep)
        ret.keeps = &spec->ops[ret.n_ops++];
    return ret;
}

static int check_kind(const PenSpecOp *moves, const char *field, const PenFollowRule *rule,
                      PenError *reterr)
{
    bool boxes = pen__op_number(moves->op) == PEN_OP_boxes;
    if (!rule->stored)
        return pen__spec_fail(reterr, moves->column,
                              "%s: the schema does not say what the numbers of '%.60s' are; pack "
                              "it with the type 'f32[*,%d] %s absolute'",
                              moves->op->name, field, boxes ? 4 : 2,
                              boxes ? "boxes xyxy" : "points");
    if (boxes != (rule->stored != PEN_COORDS_POINTS))
        return pen__spec_fail(reterr, moves->column, "%s: the field '%.60s' holds %s; use '%s'",
                              moves->op->name, field, boxes ? "points" : "boxes",
                              boxes ? "points" : "boxes");
    return PEN_OK;
}

/* Words of `unit`: stored, absolute, relative. */
static void set_unit(const PenParamValue *unit, PenFollowRule *ret)
{
    ret->wanted_relative = unit->word ? unit->word == 2 : ret->stored_relative;
}

/* Words are "yes no" of clip and drop, and "stored xyxy xywh cxcywh" of format. */
static int set_boxes(const PenSpecOp *op, PenFollowRule *ret, PenError *reterr)
{
    const PenParamValue *v = op->values;
    ret->wanted = v[1].word ? (PenCoordinates)v[1].word : ret->stored;
    set_unit(&v[2], ret);
    ret->clip = v[3].word == 0;
    ret->drop = v[4].word == 0;
    ret->min_size = v[5].v[0];
    ret->min_area = v[6].v[0];
    ret->min_visibility = v[7].v[0];
    if (!ret->drop && (ret->min_area > 0 || ret->min_visibility > 0))
        return pen__spec_fail(reterr, op->column,
                              "boxes: min_area and min_visibility need drop=yes, found drop=no");
    return PEN_OK;
}

/* Words are "no yes" of clip, "yes no" of drop. */
static int set_points(const PenFollowSpec *spec, PenFollowRule *ret)
{
    const PenParamValue *v = spec->moves->values;
    ret->wanted = ret->stored;
    set_unit(&v[1], ret);
    ret->clip = v[2].word == 1;
    ret->drop = v[3].word == 0;
    return PEN_OK;
}

int pen__follow_rule(const PenFollowSpec *spec, const char *field, PenFollowRule *ret,
                     PenError *reterr)
{
    int r = check_kind(spec->moves, field, ret, reterr);
    if (r < 0)
        return r;
    r = ret->stored == PEN_COORDS_POINTS ? set_points(spec, ret)
                                         : set_boxes(spec->moves, ret, reterr);
    if (r == PEN_OK && !ret->drop && pen__follow_wants_kept(spec->moves))
        return pen__spec_fail(reterr, spec->moves->column, "%s: kept=yes needs drop=yes",
                              spec->moves->op->name);
    if (r == PEN_OK && spec->keeps && ret->drop)
        return pen__spec_fail(
            reterr, spec->keeps->column,
            "keep after %s: only one of them can choose the rows; use '%s drop=no'",
            spec->moves->op->name, spec->moves->op->name);
    return r;
}

const char *pen__follow_image(const PenSpecOp *moves)
{
    return moves->values[0].name[0] ? moves->values[0].name : NULL;
}

bool pen__follow_wants_kept(const PenSpecOp *moves)
{
    return moves->values[moves->op->n_params - 1].word == 1;
}
