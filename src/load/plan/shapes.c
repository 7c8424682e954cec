/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/shapes.h"

#include <string.h>

#include "base/mem.h"
#include "load/plan/program.h"
#include "load/plan/sizes.h"
#include "load/plan/views.h"
#include "ops/pipeline/bucket.h"

#define WHERE "load/shapes"

bool pen__plan_has_shapes(const PenLoadPlan *p, const PenOutField *f)
{
    const PenSpecField *spec = f->program ? pen__plan_spec(p, f) : NULL;
    return spec && pen__bucket_used(spec);
}

static int set_program(const PenLoadPlan *p, uint32_t shape, uint32_t field, PenError *reterr)
{
    PenOutField *fields = p->shapes->fields[shape], *f = &fields[field];
    PenFieldKind kind;
    PenProgram *program;
    pen__plan_describe(&pen_pack_info(p->pack)->fields[f->field], &kind);
    int r = pen__plan_program(p, shape, pen__plan_spec(p, f), &kind, &program, reterr);
    if (r < 0)
        return r;
    PenTensor one = pen__program_result(program);
    pen__plan_set_tensor(p, f, &one);
    f->program = program;
    f->bytes = pen__program_bytes(program);
    if (f->grid)
        pen__plan_size_grid(fields, f);
    return PEN_OK;
}

/* The fields of the first shape are the plan's. */
static int make_fields(PenLoadPlan *p, uint32_t shape, PenError *reterr)
{
    PenOutField *fields = pen__alloc_array(p->n_fields, sizeof *fields);
    int r = PEN_OK;
    if (!fields)
        return pen__fail_memory(reterr, WHERE, "fields");
    memcpy(fields, p->fields, p->n_fields * sizeof *fields);
    p->shapes->fields[shape] = fields;
    for (uint32_t i = 0; i < p->n_fields && r == PEN_OK; i++)
        if (pen__plan_has_shapes(p, &fields[i]))
            r = set_program(p, shape, i, reterr);
    return r;
}

int pen__plan_shapes_new(PenLoadPlan *p, uint32_t n, PenError *reterr)
{
    int r = PEN_OK;
    p->shapes = pen__zalloc(sizeof *p->shapes);
    if (!p->shapes)
        return pen__fail_memory(reterr, WHERE, "shapes");
    p->shapes->n = n;
    p->shapes->fields[0] = p->fields;
    for (uint32_t i = 1; i < n && r == PEN_OK; i++)
        r = make_fields(p, i, reterr);
    return r;
}

void pen__plan_shapes_free(PenLoadPlan *p)
{
    PenShapes *s = p->shapes;
    if (!s)
        return;
    for (uint32_t i = 1; i < s->n && s->fields[i]; i++) {
        for (uint32_t k = 0; k < p->n_fields; k++)
            if (s->fields[i][k].program != p->fields[k].program)
                pen__program_free(&s->fields[i][k].program);
        pen__free(s->fields[i]);
    }
    pen__free(s);
    p->shapes = NULL;
}
