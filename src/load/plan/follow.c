/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/follow.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "load/plan/views.h"
#include "ops/language/lex.h"
#include "ops/pipeline/follow.h"

#define WHERE "load/follow"

/* ---- images ---- */

static int find_named_image(const PenLoadPlan *p, const PenSpecOp *op, const char *name,
                            const PenOutField **ret, PenError *reterr)
{
    *ret = pen__plan_find(p, name);
    if (!*ret)
        return pen__spec_fail(reterr, op->column, "%s: of: no field '%.60s' in the pipeline",
                              op->op->name, name);
    if (!pen__field_is_image(*ret))
        return pen__spec_fail(reterr, op->column,
                              "%s: of: the field '%.60s' is no image; expected an image or a mask",
                              op->op->name, name);
    return PEN_OK;
}

static int find_only_image(const PenLoadPlan *p, const PenSpecOp *op, const PenOutField **ret,
                           PenError *reterr)
{
    uint32_t n = 0;
    for (uint32_t i = p->n_fields; i-- > 0;)
        if (p->fields[i].kind == PEN_KIND_IMAGE) {
            *ret = &p->fields[i];
            n++;
        }
    if (n == 1)
        return PEN_OK;
    if (n > 1)
        return pen__spec_fail(reterr, op->column,
                              "%s: the pipeline has %u images; name the one to follow: "
                              "'%s of=%.60s'",
                              op->op->name, n, op->op->name, (*ret)->name);
    return pen__spec_fail(reterr, op->column,
                          "%s: the pipeline has no image to follow; add one: 'image: decode | ...'",
                          op->op->name);
}

static int find_image(const PenLoadPlan *p, const PenSpecOp *op, uint32_t *ret, PenError *reterr)
{
    const char *name = pen__follow_image(op);
    const PenOutField *image = NULL;
    int r = name ? find_named_image(p, op, name, &image, reterr)
                 : find_only_image(p, op, &image, reterr);
    if (r < 0)
        return r;
    if (image->repeats > 1)
        return pen__spec_fail(reterr, op->column,
                              "%s: '%.60s' has several results per image; follow a view without "
                              "repeat, five_crop and ten_crop",
                              op->op->name, image->name);
    *ret = (uint32_t)(image - p->fields);
    return PEN_OK;
}

/* ---- boxes and points ---- */

/* What the schema says of the numbers; 0: nothing. */
static void describe(const PenField *f, PenFollowRule *ret)
{
    static const struct {
        uint32_t flag;
        PenCoordinates coordinates;
    } all[] = {{PEN_FIELD_BOXES_XYXY, PEN_COORDS_XYXY},
               {PEN_FIELD_BOXES_XYWH, PEN_COORDS_XYWH},
               {PEN_FIELD_BOXES_CXCYWH, PEN_COORDS_CXCYWH},
               {PEN_FIELD_POINTS, PEN_COORDS_POINTS}};
    *ret = (PenFollowRule){.stored_relative = (f->flags & PEN_FIELD_RELATIVE) != 0, .points = 1};
    for (size_t i = 0; i < PEN_LEN(all); i++)
        if ((f->flags & PEN_FIELD_COORDINATES) == all[i].flag)
            ret->stored = all[i].coordinates;
    for (uint32_t i = 1; i + 1 < f->n_dims; i++)
        ret->points *= f->dims[i];
}

/* The field for the numbers of the rows that are kept. */
static int add_kept(PenLoadPlan *p, PenFollow *follow, PenError *reterr)
{
    const PenOutField *rows = &p->fields[follow->field];
    PenOutField *to = &p->fields[p->n_fields];
    size_t bytes = strlen(rows->name) + sizeof "_kept";
    *to = (PenOutField){.field = rows->field,
                        .kind = PEN_KIND_KEPT,
                        .list = rows->list,
                        .row_bytes = sizeof(int64_t),
                        .max_rows = rows->max_rows,
                        .bytes = (uint64_t)rows->max_rows * sizeof(int64_t),
                        .mask = rows->mask,
                        .pad = -1,
                        .tensor = {.dtype = PEN_I64, .n_dims = 1, .shape = {-1}},
                        .name = pen__alloc(bytes)};
    if (!to->name)
        return pen__fail_memory(reterr, WHERE, rows->name);
    snprintf(to->name, bytes, "%s_kept", rows->name);
    if (to->mask) {
        to->tensor.n_dims = 2;
        to->tensor.shape[0] = p->set.batch_size;
        to->tensor.shape[1] = rows->max_rows;
    }
    p->n_values++;
    p->n_lists += !to->mask;
    follow->kept = p->n_fields++;
    return PEN_OK;
}

static int add_move(PenLoadPlan *p, const PenFollowSpec *spec, PenFollow *to, PenError *reterr)
{
    const PenOutField *f = &p->fields[to->field];
    describe(&pen_pack_info(p->pack)->fields[f->field], &to->rule);
    int r = pen__follow_rule(spec, f->name, &to->rule, reterr);
    if (r == PEN_OK)
        r = find_image(p, spec->moves, &to->image, reterr);
    if (r == PEN_OK && pen__follow_wants_kept(spec->moves))
        r = add_kept(p, to, reterr);
    return r;
}

/* ---- keep ---- */

/* The fields that choose rows come first in the list. */
static int find_source(const PenLoadPlan *p, const PenSpecOp *op, uint32_t *ret, PenError *reterr)
{
    const char *name = op->values[0].name;
    for (uint32_t i = 0; i < p->n_follows; i++)
        if (p->follows[i].source == PEN_NO_FIELD &&
            strcmp(p->fields[p->follows[i].field].name, name) == 0) {
            *ret = i;
            return PEN_OK;
        }
    return pen__spec_fail(reterr, op->column,
                          "keep: no field '%.60s' with the operation boxes or points in the "
                          "pipeline",
                          name);
}

static int add_follow(PenLoadPlan *p, uint32_t field, const PenFollowSpec *spec, PenError *reterr)
{
    PenFollow follow = {.field = field, .source = PEN_NO_FIELD};
    int r = spec->moves ? add_move(p, spec, &follow, reterr) : PEN_OK;
    if (r == PEN_OK && spec->keeps)
        r = find_source(p, spec->keeps, &follow.source, reterr);
    if (r == PEN_OK)
        p->follows[p->n_follows++] = follow;
    return r;
}

static int add_all(PenLoadPlan *p, uint32_t n, bool keeps, PenError *reterr)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < n && r == PEN_OK; i++) {
        const PenSpecField *text = pen__plan_spec(p, &p->fields[i]);
        PenFollowSpec spec = {.n_ops = 0};
        if (text)
            spec = pen__follow_spec(text);
        if (spec.n_ops && keeps == (spec.keeps != NULL))
            r = add_follow(p, i, &spec, reterr);
    }
    return r;
}

int pen__plan_follow(PenLoadPlan *p, PenError *reterr)
{
    uint32_t n = 0, n_fields = p->n_fields;
    for (uint32_t i = 0; i < p->spec.n_fields; i++)
        n += pen__follow_spec(&p->spec.fields[i]).n_ops > 0;
    if (!n)
        return PEN_OK;
    p->follows = pen__alloc_array(n, sizeof *p->follows);
    if (!p->follows)
        return pen__fail_memory(reterr, WHERE, "fields");
    int r = add_all(p, n_fields, false, reterr);
    return r < 0 ? r : add_all(p, n_fields, true, reterr);
}
