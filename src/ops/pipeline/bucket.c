/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pipeline/bucket.h"

#include <string.h>

#include "ops/operations/op.h"

static bool is_bucket(const PenSpecOp *op, uint32_t param)
{
    const PenParam *p = &op->op->params[param];
    return p->type == PEN_PARAM_SIZE && p->words && !op->values[param].n;
}

const PenParam *pen__bucket_param(const PenSpecOp *op)
{
    for (uint32_t i = 0; i < op->op->n_params; i++)
        if (is_bucket(op, i))
            return &op->op->params[i];
    return NULL;
}

bool pen__bucket_used(const PenSpecField *spec)
{
    for (uint32_t i = 0; i < spec->n_ops; i++)
        if (pen__bucket_param(&spec->ops[i]) ||
            pen__patches_by_step(spec->ops[i].op, spec->ops[i].values))
            return true;
    return false;
}

static void resolve(PenSpecOp *op, const PenBatchShape *shape)
{
    if (shape->length && pen__patches_by_step(op->op, op->values))
        pen__patches_set_length(op->values, shape->length);
    for (uint32_t i = 0; shape->height && i < op->op->n_params; i++)
        if (is_bucket(op, i))
            op->values[i] = (PenParamValue){.n = 2, .v = {shape->height, shape->width}};
}

int pen__bucket_resolve(const PenSpecField *spec, const PenBatchShape *shape, PenSpecOp **ret,
                        PenError *reterr)
{
    PenSpecOp *ops = pen__alloc_array(spec->n_ops, sizeof *ops);
    if (!ops)
        return pen__fail_memory(reterr, "ops/bucket", "operations");
    memcpy(ops, spec->ops, spec->n_ops * sizeof *ops);
    for (uint32_t i = 0; i < spec->n_ops; i++)
        resolve(&ops[i], shape);
    *ret = ops;
    return PEN_OK;
}
