/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/sizes.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define WHERE "load/plan"

enum { ALIGN = 64 }; /* bytes at which each image of a list begins */

int pen__plan_add_sizes(PenLoadPlan *p, PenOutField *to, PenError *reterr)
{
    PenSizesRule rule;
    if (!pen__program_sizes(to->program, &rule))
        return PEN_OK;
    PenOutField *sizes = &p->fields[p->n_fields];
    size_t bytes = strlen(to->name) + sizeof "_sizes";
    *sizes =
        (PenOutField){.field = to->field,
                      .kind = PEN_KIND_SIZES,
                      .name = pen__alloc(bytes),
                      .bytes = 2 * sizeof(int64_t),
                      .tensor = {.dtype = PEN_I64, .n_dims = 2, .shape = {p->set.batch_size, 2}}};
    if (!sizes->name)
        return pen__fail_memory(reterr, WHERE, to->name);
    snprintf(sizes->name, bytes, "%s_sizes", to->name);
    to->sizes = p->n_fields++;
    p->n_values++;
    if (rule.pads)
        return PEN_OK;
    to->list = PEN_LIST_IMAGES;
    to->row_bytes = rule.element;
    to->bytes = (to->bytes + ALIGN - 1) / ALIGN * ALIGN;
    p->n_lists++;
    return PEN_OK;
}

/* ---- patches ---- */

static int add(PenLoadPlan *p, const PenOutField *of, const char *suffix, const PenOutField *what,
               PenError *reterr)
{
    size_t bytes = strlen(of->name) + strlen(suffix) + 1;
    PenOutField *to = &p->fields[p->n_fields];
    *to = *what;
    to->field = of->field;
    to->name = pen__alloc(bytes);
    if (!to->name)
        return pen__fail_memory(reterr, WHERE, of->name);
    snprintf(to->name, bytes, "%s%s", of->name, suffix);
    p->n_fields++;
    return PEN_OK;
}

int pen__plan_add_grid(PenLoadPlan *p, PenOutField *to, PenError *reterr)
{
    int64_t batch = p->set.batch_size;
    PenPatches patches;
    PenOutField sizes = {.kind = PEN_KIND_SIZES,
                         .bytes = 2 * sizeof(int64_t),
                         .tensor = {.dtype = PEN_I64, .n_dims = 2, .shape = {batch, 2}}};
    PenOutField mask = {.kind = PEN_KIND_ROW_MASK,
                        .tensor = {.dtype = PEN_BOOL, .n_dims = 2, .shape = {batch}}};
    if (!pen__program_patches(to->program, &patches))
        return PEN_OK;
    to->grid = p->n_fields;
    int r = add(p, to, "_sizes", &sizes, reterr);
    if (r == PEN_OK)
        r = add(p, to, "_mask", &mask, reterr);
    if (r == PEN_OK)
        pen__plan_size_grid(p->fields, to);
    return r;
}

void pen__plan_size_grid(PenOutField *fields, const PenOutField *f)
{
    PenOutField *mask = &fields[f->grid + 1];
    PenPatches patches;
    pen__program_patches(f->program, &patches);
    mask->bytes = patches.length;
    mask->tensor.shape[1] = patches.length;
}
