/* SPDX-License-Identifier: Apache-2.0 */
/* They add no step themselves: see ops/run/make_plan.c. What they draw chooses among the operations
 * in their brackets. */
#include "ops/operations/op.h"

enum { MOST_BRACKETS = 32 };

const PenParam pen__params_random_apply[2] = {
    {"ops", PEN_PARAM_OPS, 1, 1, NULL, NULL, "operations in brackets: [hflip | grayscale]"},
    {"p", PEN_PARAM_FLOAT, 0, 1, "0.5", NULL, "probability"},
};

const PenParam pen__params_random_choice[2] = {
    {"ops", PEN_PARAM_OPS, 1, MOST_BRACKETS, NULL, NULL,
     "the alternatives, each in brackets: [hflip] [vflip | grayscale]"},
    {"p", PEN_PARAM_WEIGHTS, 0, 1e6, "equal", "equal",
     "weight of each bracket; equal: all are as likely"},
};

const PenParam pen__params_random_order[1] = {
    {"ops", PEN_PARAM_OPS, 1, 1, NULL, NULL, "operations in brackets: [hflip | grayscale]"},
};

/* Without weights each is as likely as any other. What rounding leaves is the last with a weight.
 */
uint32_t pen__draw_choice(PenDraw *draw, const PenParamValue *weights, uint32_t n)
{
    double sum = 0, up_to = 0;
    uint32_t last = 0;
    if (!weights->n)
        return (uint32_t)pen__draw_below(draw, n);
    for (uint32_t i = 0; i < n; i++)
        sum += weights->v[i];
    double drawn = pen__draw_uniform(draw, 0, sum);
    for (uint32_t i = 0; i < n; i++) {
        up_to += weights->v[i];
        if (weights->v[i] > 0)
            last = i;
        if (drawn < up_to)
            break;
    }
    return last;
}
