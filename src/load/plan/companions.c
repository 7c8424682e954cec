/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/companions.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "load/plan/views.h"
#include "ops/pipeline/geometry.h"

#define WHERE "load/companions"

enum { SHOWN = 96 }; /* bytes of an operation in a message */

/* ---- masks ---- */

static void show(const PenSpecOp *op, char buf[SHOWN])
{
    PenBuf text = {0};
    if (!op)
        snprintf(buf, SHOWN, "nothing more");
    else if (pen__spec_write_op(op, &text) < 0)
        snprintf(buf, SHOWN, "'%s'", op->op->name);
    else
        snprintf(buf, SHOWN, "'%.*s'", (int)PEN_MIN(text.bytes, (size_t)SHOWN - 3),
                 (const char *)text.data);
    pen__buf_free(&text);
}

static int fail_mask(const PenSpecField *image, const PenSpecField *mask, const PenSpecOp *of_image,
                     const PenSpecOp *of_mask, PenError *reterr)
{
    char a[SHOWN], b[SHOWN];
    show(of_image, a);
    show(of_mask, b);
    return pen__fail(
        reterr, PEN_E_INVALID, WHERE,
        "pipeline: column %u: the geometry of mask '%.40s' differs from that of image '%.40s': %s, "
        "where the image has %s; give it the image's crops, resizes and flips in "
        "the same order (a further resize may follow)",
        of_mask ? of_mask->column : mask->column, mask->name, image->name, b, a);
}

static int fail_unnamed(const PenOutField *view, const PenSpecField *mask, PenError *reterr)
{
    const char *source = mask->source ? mask->source : mask->name;
    return pen__spec_fail(reterr, mask->column,
                          "mask '%.40s': name the view that it follows: '%.40s = %.40s of=%.40s: "
                          "...'",
                          mask->name, mask->name, source, view->name);
}

static int check_repeats(const PenOutField *image, const PenOutField *mask,
                         const PenSpecField *spec, PenError *reterr)
{
    uint32_t n_dims = mask->tensor.n_dims + (mask->grid ? 0 : 1); /* channels */
    if (image->repeats == mask->repeats && image->tensor.n_dims == n_dims)
        return PEN_OK;
    return pen__spec_fail(reterr, spec->column,
                          "mask '%.40s': its repeat differs from that of image '%.40s'; give both "
                          "the same",
                          mask->name, image->name);
}

/* Pixels of a mask belong to those of one image of the pipeline, with the same draws. */
static int check_mask(const PenLoadPlan *p, const PenOutField *f, PenError *reterr)
{
    const PenSpecField *first = NULL, *mask = pen__plan_spec(p, f);
    const PenSpecOp *a, *b, *of_image = NULL, *of_mask = NULL;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        bool is_other = mask->of ? (int32_t)i != f->follows : p->fields[i].draws != f->draws;
        if (p->fields[i].kind != PEN_KIND_IMAGE || is_other)
            continue;
        const PenSpecField *image = pen__plan_spec(p, &p->fields[i]);
        if (!pen__geometry_differs(image, mask, &a, &b))
            return check_repeats(&p->fields[i], f, mask, reterr);
        if (!first) {
            first = image;
            of_image = a;
            of_mask = b;
        }
    }
    if (first)
        return fail_mask(first, mask, of_image, of_mask, reterr);
    return p->first_image < 0 ? PEN_OK : fail_unnamed(&p->fields[p->first_image], mask, reterr);
}

int pen__companions_check(const PenLoadPlan *p, PenError *reterr)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < p->n_fields && r == PEN_OK; i++)
        if (p->fields[i].kind == PEN_KIND_MASK)
            r = check_mask(p, &p->fields[i], reterr);
    return r;
}

/* ---- boxes ---- */

static const PenOutField *moved_field(const PenLoadPlan *p)
{
    for (uint32_t i = 0; i < p->n_fields; i++) {
        const PenOutField *f = &p->fields[i];
        if ((f->kind == PEN_KIND_IMAGE || f->kind == PEN_KIND_CLIP) &&
            pen__geometry_any(pen__plan_spec(p, f)))
            return f;
    }
    return NULL;
}

/* Numbers of which neither the schema nor the pipeline says that they are boxes. */
static bool looks_like_boxes(const PenField *stored)
{
    return pen__type_is_number(stored->type) && stored->n_dims > 0 &&
           stored->dims[stored->n_dims - 1] == 4 && strcasestr(stored->name, "box");
}

/* What is delivered as stored; NULL: nothing that depends on the pixels. */
static const char *unmoved(const PenLoadPlan *p, const PenOutField *f)
{
    if (f->field == PEN_NO_FIELD || (f->kind != PEN_KIND_NUMBER && f->kind != PEN_KIND_LIST))
        return NULL;
    const PenField *stored = &pen_pack_info(p->pack)->fields[f->field];
    uint32_t coordinates = stored->flags & PEN_FIELD_COORDINATES;
    for (uint32_t i = 0; i < p->n_follows; i++)
        if (&p->fields[p->follows[i].field] == f && p->follows[i].rule.stored)
            return NULL;
    if (coordinates)
        return coordinates == PEN_FIELD_POINTS ? "holds points" : "holds boxes";
    return looks_like_boxes(stored)
               ? "looks like boxes (its name has 'box', its last dimension is 4)"
               : NULL;
}

static const char *advice(const PenOutField *moved, const char *what)
{
    if (moved->kind == PEN_KIND_CLIP)
        return "boxes do not follow the pixels of a clip";
    if (strcmp(what, "holds points") == 0)
        return "use the operation 'points'";
    if (strcmp(what, "holds boxes") == 0)
        return "use the operation 'boxes'";
    return "boxes follow if they are packed with the type 'f32[*,4] boxes xyxy absolute' and the "
           "pipeline has the operation 'boxes' for them";
}

static int warn(const PenOutField *f, const PenOutField *moved, const char *what, char **ret,
                PenError *reterr)
{
    static const char form[] =
        "field '%s' %s and is delivered as stored, while the pipeline crops, "
        "resizes or flips '%s'; %s";
    const char *then = advice(moved, what);
    size_t bytes =
        sizeof form + strlen(f->name) + strlen(what) + strlen(moved->name) + strlen(then);
    *ret = pen__alloc(bytes);
    if (!*ret)
        return pen__fail_memory(reterr, WHERE, f->name);
    snprintf(*ret, bytes, form, f->name, what, moved->name, then);
    return PEN_OK;
}

int pen__companions_warn(const PenLoadPlan *p, char **ret, PenError *reterr)
{
    const PenOutField *moved = moved_field(p);
    *ret = NULL;
    for (uint32_t i = 0; moved && i < p->n_fields; i++) {
        const char *what = unmoved(p, &p->fields[i]);
        if (what)
            return warn(&p->fields[i], moved, what, ret, reterr);
    }
    return PEN_OK;
}
