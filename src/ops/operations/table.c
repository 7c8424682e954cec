/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/operations/op.h"

static const PenOp ops[] = {
#define XX(name, draw_id, n, does, steps, size, draft, help) {#name, help, n, pen__params_##name},
    PEN_OP_MAP(XX)
#undef XX
};

#define XX(name, draw_id, n, does, steps, size, draft, help)                                       \
    _Static_assert((n) <= PEN_MAX_PARAMS, #name ": more parameters than PEN_MAX_PARAMS");
PEN_OP_MAP(XX)
#undef XX

/* Two operations with one draw_id would be two members with one name. */
struct Unique {
#define XX(name, draw_id, n, does, steps, size, draft, help) char of_##draw_id;
    PEN_OP_MAP(XX)
#undef XX
#define XX(name, draw_id) char of_##draw_id;
    PEN_MOVES_MAP(XX)
#undef XX
};

static const PenOpWork works[] = {
#define XX(name, draw_id, n, does, steps, size, draft, help)                                       \
    {draw_id, PEN_DOES_##does, steps, size, draft},
    PEN_OP_MAP(XX)
#undef XX
};

const PenOp *pen_ops(uint32_t *ret_n)
{
    if (ret_n)
        *ret_n = PEN_N_OPS;
    return ops;
}

const PenOp *pen__op_find(const char *name, size_t bytes)
{
    for (size_t i = 0; i < PEN_LEN(ops); i++)
        if (strlen(ops[i].name) == bytes && memcmp(ops[i].name, name, bytes) == 0)
            return &ops[i];
    return NULL;
}

uint32_t pen__op_number(const PenOp *op)
{
    return (uint32_t)(op - ops);
}

const PenOpWork *pen__op_work(const PenOp *op)
{
    return &works[pen__op_number(op)];
}

uint32_t pen__op_steps(const PenOp *op, const PenParamValue *values)
{
    switch (pen__op_number(op)) {
    case PEN_OP_rand_augment:
        return (uint32_t)values[0].v[0];
    case PEN_OP_aug_mix:
        return pen__steps_aug_mix(values);
    default:
        return pen__op_work(op)->steps;
    }
}
