/* SPDX-License-Identifier: Apache-2.0 */
#include "load/fields/unnamed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/mem.h"
#include "load/fields/stored_sizes.h"
#include "ops/operations/op.h"
#include "ops/pipeline/list.h"
#include "pack/reader/reader.h"

#define WHERE "load/plan"

typedef struct Choice {
    PenPack *const *packs;
    uint32_t n_packs;
    PenSpec *spec;
} Choice;

/* ---- fields of the pack ---- */

/* Masks follow an image: none is the first image. NULL: the pack has no field of the type. */
static const PenField *find_first(const Choice *c, int32_t type)
{
    const PenPackInfo *info = pen_pack_info(c->packs[0]);
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (info->fields[i].type == type && !(info->fields[i].flags & PEN_FIELD_MASK))
            return &info->fields[i];
    return NULL;
}

/* The operation that returns a value as it is stored; NULL: one alone does not, of pixels. */
static const char *op_for(const PenField *f)
{
    if (pen__field_is_ragged(f))
        return "ragged";
    switch (f->type) {
    case PEN_TYPE_IMAGE:
    case PEN_TYPE_CLIP:
        return NULL;
    case PEN_TYPE_TEXT:
        return "text";
    case PEN_TYPE_JSON:
        return "json";
    case PEN_TYPE_BYTES:
        return "bytes";
    default:
        return "tensor";
    }
}

/* ---- fields of the batch ---- */

static int name_field(PenSpecField *spec, const char *name, PenError *reterr)
{
    spec->name = pen__strdup(name);
    return spec->name ? PEN_OK : pen__fail_memory(reterr, WHERE, name);
}

static int add_field(const Choice *c, const PenField *f, const char *ops, PenError *reterr)
{
    PenSpec one = {0}, *to = c->spec;
    int r = pen__spec_parse(ops, &one, reterr);
    if (r < 0)
        return r;
    PenSpecField *more = pen__resize(to->fields, (to->n_fields + 1) * sizeof *more);
    r = more ? name_field(&one.fields[0], f->name, reterr)
             : pen__fail_memory(reterr, WHERE, f->name);
    if (more)
        to->fields = more;
    if (r == PEN_OK) {
        to->fields[to->n_fields++] = one.fields[0];
        pen__free(one.fields); /* its only member has moved */
    } else {
        pen__spec_free(&one);
    }
    return r;
}

static int add_label(const Choice *c, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(c->packs[0]);
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (strcmp(info->fields[i].name, "label") == 0 && op_for(&info->fields[i]))
            return add_field(c, &info->fields[i], op_for(&info->fields[i]), reterr);
    return PEN_OK;
}

static int add_numbers(const Choice *c, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(c->packs[0]);
    int r = PEN_OK;
    for (uint32_t i = 0; i < info->n_fields && r == PEN_OK; i++)
        if (pen__field_is_number(&info->fields[i]))
            r = add_field(c, &info->fields[i], "tensor", reterr);
    if (r == PEN_OK && !c->spec->n_fields)
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "%s: the pack has no field of images, clips or numbers; pass a pipeline that "
                      "names its fields: 'caption: text'",
                      pen__pack_path(c->packs[0]));
    return r;
}

/* ---- images and clips as stored ---- */

typedef struct Sizes { /* of all images; 0: there is none */
    uint32_t width, height;
    bool differ;
    uint32_t most_short, most_long; /* sides */
} Sizes;

static void add_size(void *ctx, uint64_t i, uint32_t width, uint32_t height)
{
    Sizes *s = ctx;
    (void)i;
    if (!width)
        return;
    s->differ |= s->width && (width != s->width || height != s->height);
    s->width = width;
    s->height = height;
    s->most_short = PEN_MAX(s->most_short, PEN_MIN(width, height));
    s->most_long = PEN_MAX(s->most_long, PEN_MAX(width, height));
}

/* That a pack of a mixture has another field of this name is found later. */
static int measure_pack(PenPack *pack, const PenField *f, Sizes *ret, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(pack);
    PenSampleRange all = {0, info->n_samples};
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (strcmp(info->fields[i].name, f->name) == 0 && info->fields[i].type == f->type)
            return pen__stored_sizes(pack, i, all, add_size, ret, reterr);
    return PEN_OK;
}

