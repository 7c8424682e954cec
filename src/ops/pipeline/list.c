/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pipeline/list.h"

#include <penstock/loader.h>

#include "ops/operations/op.h"

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
    default:
        return 0;
    }
}

int pen__list_check(const PenSpecField *spec, const char *holds, uint64_t *ret_max_bytes,
                    PenError *reterr)
{
    const PenSpecOp *op = &spec->ops[0];
    if (!pen__list_kind(spec))
        return pen__spec_fail(reterr, op->column,
                              "%s: the field holds %s; use 'text', 'json' or 'bytes'", op->op->name,
                              holds);
    if (spec->n_ops > 1)
        return pen__spec_fail(reterr, spec->ops[1].column,
                              "%s after %s: %s must be the only operation of its field",
                              spec->ops[1].op->name, op->op->name, op->op->name);
    *ret_max_bytes = (uint64_t)op->values[0].v[0];
    return PEN_OK;
}
