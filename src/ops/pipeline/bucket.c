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
        if (pen__bucket_param(&spec->ops[i]))
            return true;
    return false;
}

int pen__bucket_resolve(const PenSpecField *spec, uint32_t height, uint32_t width, PenSpecOp **ret,
                        PenError *reterr)
{
    PenSpecOp *ops = pen__alloc_array(spec->n_ops, sizeof *ops);
    if (!ops)
        return pen__fail_memory(reterr, "ops/bucket", "operations");
    memcpy(ops, spec->ops, spec->n_ops * sizeof *ops);
    for (uint32_t i = 0; i < spec->n_ops; i++)
        for (uint32_t k = 0; k < ops[i].op->n_params; k++)
            if (is_bucket(&ops[i], k))
                ops[i].values[k] = (PenParamValue){.n = 2, .v = {height, width}};
    *ret = ops;
    return PEN_OK;
}
