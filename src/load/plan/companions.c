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
    if (image->repeats == mask->repeats && image->tensor.n_dims == mask->tensor.n_dims + 1)
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

static bool is_box(const PenOutField *f)
{
    uint32_t n = f->tensor.n_dims; /* the first one is the batch's */
    return f->kind == PEN_KIND_NUMBER && n > 1 && f->tensor.shape[n - 1] == 4 &&
           strcasestr(f->name, "box");
}

int pen__companions_warn(const PenLoadPlan *p, char **ret, PenError *reterr)
{
    static const char form[] =
        "field '%s' looks like boxes (its name has 'box', its last dimension is 4) and is "
        "delivered "
        "as stored, while the pipeline crops, resizes or flips '%s'; boxes do not follow the "
        "pixels";
    const PenOutField *moved = moved_field(p);
    *ret = NULL;
    for (uint32_t i = 0; moved && !*ret && i < p->n_fields; i++) {
        const PenOutField *f = &p->fields[i];
        if (!is_box(f))
            continue;
        size_t bytes = sizeof form + strlen(f->name) + strlen(moved->name);
        *ret = pen__alloc(bytes);
        if (!*ret)
            return pen__fail_memory(reterr, WHERE, f->name);
        snprintf(*ret, bytes, form, f->name, moved->name);
    }
    return PEN_OK;
}
