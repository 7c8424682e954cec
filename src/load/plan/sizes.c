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
