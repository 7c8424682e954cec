/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/fields.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "load/fields/unnamed.h"
#include "load/plan/companions.h"
#include "load/plan/follow.h"
#include "load/plan/mixup.h"
#include "load/plan/program.h"
#include "load/plan/ragged.h"
#include "load/plan/sizes.h"
#include "load/plan/views.h"
#include "ops/pipeline/list.h"

#define WHERE "load/plan"

/* The field for the times of a clip's frames, when the pipeline asks for them. */
static int add_times(PenLoadPlan *p, PenOutField *clip, PenError *reterr)
{
    PenOutField *to = &p->fields[p->n_fields];
    PenClipShape shape;
    pen__program_clip(clip->program, &shape);
    if (!shape.want_times)
        return PEN_OK;
    size_t bytes = strlen(clip->name) + sizeof "_times";
    *to = (PenOutField){.field = clip->field, .kind = PEN_KIND_TIMES, .name = pen__alloc(bytes)};
    if (!to->name)
        return pen__fail_memory(reterr, WHERE, clip->name);
    snprintf(to->name, bytes, "%s_times", clip->name);
    PenTensor one = {.dtype = PEN_I64, .n_dims = 1, .shape = {shape.frames}};
    if (shape.views > 1)
        one = (PenTensor){.dtype = PEN_I64, .n_dims = 2, .shape = {shape.views, shape.frames}};
    pen__plan_set_tensor(p, to, &one);
    to->bytes = (uint64_t)shape.views * shape.frames * 8;
    clip->times = p->n_fields++;
    return PEN_OK;
}

/* A clip around a frame has a mask. */
static int add_inside(PenLoadPlan *p, PenOutField *clip, PenError *reterr)
{
    const PenClipRule *rule = pen__program_clip(clip->program, NULL);
    if (rule->offset != PEN_OFFSET_FRAME)
        return PEN_OK;
    int r = pen__plan_check_frames(p, clip->name, reterr);
    return r < 0 ? r : pen__plan_add_mask(p, clip, rule->frames, &clip->inside, reterr);
}

static const char *noun_of(const PenOutField *a, const PenOutField *b)
{
    if (a->kind == PEN_KIND_KEPT)
        return "kept rows";
    if (a->kind == PEN_KIND_SIZES || b->kind == PEN_KIND_SIZES)
        return "images' sizes";
    bool is_mask = a->kind == PEN_KIND_ROW_MASK || b->kind == PEN_KIND_ROW_MASK;
    return is_mask ? "mask of rows" : "clip's timestamps";
}

/* With the times of clips, the masks of rows, the rows that are kept and the sizes of images there
 * may be two fields of one name. */
static int check_names(const PenLoadPlan *p, PenError *reterr)
{
    for (uint32_t i = 0; i < p->n_fields; i++)
        for (uint32_t j = 0; j < i; j++) {
            const PenOutField *f = &p->fields[i];
            if (strcmp(f->name, p->fields[j].name) == 0)
                return pen__fail(reterr, PEN_E_INVALID, WHERE,
                                 "pipeline: the name of the %s, '%s', is also a field of the "
                                 "pack; leave one of them out",
                                 noun_of(f, &p->fields[j]), f->name);
        }
    return PEN_OK;
}

static int add_list(PenLoadPlan *p, PenOutField *to, const PenSpecField *spec, const char *holds,
                    PenError *reterr)
{
    PenTensor any = {.dtype = PEN_U8, .n_dims = 1, .shape = {-1}};
    to->list = pen__list_kind(spec);
    to->tensor = any;
    to->row_bytes = 1;
    p->n_values++;
    p->n_lists++;
    return pen__list_check(spec, holds, &to->bytes, reterr);
}

static int add_program(PenLoadPlan *p, PenOutField *to, const PenSpecField *spec,
                       const PenFieldKind *kind, PenError *reterr)
{
    int r = pen__plan_program(p, 0, spec, kind, &to->program, reterr);
    if (r < 0)
        return r;
    PenTensor one = pen__program_result(to->program);
    pen__plan_set_tensor(p, to, &one);
    to->bytes = pen__program_bytes(to->program);
    to->repeats = pen__program_repeats(to->program);
    if (kind->kind == PEN_KIND_CLIP) {
        to->image = p->n_clips++;
        r = add_times(p, to, reterr);
        return r < 0 ? r : add_inside(p, to, reterr);
    }
    r = pen__plan_add_sizes(p, to, reterr);
    return r < 0 ? r : pen__plan_add_grid(p, to, reterr);
}