static int measure(const Choice *c, const PenField *f, Sizes *ret, PenError *reterr)
{
    int r = PEN_OK;
    *ret = (Sizes){0};
    for (uint32_t i = 0; i < c->n_packs && r == PEN_OK; i++)
        r = measure_pack(c->packs[i], f, ret, reterr);
    if (r == PEN_OK && ret->most_long > PEN_SIZE_LIMIT)
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "%s: field '%.60s' has images with sides of up to %" PRIu32 " pixels, and at "
                      "most %d are returned; pass a pipeline that makes them smaller",
                      pen__pack_path(c->packs[0]), f->name, ret->most_long, PEN_SIZE_LIMIT);
    return r;
}

/* The operations keep every pixel. They bound the size also if a damaged pack has other images than
 * it says. */
static int add_images(const Choice *c, const PenField *f, PenError *reterr)
{
    char ops[120];
    Sizes sizes;
    int r = measure(c, f, &sizes, reterr);
    if (sizes.differ)
        snprintf(ops, sizeof ops,
                 "decode | resize min_side=%" PRIu32 " max_side=%" PRIu32 " enlarge=no | tensor",
                 sizes.most_short, sizes.most_long);
    else
        snprintf(ops, sizeof ops, "decode | center_crop %" PRIu32 ",%" PRIu32 " | tensor",
                 PEN_MAX(sizes.height, 1u), PEN_MAX(sizes.width, 1u));
    return r < 0 ? r : add_field(c, f, ops, reterr);
}

static int add_clips(const Choice *c, const PenField *f, PenError *reterr)
{
    char ops[80];
    Sizes sizes;
    int r = measure(c, f, &sizes, reterr);
    if (r == PEN_OK && sizes.differ)
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "%s: field '%.60s' has clips of different sizes, which do not fit into one "
                      "batch; pass a pipeline: 'decode | clip 16 | resize 256 | center_crop 224'",
                      pen__pack_path(c->packs[0]), f->name);
    snprintf(ops, sizeof ops, "decode | clip | center_crop %" PRIu32 ",%" PRIu32 " | tensor",
             PEN_MAX(sizes.height, 1u), PEN_MAX(sizes.width, 1u));
    return r < 0 ? r : add_field(c, f, ops, reterr);
}

static int add_stored(const Choice *c, PenError *reterr)
{
    const PenField *image = find_first(c, PEN_TYPE_IMAGE), *clip = find_first(c, PEN_TYPE_CLIP);
    if (!image && !clip)
        return add_numbers(c, reterr);
    int r = image ? add_images(c, image, reterr) : add_clips(c, clip, reterr);
    return r < 0 ? r : add_label(c, reterr);
}

/* ---- a pipeline without names ---- */

/* Of the first image; or of the first clip, when frames are chosen or there is no image. */
static int name_first(const Choice *c, PenSpecField *spec, PenError *reterr)
{
    const char *op = spec->n_ops ? spec->ops[0].op->name : "";
    bool selects = spec->n_ops > 1 && strcmp(spec->ops[1].op->name, "clip") == 0;
    const PenField *image = find_first(c, PEN_TYPE_IMAGE), *clip = find_first(c, PEN_TYPE_CLIP);
    const PenField *f = clip && (selects || !image) ? clip : image;
    if (pen__list_kind(spec))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "pipeline: column %u: %s: name the field: 'caption: %s'", spec->column, op,
                         op);
    if (!f)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: the pack has no image field; name the field: 'label: tensor'",
                         pen__pack_path(c->packs[0]));
    return name_field(spec, f->name, reterr);
}

int pen__fields_name(const char *pipeline, PenPack *const *packs, uint32_t n_packs, PenSpec *ret,
                     PenError *reterr)
{
    Choice c = {packs, n_packs, ret};
    if (!pipeline)
        return add_stored(&c, reterr);
    int r = pen__spec_parse(pipeline, ret, reterr);
    if (r < 0 || ret->n_fields != 1 || ret->fields[0].name)
        return r;
    r = name_first(&c, &ret->fields[0], reterr);
    return r < 0 ? r : add_label(&c, reterr);
}
