/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/views.h"

#include <string.h>

#include "base/mem.h"
#include "ops/language/near.h"
#include "ops/pipeline/follow.h"

#define WHERE "load/views"

const PenOutField *pen__plan_find(const PenLoadPlan *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_fields; i++)
        if (strcmp(p->fields[i].name, name) == 0)
            return &p->fields[i];
    return NULL;
}

const PenSpecField *pen__plan_spec(const PenLoadPlan *p, const PenOutField *f)
{
    for (uint32_t i = 0; i < p->spec.n_fields; i++)
        if (strcmp(p->spec.fields[i].name, f->name) == 0)
            return &p->spec.fields[i];
    return NULL;
}

/* ---- numbers ---- */

static int count(PenLoadPlan *p, PenError *reterr)
{
    for (uint32_t i = 0; i < p->n_fields; i++)
        p->n_views += pen__field_is_image(&p->fields[i]) ? p->fields[i].repeats : 0;
    if (p->n_views <= PEN_MAX_VIEWS)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                     "pipeline: expected at most %d images per sample, found %u; use fewer views, "
                     "or smaller numbers of repeat",
                     PEN_MAX_VIEWS, p->n_views);
}

static void number_field(PenLoadPlan *p, uint32_t number, uint32_t *next)
{
    PenOutField *f = &p->fields[number];
    f->image = *next;
    for (uint32_t i = 0; i < f->repeats; i++)
        p->views[(*next)++] = (PenView){.field = number, .repeat = i};
}

static bool is_first_use(const PenLoadPlan *p, uint32_t number)
{
    for (uint32_t i = 0; i < number; i++)
        if (pen__field_is_image(&p->fields[i]) && p->fields[i].field == p->fields[number].field)
            return false;
    return pen__field_is_image(&p->fields[number]);
}

/* Those of one stored image one after another. */
static int number_all(PenLoadPlan *p, PenError *reterr)
{
    uint32_t next = 0;
    p->views = pen__alloc_array(PEN_MAX(p->n_views, 1u), sizeof *p->views);
    if (!p->views)
        return pen__fail_memory(reterr, WHERE, "views");
    for (uint32_t i = 0; i < p->n_fields; i++) {
        if (!is_first_use(p, i))
            continue;
        uint32_t first = next;
        for (uint32_t k = i; k < p->n_fields; k++)
            if (pen__field_is_image(&p->fields[k]) && p->fields[k].field == p->fields[i].field)
                number_field(p, k, &next);
        p->fields[i].n_views = next - first;
        p->n_stored++;
    }
    return PEN_OK;
}

/* ---- what follows what ---- */

static int fail_no_image(const PenLoadPlan *p, const PenSpecField *spec, PenError *reterr)
{
    char hint[200];
    PenNear near = {.typed = spec->of, .bytes = strlen(spec->of)};
    for (uint32_t i = 0; i < p->n_fields; i++)
        if (p->fields[i].kind == PEN_KIND_IMAGE)
            pen__near_offer(&near, p->fields[i].name, strlen(p->fields[i].name));
    pen__near_text(&near, "the name of an image of the pipeline", hint, sizeof hint);
    return pen__spec_fail(reterr, spec->of_column, "of: no image '%.40s' in the pipeline%s",
                          spec->of, near.word ? hint : "; name one of its images or views");
}

static int follow(const PenLoadPlan *p, PenOutField *f, const PenSpecField *spec, PenError *reterr)
{
    const PenOutField *image = pen__plan_find(p, spec->of);
    if (pen__follow_spec(spec).moves)
        return pen__spec_fail(reterr, spec->of_column,
                              "of: it belongs to the operation; write '%.40s = %.40s: %s of=%.40s'",
                              spec->name, spec->source, spec->ops[0].op->name, spec->of);
    if (f->kind != PEN_KIND_MASK)
        return pen__spec_fail(
            reterr, spec->of_column,
            "of: only masks follow an image, and '%.40s' is none; remove of=%.40s", spec->source,
            spec->of);
    if (!image || image->kind != PEN_KIND_IMAGE)
        return fail_no_image(p, spec, reterr);
    f->follows = (int32_t)(image - p->fields);
    f->draws = image->draws;
    return PEN_OK;
}

static int32_t find_first_image(const PenLoadPlan *p)
{
    for (uint32_t i = 0; i < p->n_fields; i++)
        if (p->fields[i].kind == PEN_KIND_IMAGE)
            return (int32_t)i;
    return -1;
}

int pen__plan_views_choose(PenLoadPlan *p, PenError *reterr)
{
    int r = count(p, reterr);
    if (r == PEN_OK)
        r = number_all(p, reterr);
    p->first_image = find_first_image(p);
    for (uint32_t i = 0; i < p->n_fields && r == PEN_OK; i++) {
        const PenSpecField *spec = pen__plan_spec(p, &p->fields[i]);
        p->fields[i].follows = p->first_image;
        if (spec && spec->source && !spec->of)
            p->fields[i].draws = pen__draw_name(spec->name);
    }
    for (uint32_t i = 0; i < p->n_fields && r == PEN_OK; i++) {
        const PenSpecField *spec = pen__plan_spec(p, &p->fields[i]);
        if (spec && spec->of)
            r = follow(p, &p->fields[i], spec, reterr);
    }
    return r;
}
