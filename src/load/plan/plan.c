/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/abi.h"
#include "base/bytes.h"
#include "base/machine/cores.h"
#include "base/machine/ranks.h"
#include "base/sha256.h"
#include "load/epoch/ordinals.h"
#include "load/plan/companions.h"

#define WHERE "load/plan"

enum { MAX_BATCH = 1 << 20, MAX_WORLD = 1 << 20, MAX_THREADS = 1024, MAX_PREFETCH = 1024 };
enum { FETCHERS = 64 };

void pen__load_plan_fini(PenLoadPlan *p)
{
    for (uint32_t i = 0; i < p->n_fields; i++) {
        pen__program_free(&p->fields[i].program);
        pen__free(p->fields[i].name);
    }
    pen__free(p->fields);
    pen__free(p->text);
    pen__free(p->subset);
    pen__free(p->ordinals);
    pen__free(p->warning);
    pen__spec_free(&p->spec);
    pen_pack_close(&p->pack);
    *p = (PenLoadPlan){0};
}

/* ---- settings ---- */

static int out_of_range(PenError *reterr, const char *name, uint64_t found, const char *expected)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected %s, found %" PRIu64, name,
                     expected, found);
}

static int check_settings(const PenLoaderSettings *s, PenError *reterr)
{
    if (s->batch_size < 1 || s->batch_size > MAX_BATCH)
        return out_of_range(reterr, "batch_size", s->batch_size, "1 to 1048576");
    if (s->world < 1 || s->world > MAX_WORLD)
        return out_of_range(reterr, "world", s->world, "1 to 1048576");
    if (s->rank >= s->world)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "rank: expected a number below world (%u), found %u", s->world, s->rank);
    if (s->order < PEN_ORDER_SEQUENTIAL || s->order > PEN_ORDER_STICKY)
        return out_of_range(reterr, "order", (uint64_t)s->order, "0, 1, 2 or 3");
    if (s->threads < 0 || s->threads > MAX_THREADS)
        return out_of_range(reterr, "threads", (uint64_t)s->threads, "0 to 1024");
    if (s->io_threads < 0 || s->io_threads > MAX_THREADS)
        return out_of_range(reterr, "io_threads", (uint64_t)s->io_threads, "0 to 1024");
    if (s->prefetch > MAX_PREFETCH)
        return out_of_range(reterr, "prefetch", s->prefetch, "0 to 1024");
    if (s->lanes > PEN_LANES_MOST)
        return out_of_range(reterr, "lanes", s->lanes, "0 to 2147483648");
    if (s->window > PEN_LANES_MOST)
        return out_of_range(reterr, "window", s->window, "0 to 2147483648");
    if (s->on_bad != PEN_BAD_RAISE && s->on_bad != PEN_BAD_SUBSTITUTE)
        return out_of_range(reterr, "on_bad", (uint64_t)s->on_bad, "0 or 1");
    if (!s->stall_ms)
        return out_of_range(reterr, "stall_ms", 0, "1 or more");
    return PEN_OK;
}

/* ---- which samples ---- */

static int take_list(PenLoadPlan *p, uint64_t n_samples, PenError *reterr)
{
    const uint64_t *list = p->set.subset;
    uint64_t n = p->set.n_subset;
    if (p->set.count)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "subset: expected a list or a range, found both");
    for (uint64_t i = 0; i < n; i++)
        if (list[i] >= n_samples)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "subset: entry %" PRIu64 ": expected a number below %" PRIu64
                             ", found %" PRIu64,
                             i, n_samples, list[i]);
    p->subset = pen__alloc_array(n, sizeof *list);
    if (!p->subset)
        return pen__fail_memory(reterr, WHERE, "subset");
    memcpy(p->subset, list, n * sizeof *list);
    return pen__ordinals_new(list, n, n_samples, &p->ordinals, reterr);
}

static uint64_t hash64(const void *data, size_t bytes, uint64_t more)
{
    PenSha256 s;
    uint8_t sum[32], extra[8];
    pen__store64(extra, more);
    pen__sha256_init(&s);
    pen__sha256_update(&s, data, bytes);
    pen__sha256_update(&s, extra, sizeof extra);
    pen__sha256_final(&s, sum);
    return pen__load64(sum);
}