/* `number` is PEN_NO_FIELD for the key of the sample. */
static int add_field(PenLoadPlan *p, uint32_t number, const PenSpecField *spec, PenError *reterr)
{
    PenFieldKind kind = {.kind = PEN_KIND_LIST};
    const PenField *stored = NULL; /* of a ragged field */
    const char *holds = "the key";
    PenOutField *to = &p->fields[p->n_fields];
    if (number != PEN_NO_FIELD) {
        const PenField *f = &pen_pack_info(p->pack)->fields[number];
        stored = pen__field_is_ragged(f) ? f : NULL;
        pen__plan_describe(f, &kind);
        holds = pen_type_name(f->type);
    }
    *to = (PenOutField){.field = number, .kind = kind.kind, .name = pen__strdup(spec->name)};
    p->n_fields++;
    if (!to->name)
        return pen__fail_memory(reterr, WHERE, spec->name);
    if (stored)
        return pen__plan_add_ragged(p, to, stored, spec, reterr);
    if (kind.kind == PEN_KIND_LIST)
        return add_list(p, to, spec, holds, reterr);
    return add_program(p, to, spec, &kind, reterr);
}

static int find_field(const PenLoadPlan *p, const PenSpecField *spec, uint32_t *ret,
                      PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(p->pack);
    const char *name = spec->source ? spec->source : spec->name;
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (strcmp(info->fields[i].name, name) == 0) {
            *ret = i;
            return PEN_OK;
        }
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "pipeline: column %u: no field '%s' in %s; its first field is '%s'",
                     spec->source ? spec->source_column : spec->column, name,
                     pen__pack_path(p->pack), info->fields[0].name);
}

/* The key of the sample is no field of the pack, nor is a view: its name is new. */
static int check_new_name(const PenLoadPlan *p, const PenSpecField *spec, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(p->pack);
    bool is_key = pen__list_kind(spec) == PEN_LIST_KEY;
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (strcmp(info->fields[i].name, spec->name) == 0)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "pipeline: column %u: %s'%s' is a field of the pack; use another "
                             "name for %s",
                             spec->column, is_key ? "key: " : "", spec->name,
                             is_key ? "the keys of the samples" : "the view");
    return PEN_OK;
}

static int write_text(PenLoadPlan *p, PenError *reterr)
{
    PenBuf text = {0};
    if (pen__spec_write(&p->spec, &text) < 0 || pen__buf_add(&text, "", 1) < 0) {
        pen__buf_free(&text);
        return pen__fail_memory(reterr, WHERE, "pipeline");
    }
    p->text = (char *)text.data;
    return PEN_OK;
}

static int add_named(PenLoadPlan *p, const PenSpecField *spec, PenError *reterr)
{
    uint32_t number = PEN_NO_FIELD;
    bool is_key = pen__list_kind(spec) == PEN_LIST_KEY;
    int r = PEN_OK;
    if (is_key || (spec->source && strcmp(spec->source, spec->name) != 0))
        r = check_new_name(p, spec, reterr);
    if (r == PEN_OK && !is_key)
        r = find_field(p, spec, &number, reterr);
    for (uint32_t i = 0; i < p->n_fields && is_key && r == PEN_OK; i++)
        if (p->fields[i].field == PEN_NO_FIELD)
            r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                          "pipeline: column %u: field '%s' occurs twice", spec->column,
                          p->fields[i].name);
    return r == PEN_OK ? add_field(p, number, spec, reterr) : r;
}

static int make_spec(PenLoadPlan *p, PenError *reterr)
{
    uint32_t n = PEN_MAX(p->n_sources, 1u);
    PenPack **packs = pen__alloc_array(n, sizeof *packs);
    if (!packs)
        return pen__fail_memory(reterr, WHERE, "packs");
    packs[0] = p->pack;
    for (uint32_t i = 1; i < n; i++)
        packs[i] = p->sources[i].pack;
    int r = pen__fields_name(p->set.pipeline, packs, n, &p->spec, reterr);
    pen__free(packs);
    return r;
}

int pen__plan_fields_choose(PenLoadPlan *p, PenError *reterr)
{
    int r = make_spec(p, reterr);
    if (r == PEN_OK)
        r = write_text(p, reterr);
    if (r < 0)
        return r;
    p->fields = pen__alloc_array(3 * (uint64_t)p->spec.n_fields + 1, sizeof *p->fields);
    if (!p->fields)
        return pen__fail_memory(reterr, WHERE, "fields");
    for (uint32_t i = 0; i < p->spec.n_fields && r == PEN_OK; i++)
        r = add_named(p, &p->spec.fields[i], reterr);
    if (r == PEN_OK)
        r = pen__plan_views_choose(p, reterr);
    if (r == PEN_OK)
        r = pen__plan_follow(p, reterr);
    if (r == PEN_OK)
        r = pen__plan_mixup(p, reterr);
    if (r == PEN_OK)
        r = check_names(p, reterr);
    if (r == PEN_OK)
        r = pen__companions_check(p, reterr);
    if (r == PEN_OK)
        r = pen__companions_warn(p, &p->warning, reterr);
    return r;
}
