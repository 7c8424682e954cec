/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pipeline/geometry.h"

#include <string.h>

#include "ops/operations/op.h"

/* The next operation from `*at` on that moves pixels, or has one that does in its brackets; NULL
 * behind the last. */
static const PenSpecOp *next_move(const PenSpecField *f, uint32_t *at)
{
    while (*at < f->n_ops) {
        const PenSpecOp *op = &f->ops[*at];
        *at += 1 + op->inside;
        if (pen__compose_moves(op))
            return op;
    }
    return NULL;
}

bool pen__geometry_any(const PenSpecField *field)
{
    uint32_t at = 0;
    return next_move(field, &at);
}

/* Parameters that say which value a pixel gets, not where it comes from. */
static bool is_value(const PenParam *param)
{
    return strcmp(param->name, "filter") == 0 || strcmp(param->name, "fill") == 0 ||
           strcmp(param->name, "interpolation") == 0;
}

static bool same_value(const PenParamValue *a, const PenParamValue *b)
{
    bool same = a->n == b->n && (a->n || a->word == b->word);
    for (uint32_t i = 0; same && i < a->n; i++)
        same = a->v[i] == b->v[i];
    return same;
}

static bool same_values(const PenSpecOp *a, const PenSpecOp *b)
{
    bool same = a->op == b->op && a->bracket == b->bracket;
    for (uint32_t i = 0; same && i < a->op->n_params; i++)
        same = is_value(&a->op->params[i]) || same_value(&a->values[i], &b->values[i]);
    return same;
}

/* What is in its brackets decides on its draws, whether it moves pixels or not. */
static bool same_op(const PenSpecOp *a, const PenSpecOp *b)
{
    bool same = a->inside == b->inside;
    for (uint32_t i = 0; same && i <= a->inside; i++)
        same = same_values(&a[i], &b[i]);
    return same;
}

bool pen__geometry_differs(const PenSpecField *image, const PenSpecField *mask,
                           const PenSpecOp **ret_image, const PenSpecOp **ret_mask)
{
    uint32_t of_image = 0, of_mask = 0;
    const PenSpecOp *a, *b;
    do {
        a = next_move(image, &of_image);
        b = next_move(mask, &of_mask);
    } while (a && b && same_op(a, b));
    while (!a && b && pen__op_number(b->op) == PEN_OP_resize)
        b = next_move(mask, &of_mask);
    *ret_image = a;
    *ret_mask = b;
    return a || b;
}