static int choose_samples(PenLoadPlan *p, PenError *reterr)
{
    uint64_t all = pen_pack_info(p->pack)->n_samples, n = all;
    PenLoaderSettings *s = &p->set;
    if (s->subset) {
        int r = take_list(p, all, reterr);
        if (r < 0)
            return r;
        n = s->n_subset;
        p->state.subset = hash64(p->subset, n * sizeof *p->subset, 1);
        s->first = 0;
    } else if (s->count) {
        if (!pen__range_ok(s->first, s->count, all))
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "subset: expected a range inside of 0 to %" PRIu64 ", found %" PRIu64
                             " samples from %" PRIu64,
                             all, s->count, s->first);
        n = s->count;
        if (n != all)
            p->state.subset = hash64(&s->first, sizeof s->first, n);
    } else {
        s->first = 0;
    }
    s->subset = NULL;
    if (!n)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected samples to load, found none",
                         pen__pack_path(p->pack));
    p->state.order.n = n;
    return PEN_OK;
}

/* ---- fields ---- */

static int describe(const PenField *f, PenFieldKind *ret)
{
    *ret = (PenFieldKind){.n_dims = f->n_dims};
    memcpy(ret->dims, f->dims, sizeof ret->dims);
    switch (f->type) {
    case PEN_TYPE_IMAGE:
        ret->kind = f->flags & PEN_FIELD_MASK ? PEN_KIND_MASK : PEN_KIND_IMAGE;
        return PEN_OK;
    case PEN_TYPE_CLIP:
        ret->kind = PEN_KIND_CLIP;
        return PEN_OK;
    case PEN_TYPE_I64:
        ret->dtype = PEN_I64;
        break;
    case PEN_TYPE_F32:
        ret->dtype = PEN_F32;
        break;
    case PEN_TYPE_F64:
        ret->dtype = PEN_F64;
        break;
    default:
        return PEN_E_UNSUPPORTED;
    }
    ret->kind = PEN_KIND_NUMBER;
    return PEN_OK;
}

static void set_tensor(const PenLoadPlan *p, PenOutField *f, const PenTensor *one)
{
    f->tensor = *one;
    f->tensor.n_dims = one->n_dims + 1;
    f->tensor.shape[0] = p->set.batch_size;
    for (uint32_t i = 0; i < one->n_dims; i++)
        f->tensor.shape[i + 1] = one->shape[i];
}

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
    set_tensor(p, to, &one);
    to->bytes = (uint64_t)shape.views * shape.frames * 8;
    clip->times = p->n_fields++;
    return PEN_OK;
}

/* With the times of clips there may be two fields of one name. */
static int check_names(const PenLoadPlan *p, PenError *reterr)
{
    for (uint32_t i = 0; i < p->n_fields; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(p->fields[i].name, p->fields[j].name) == 0)
                return pen__fail(reterr, PEN_E_INVALID, WHERE,
                                 "pipeline: the pack has a field '%s', as the times of a clip "
                                 "would be called; leave one of them out",
                                 p->fields[i].name);
    return PEN_OK;
}

static int add_field(PenLoadPlan *p, uint32_t number, const PenSpecField *spec, PenError *reterr)
{
    const PenField *f = &pen_pack_info(p->pack)->fields[number];
    PenFieldKind kind;
    PenOutField *to = &p->fields[p->n_fields];
    if (describe(f, &kind) < 0)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "field '%s': expected an image, a mask, a clip or numbers, found %s; "
                         "leave it out of the "
                         "pipeline",
                         f->name, pen_type_name(f->type));
    *to = (PenOutField){.field = number, .kind = kind.kind, .name = pen__strdup(f->name)};
    p->n_fields++;
    if (!to->name)
        return pen__fail_memory(reterr, WHERE, f->name);
    int r = pen__program_new(spec, &kind, &to->program, reterr);
    if (r < 0)
        return r;
    PenTensor one = pen__program_result(to->program);
    set_tensor(p, to, &one);
    to->bytes = pen__program_bytes(to->program);
    if (pen__field_is_image(to))
        to->image = p->n_images++;
    if (kind.kind == PEN_KIND_CLIP) {
        to->image = p->n_clips++;
        r = add_times(p, to, reterr);
    }
    return r;
}

