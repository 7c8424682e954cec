/* SPDX-License-Identifier: Apache-2.0 */
/* Which fields the samples have: image or video first, label second, the others by name; or those
 * of the pack that is appended to, when they fit. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/plan/plan_impl.h"
#include "pack/format/schema.h"

#define WHERE "ingest/plan"
#define LABEL_COLUMN UINT16_MAX

/* A field that the sources have. */
typedef struct Found {
    const char *name;
    uint16_t column;
} Found;

static int rank(const Found *f)
{
    bool first = strcmp(f->name, "image") == 0 || strcmp(f->name, "video") == 0;
    return f->column == LABEL_COLUMN ? 1 : first ? 0 : 2;
}

static int by_rank(const void *a, const void *b)
{
    int p = rank(a), q = rank(b);
    return p != q ? p - q : strcmp(((const Found *)a)->name, ((const Found *)b)->name);
}

static int find_fields(const PenInputs *in, Found found[PEN_FIELD_LIMIT + 1], uint32_t *ret_n,
                       PenError *reterr)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < in->n_columns; i++) {
        if (in->has_label && strcmp(in->columns[i].name, "label") == 0)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "field label: expected only class numbers, found parts of another "
                             "type; rename those parts");
        found[n++] = (Found){in->columns[i].name, (uint16_t)i};
    }
    if (in->has_label)
        found[n++] = (Found){"label", LABEL_COLUMN};
    if (n > PEN_FIELD_LIMIT)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "expected at most %d fields, found %" PRIu32,
                         PEN_FIELD_LIMIT, n);
    qsort(found, n, sizeof *found, by_rank);
    *ret_n = n;
    return PEN_OK;
}

static PenField field_of(const PenInputs *in, const Found *f)
{
    if (f->column == LABEL_COLUMN)
        return (PenField){.name = f->name, .type = PEN_TYPE_I64};
    const PenColumn *c = &in->columns[f->column];
    int32_t type = c->type      ? c->type
                   : c->all_i64 ? PEN_TYPE_I64
                   : c->all_f64 ? PEN_TYPE_F64
                                : PEN_TYPE_TEXT;
    return (PenField){.name = f->name, .type = type, .flags = c->flags};
}

static void set_field(PenPlanSchema *shape, const Found *f, uint32_t field)
{
    if (f->column == LABEL_COLUMN)
        shape->label_field = (int32_t)field;
    else
        shape->field_of_column[f->column] = (uint16_t)field;
}

/* ---- a pack to append to --------------------------------------------------------------------- */

/* Can the values of this column be written as what the pack has? */
static bool fits(const PenInputs *in, const Found *f, const PenField *want)
{
    PenField own = field_of(in, f);
    if (want->n_dims || (want->flags ^ own.flags) & PEN_FIELD_MASK)
        return false;
    if (want->type == own.type)
        return true;
    if (f->column == LABEL_COLUMN || in->columns[f->column].type)
        return false;
    const PenColumn *c = &in->columns[f->column];
    bool is_float = want->type == PEN_TYPE_F64 || want->type == PEN_TYPE_F32;
    return want->type == PEN_TYPE_TEXT || (is_float && c->all_f64);
}

static bool is_number(int32_t type)
{
    return type == PEN_TYPE_I64 || type == PEN_TYPE_F32 || type == PEN_TYPE_F64;
}

static int fit_one(const PenInputs *in, const PenField *want, const Found *found, uint32_t n,
                   const Found **ret, PenError *reterr)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(found[i].name, want->name) != 0)
            continue;
        if (!fits(in, &found[i], want)) {
            PenField own = field_of(in, &found[i]);
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "field %s: expected %s%s%s as in the pack, found %s%s in the sources",
                             want->name, pen_type_name(want->type), want->n_dims ? " array" : "",
                             want->flags & PEN_FIELD_MASK ? " (mask)" : "", pen_type_name(own.type),
                             own.flags & PEN_FIELD_MASK ? " (mask)" : "");
        }
        *ret = &found[i];
        return PEN_OK;
    }
    /* Samples of a tar may lack a part, so all of them may. */
    if (in->kind == PEN_ROOT_TAR && !is_number(want->type)) {
        *ret = NULL;
        return PEN_OK;
    }
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "field %s: the pack has this field, but the sources do not", want->name);
}

static int fit_base(const PenInputs *in, const PenPackInfo *base, const Found *found, uint32_t n,
                    PenPlanSchema *shape, PenError *reterr)
{
    if (base->n_fields > PEN_FIELD_LIMIT)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "expected at most %d fields, found %" PRIu32,
                         PEN_FIELD_LIMIT, base->n_fields);
    bool used[PEN_FIELD_LIMIT + 1] = {false};
    for (uint32_t i = 0; i < base->n_fields; i++) {
        const Found *f = NULL;
        int r = fit_one(in, &base->fields[i], found, n, &f, reterr);
        if (r < 0)
            return r;
        shape->fields[i] = base->fields[i];
        if (f) {
            set_field(shape, f, i);
            used[f - found] = true;
        }
    }
    shape->n_fields = base->n_fields;
    for (uint32_t i = 0; i < n; i++)
        if (!used[i])
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "field %s: the sources have this field, but the pack does not",
                             found[i].name);
    return PEN_OK;
}

int pen__plan_schema_make(const PenInputs *in, const PenPlanRequest *request, PenPlanSchema *ret,
                          PenError *reterr)
{
    *ret = (PenPlanSchema){.label_field = -1, .class_field = -1};
    Found found[PEN_FIELD_LIMIT + 1];
    uint32_t n = 0;
    int r = find_fields(in, found, &n, reterr);
    if (r < 0)
        return r;
    if (request->base) {
        r = fit_base(in, request->base, found, n, ret, reterr);
        if (r < 0)
            return r;
    } else {
        for (uint32_t i = 0; i < n; i++) {
            ret->fields[i] = field_of(in, &found[i]);
            set_field(ret, &found[i], i);
        }
        ret->n_fields = n;
    }
    return pen__plan_schema_labels(in, request, ret, reterr);
}

void pen__plan_schema_mark_optional(PenPlanSchema *shape, const uint64_t *n_parts,
                                    uint64_t n_inputs)
{
    for (uint32_t f = 0; f < shape->n_fields; f++)
        if (pen__field_is_blob(&shape->fields[f]) && n_parts[f] < n_inputs)
            shape->fields[f].flags |= PEN_FIELD_OPTIONAL;
}

void pen__plan_schema_free(PenPlanSchema *shape)
{
    pen__free(shape->classes);
    pen__free(shape->numbers);
    *shape = (PenPlanSchema){0};
}
