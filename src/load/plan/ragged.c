/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/ragged.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ops/pipeline/list.h"

#define WHERE "load/plan"

static int32_t dtype_of(const PenField *f)
{
    return f->type == PEN_TYPE_I64 ? PEN_I64 : f->type == PEN_TYPE_F32 ? PEN_F32 : PEN_F64;
}

/* The shape of a row follows `n` dimensions that `first` has. */
static PenTensor shape_of(const PenField *f, uint32_t n, const int64_t *first)
{
    PenTensor t = {.dtype = dtype_of(f), .n_dims = n + f->n_dims - 1};
    memcpy(t.shape, first, n * sizeof *first);
    for (uint32_t i = 1; i < f->n_dims; i++)
        t.shape[n + i - 1] = f->dims[i];
    return t;
}

int pen__plan_add_mask(PenLoadPlan *p, const PenOutField *of, uint32_t n, uint32_t *ret,
                       PenError *reterr)
{
    PenOutField *to = &p->fields[p->n_fields];
    size_t bytes = strlen(of->name) + sizeof "_mask";
    *to =
        (PenOutField){.field = of->field,
                      .kind = PEN_KIND_ROW_MASK,
                      .name = pen__alloc(bytes),
                      .bytes = n,
                      .tensor = {.dtype = PEN_BOOL, .n_dims = 2, .shape = {p->set.batch_size, n}}};
    if (!to->name)
        return pen__fail_memory(reterr, WHERE, of->name);
    snprintf(to->name, bytes, "%s_mask", of->name);
    *ret = p->n_fields++;
    return PEN_OK;
}

int pen__plan_check_frames(const PenLoadPlan *p, const char *name, PenError *reterr)
{
    return p->has_frames ? PEN_OK
                         : pen__fail(reterr, PEN_E_INVALID, WHERE,
                                     "field '%.60s': at counts from the frame that a sample is, "
                                     "but samples are no frames; pass frames to the loader",
                                     name);
}

/* Rows around the frame of the sample, which are copied one by one: no list. */
static int add_window(PenLoadPlan *p, PenOutField *to, const PenField *stored,
                      const PenRaggedRule *rule, PenError *reterr)
{
    to->kind = PEN_KIND_WINDOW;
    to->at = rule->at;
    to->stride = rule->stride;
    to->tensor = shape_of(stored, 2, (int64_t[]){p->set.batch_size, rule->max_rows});
    int r = pen__plan_check_frames(p, to->name, reterr);
    return r < 0 ? r : pen__plan_add_mask(p, to, rule->max_rows, &to->inside, reterr);
}

int pen__plan_add_ragged(PenLoadPlan *p, PenOutField *to, const PenField *stored,
                         const PenSpecField *spec, PenError *reterr)
{
    PenRaggedRule rule;
    int r = pen__ragged_rule(spec, &rule, reterr);
    if (r == PEN_OK && stored->type == PEN_TYPE_I64 && rule.pad != floor(rule.pad))
        r = pen__spec_fail(reterr, spec->ops[0].column,
                           "ragged: pad: expected an integer, which the field holds");
    if (r < 0)
        return r;
    to->row_bytes = pen__field_row_bytes(stored);
    to->max_rows = rule.max_rows;
    to->bytes = (uint64_t)rule.max_rows * to->row_bytes;
    if (rule.is_window)
        return add_window(p, to, stored, &rule, reterr);
    to->list = PEN_LIST_RAGGED;
    p->n_values++;
    if (!rule.pads) {
        to->tensor = shape_of(stored, 1, (int64_t[]){-1});
        p->n_lists++;
        return PEN_OK;
    }
    to->pad = rule.pad;
    to->tensor = shape_of(stored, 2, (int64_t[]){p->set.batch_size, rule.max_rows});
    return pen__plan_add_mask(p, to, rule.max_rows, &to->mask, reterr);
}