/* The first image; or the first clip, when frames are chosen or there is no image. */
static bool find_unnamed(const PenPackInfo *info, const PenSpecField *spec, uint32_t *ret)
{
    bool clips = spec->n_ops > 1 && strcmp(spec->ops[1].op->name, "clip") == 0;
    uint32_t clip = UINT32_MAX, image = UINT32_MAX;
    for (uint32_t i = info->n_fields; i-- > 0;) {
        const PenField *f = &info->fields[i];
        if (f->type == PEN_TYPE_CLIP)
            clip = i;
        else if (f->type == PEN_TYPE_IMAGE && !(f->flags & PEN_FIELD_MASK))
            image = i;
    }
    *ret = clip != UINT32_MAX && (clips || image == UINT32_MAX) ? clip : image;
    return *ret != UINT32_MAX;
}

static int find_field(const PenLoadPlan *p, const PenSpecField *spec, uint32_t *ret,
                      PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(p->pack);
    for (uint32_t i = 0; spec->name && i < info->n_fields; i++)
        if (strcmp(info->fields[i].name, spec->name) == 0) {
            *ret = i;
            return PEN_OK;
        }
    if (!spec->name && find_unnamed(info, spec, ret))
        return PEN_OK;
    if (!spec->name)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: it has no image field; name the field: 'label: tensor'",
                         pen__pack_path(p->pack));
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "pipeline: column %u: no field '%s' in %s; its first field is '%s'",
                     spec->column, spec->name, pen__pack_path(p->pack), info->fields[0].name);
}

static int name_field(PenSpecField *spec, const char *name, PenError *reterr)
{
    spec->name = pen__strdup(name);
    return spec->name ? PEN_OK : pen__fail_memory(reterr, WHERE, name);
}

/* A numeric field that the pipeline does not name is given as it is. */
static int add_number(PenSpec *to, const char *name, PenError *reterr)
{
    PenSpec one = {0};
    int r = pen__spec_parse("tensor", &one, reterr);
    if (r < 0)
        return r;
    PenSpecField *more = pen__resize(to->fields, (to->n_fields + 1) * sizeof *more);
    r = more ? name_field(&one.fields[0], name, reterr) : pen__fail_memory(reterr, WHERE, name);
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

static int complete_spec(PenLoadPlan *p, PenError *reterr)
{
    const PenPackInfo *info = pen_pack_info(p->pack);
    bool bare = !p->set.pipeline;
    int r = PEN_OK;
    if (p->set.pipeline) {
        r = pen__spec_parse(p->set.pipeline, &p->spec, reterr);
        bare = r == PEN_OK && p->spec.n_fields == 1 && !p->spec.fields[0].name;
        uint32_t number;
        if (bare) {
            r = find_field(p, &p->spec.fields[0], &number, reterr);
            if (r == PEN_OK)
                r = name_field(&p->spec.fields[0], info->fields[number].name, reterr);
        }
    }
    for (uint32_t i = 0; bare && i < info->n_fields && r == PEN_OK; i++)
        if (pen__type_is_number(info->fields[i].type))
            r = add_number(&p->spec, info->fields[i].name, reterr);
    if (r == PEN_OK && !p->spec.n_fields)
        r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "%s: it has no numeric field; give a pipeline for its images",
                      pen__pack_path(p->pack));
    return r;
}

static int write_text(PenLoadPlan *p, PenError *reterr)
{
    PenBuf text = {0};
    if (pen__spec_write(&p->spec, &text) < 0 || pen__buf_add(&text, "", 1) < 0) {
        pen__buf_free(&text);
        return pen__fail_memory(reterr, WHERE, "pipeline");
    }
    p->text = (char *)text.data;
    p->state.pipeline = hash64(p->text, strlen(p->text), 0);
    return PEN_OK;
}

static int choose_fields(PenLoadPlan *p, PenError *reterr)
{
    int r = complete_spec(p, reterr);
    if (r == PEN_OK)
        r = write_text(p, reterr);
    if (r < 0)
        return r;
    p->fields = pen__alloc_array(2 * (uint64_t)p->spec.n_fields, sizeof *p->fields);
    if (!p->fields)
        return pen__fail_memory(reterr, WHERE, "fields");
    for (uint32_t i = 0; i < p->spec.n_fields && r == PEN_OK; i++) {
        uint32_t number;
        r = find_field(p, &p->spec.fields[i], &number, reterr);
        for (uint32_t j = 0; j < p->n_fields && r == PEN_OK; j++)
            if (p->fields[j].field == number)
                r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                              "pipeline: column %u: field '%s' is there twice",
                              p->spec.fields[i].column, p->fields[j].name);
        if (r == PEN_OK)
            r = add_field(p, number, &p->spec.fields[i], reterr);
    }
    if (r == PEN_OK)
        r = check_names(p, reterr);
    if (r == PEN_OK)
        r = pen__companions_check(p, reterr);
    if (r == PEN_OK)
        r = pen__companions_warn(p, &p->warning, reterr);
    p->first_image = -1;
    for (uint32_t i = p->n_fields; i-- > 0;)
        if (p->fields[i].kind == PEN_KIND_IMAGE)
            p->first_image = (int32_t)i;
    return r;
}

static void choose_threads(PenLoadPlan *p)
{
    uint32_t cores = 0;
    if (!p->set.threads)
        cores = pen__cores_share(p->set.node_ranks, pen__node_job_cores());
    p->threads = p->set.threads ? (uint32_t)p->set.threads : PEN_MIN(cores, (uint32_t)MAX_THREADS);
    /* Reading a pack that is in memory is a copy and a checksum; one thread feeds several. */
    p->io_threads = PEN_MIN(PEN_MAX(p->threads / 4, 2u), 16u);
    if (pen__pack_is_whole(p->pack)) /* what is set is how many wait for a server or a disk */
        p->fetchers = p->set.io_threads ? (uint32_t)p->set.io_threads : FETCHERS;
    else if (p->set.io_threads)
        p->io_threads = (uint32_t)p->set.io_threads;
}

static const PenLoaderSettings DEFAULTS = {.struct_size = sizeof DEFAULTS,
                                           .batch_size = 256,
                                           .world = 1,
                                           .memory_bytes = 2ull << 30,
                                           .stall_ms = 300000,
                                           .max_bad = 100};

void pen_loader_settings_init_sized(PenLoaderSettings *settings, size_t bytes)
{
    pen__settings_default(settings, bytes, &DEFAULTS, sizeof DEFAULTS);
}

int pen__load_plan_init(PenLoadPlan *p, PenPack *pack, const PenLoaderSettings *settings,
                        PenError *reterr)
{
    *p = (PenLoadPlan){.set = DEFAULTS};
    const PenLoaderSettings *own = &p->set;
    int r =
        pen__settings_copy(&p->set, sizeof p->set, settings, "pen_loader_settings_init", reterr);
    if (r == PEN_OK)
        r = check_settings(own, reterr);
    if (r == PEN_OK)
        r = pen__pack_alive(pack, reterr);
    if (r < 0)
        return r;
    const PenPackInfo *info = pen_pack_info(pack);
    p->pack = pen__pack_ref(pack);
    memcpy(p->state.pack_id, info->id, sizeof p->state.pack_id);
    r = pen__node_ranks(own->node_ranks, &p->set.node_ranks, reterr);
    if (r == PEN_OK) {
        choose_threads(p);
        r = choose_samples(p, reterr);
    }
    if (r == PEN_OK)
        r = choose_fields(p, reterr);
    if (r == PEN_OK)
        r = pen__load_plan_memory(p, reterr);
    if (r < 0) {
        pen__load_plan_fini(p);
        return r;
    }
    PenOrderPlan *order = &p->state.order;
    order->kind = own->order;
    order->seed = own->seed;
    p->set.pipeline = p->text;
    if (pen__order_by_block(order->kind)) {
        uint32_t lanes, window;
        pen__order_choose(p->shares.window, info->largest_block_bytes, info->n_blocks, own->world,
                          &lanes, &window);
        order->block_samples = info->block_samples;
        order->lanes = own->lanes ? own->lanes : lanes;
        order->window = own->window ? own->window : window;
    }
    return PEN_OK;
}
