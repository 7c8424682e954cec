/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/sources.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "load/epoch/purpose.h"
#include "load/mix/table.h"
#include "load/plan/views.h"

#define WHERE "load/mix"

/* ---- packs ---- */

static int check_counts(const PenMixSettings *mix, PenError *reterr)
{
    if (mix->n_sources < 1 || mix->n_sources > PEN_MIX_MOST_SOURCES)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "mix: expected 1 to %d sources, found %" PRIu32, PEN_MIX_MOST_SOURCES,
                         mix->n_sources);
    if (mix->n_stages < 1 || mix->n_stages > PEN_MIX_MOST_STAGES)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "mix: expected 1 to %d stages, found %" PRIu32, PEN_MIX_MOST_STAGES,
                         mix->n_stages);
    if (!mix->packs || !mix->weights || (mix->n_stages > 1 && !mix->starts))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "mix: expected packs, weights and starts, found NULL");
    if (mix->stop < PEN_MIX_STOP_FIRST || mix->stop > PEN_MIX_STOP_STEPS)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "mix: stop: expected 0, 1 or 2, found %d",
                         (int)mix->stop);
    if (mix->unit < PEN_MIX_IN_SAMPLES || mix->unit > PEN_MIX_IN_EPOCHS)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "mix: unit: expected 0, 1 or 2, found %d",
                         (int)mix->unit);
    return PEN_OK;
}

static int add_source(PenLoadPlan *p, PenPack *pack, PenError *reterr)
{
    int r = pen__pack_alive(pack, reterr);
    if (r < 0)
        return r;
    uint32_t i = p->n_sources;
    const PenPackInfo *info = pen_pack_info(pack);
    if (!info->n_samples)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "%s: expected samples to load, found none",
                         pen__pack_path(pack));
    p->sources[i] = (PenMixSource){
        .pack = pen__pack_ref(pack),
        .n = info->n_samples,
        .seed = i ? pen__permute_key(p->set.seed, 0, PEN_FOR_SOURCE, i) : p->set.seed,
        .block_samples = info->block_samples,
        .first_block =
            i ? p->sources[i - 1].first_block + pen_pack_info(p->sources[i - 1].pack)->n_blocks
              : 0};
    p->n_sources++;
    return PEN_OK;
}

static void identify(PenLoadPlan *p)
{
    PenSha256 hash;
    uint8_t sum[32];
    pen__sha256_init(&hash);
    for (uint32_t i = 0; i < p->n_sources; i++)
        pen__sha256_update(&hash, pen__pack_manifest(p->sources[i].pack)->content_id,
                           sizeof p->state.pack_id);
    pen__sha256_final(&hash, sum);
    memcpy(p->state.pack_id, sum, sizeof p->state.pack_id);
}

int pen__sources_open(PenLoadPlan *p, const PenMixSettings *mix, PenError *reterr)
{
    int r = check_counts(mix, reterr);
    if (r < 0)
        return r;
    p->sources = pen__alloc_array(mix->n_sources, sizeof *p->sources);
    p->orders = pen__zalloc(mix->n_sources * sizeof *p->orders);
    if (!p->sources || !p->orders)
        return pen__fail_memory(reterr, WHERE, "mixture");
    for (uint32_t i = 0; i < mix->n_sources && r == PEN_OK; i++)
        r = add_source(p, mix->packs[i], reterr);
    if (r < 0)
        return r;
    p->pack = pen__pack_ref(p->sources[0].pack);
    identify(p);
    return PEN_OK;
}

/* Of a block with videos, only its index is kept in memory. The manifest has the size of all
 * indexes, but not of the largest one: that of two is an estimate. What is kept is counted exactly.
 */
static uint64_t largest_block(const PenPack *pack)
{
    const PenManifest *m = pen__pack_manifest(pack);
    uint64_t bytes = pen_pack_info(pack)->largest_block_bytes;
    uint64_t mean = m->stats.index_bytes / PEN_MAX(m->n_blocks, 1u);
    return m->schema.has_videos ? PEN_MIN(mean, bytes / 2) * 2 + 1 : bytes;
}

static void add_facts(PenPackFacts *f, const PenPack *pack)
{
    const PenPackInfo *info = pen_pack_info(pack);
    f->n_blocks += info->n_blocks;
    f->total_bytes += info->total_bytes;
    if (pen__pack_is_whole(pack)) {
        f->prefetched_samples += info->n_samples;
        f->prefetched_bytes += info->total_bytes;
    }
    f->index_bytes += info->stats.index_bytes + info->n_blocks * sizeof(PenBlock);
    f->largest_block_bytes = PEN_MAX(f->largest_block_bytes, largest_block(pack));
    f->is_whole = f->is_whole || pen__pack_is_whole(pack);
    f->has_cache = f->has_cache || pen__pack_has_cache(pack);
    f->is_ranged = f->is_ranged || (pen__pack_is_remote(pack) && !pen__pack_is_whole(pack));
}

void pen__sources_measure(PenLoadPlan *p)
{
    p->packs = (PenPackFacts){0};
    if (!p->sources)
        add_facts(&p->packs, p->pack);
    for (uint32_t i = 0; p->sources && i < p->n_sources; i++)
        add_facts(&p->packs, p->sources[i].pack);
}

void pen__sources_fini(PenLoadPlan *p)
{
    for (uint32_t i = 0; i < p->n_sources; i++) {
        pen__free(p->sources[i].fields);
        pen_pack_close(&p->sources[i].pack);
    }
    pen__free(p->sources);
    pen__free(p->orders);
    pen__mixture_free(&p->mixture);
}

/* ---- the mixture ---- */

static int never_complete(const PenLoadPlan *p, uint32_t source, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "mix: source %" PRIu32 " (%.200s) is never delivered completely; stop the "
                     "epoch after the first source or after a number of steps",
                     source, pen__pack_path(p->sources[source].pack));
}

/* Samples of an epoch. */
static int measure_epoch(const PenLoadPlan *p, const PenMixSettings *mix, const PenMixture *m,
                         uint64_t *ret, PenError *reterr)
{
    uint64_t first = PEN_MIX_MOST_POSITIONS, last = 0;
    if (mix->stop == PEN_MIX_STOP_STEPS) {
        if (!mix->steps ||
            pen__mul_over(mix->steps, (uint64_t)p->set.batch_size * p->set.world, ret) ||
            *ret >= PEN_MIX_MOST_POSITIONS)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "mix: steps: expected 1 or more, of less than 2^63 samples, found "
                             "%" PRIu64,
                             mix->steps);
        return PEN_OK;
    }
    for (uint32_t i = 0; i < p->n_sources; i++) {
        uint64_t end = pen__mixture_find(m, i, p->sources[i].n - 1);
        if (mix->stop == PEN_MIX_STOP_ALL && end == PEN_MIX_MOST_POSITIONS)
            return never_complete(p, i, reterr);
        first = PEN_MIN(first, pen__mixture_find(m, i, p->sources[i].n));
        last = PEN_MAX(last, end + 1);
    }
    *ret = mix->stop == PEN_MIX_STOP_ALL ? last : first;
    return PEN_OK;
}

static int make(const PenLoadPlan *p, const PenMixSettings *mix, const uint64_t *starts,
                uint32_t n_stages, PenMixture **ret, PenError *reterr)
{
    PenMixturePlan plan = {p->n_sources, n_stages, starts, mix->weights, p->set.seed};
    return pen__mixture_new(&plan, ret, reterr);
}

/* What the starts count, in samples. */
static int find_unit(const PenLoadPlan *p, const PenMixSettings *mix, uint64_t *ret,
                     PenError *reterr)
{
    PenMixture *first = NULL;
    *ret = mix->unit == PEN_MIX_IN_STEPS ? (uint64_t)p->set.batch_size * p->set.world : 1;
    if (mix->unit != PEN_MIX_IN_EPOCHS || mix->n_stages == 1)
        return PEN_OK;
    uint64_t zero = 0;
    int r = make(p, mix, &zero, 1, &first, reterr);
    if (r == PEN_OK)
        r = measure_epoch(p, mix, first, ret, reterr);
    pen__mixture_free(&first);
    return r;
}

static int find_starts(const PenLoadPlan *p, const PenMixSettings *mix,
                       uint64_t ret[PEN_MIX_MOST_STAGES], PenError *reterr)
{
    uint64_t unit;
    int r = find_unit(p, mix, &unit, reterr);
    if (r < 0)
        return r;
    ret[0] = 0;
    for (uint32_t i = 0; i < mix->n_stages && mix->starts; i++)
        if (pen__mul_over(mix->starts[i], unit, &ret[i]) || ret[i] >= PEN_MIX_MOST_POSITIONS ||
            (i ? ret[i] <= ret[i - 1] : ret[i] != 0))
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "mix: start of stage %" PRIu32
                             ": expected starts that begin with 0 and rise, of less than 2^63 "
                             "samples, found %" PRIu64,
                             i, mix->starts[i]);
    return PEN_OK;
}

int pen__sources_mix(PenLoadPlan *p, const PenMixSettings *mix, PenError *reterr)
{
    uint64_t starts[PEN_MIX_MOST_STAGES], n = 0;
    if (p->set.subset || p->set.count || p->set.weights || p->set.frames)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "mix: expected neither a subset nor weights nor frames of samples; each "
                         "source has all samples of its pack");
    int r = find_starts(p, mix, starts, reterr);
    if (r == PEN_OK)
        r = make(p, mix, starts, mix->n_stages, &p->mixture, reterr);
    if (r == PEN_OK)
        r = measure_epoch(p, mix, p->mixture, &n, reterr);
    if (r < 0)
        return r;
    p->state.order.n = n;
    p->state.subset = pen__mixture_hash(p->mixture);
    p->epoch_most = PEN_MIX_MOST_POSITIONS / PEN_MAX(n, 1u) - 1;
    return PEN_OK;
}

/* ---- fields ---- */

int pen__sources_add_field(PenLoadPlan *p, const PenMixSettings *mix, PenError *reterr)
{
    const char *name = mix->field ? mix->field : "source";
    if (!*name || pen__plan_find(p, name))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "mix: field: expected a name that the pipeline has no field of, found "
                         "'%.60s'; choose another name for the numbers of the sources",
                         name);
    PenOutField *to = &p->fields[p->n_fields];
    *to = (PenOutField){.kind = PEN_KIND_SOURCE,
                        .name = pen__strdup(name),
                        .bytes = 8,
                        .follows = -1,
                        .tensor = {.dtype = PEN_I64, .n_dims = 1, .shape = {p->set.batch_size}}};
    p->n_fields++;
    return to->name ? PEN_OK : pen__fail_memory(reterr, WHERE, name);
}

static void show_type(const PenField *f, char *buf, size_t bytes)
{
    size_t at = (size_t)snprintf(buf, bytes, "%s", pen_type_name(f->type));
    for (uint32_t i = 0; i < f->n_dims && at < bytes; i++)
        at +=
            (size_t)(f->dims[i] == PEN_DIM_ANY
                         ? snprintf(buf + at, bytes - at, "%s*", i ? "," : "[")
                         : snprintf(buf + at, bytes - at, "%s%" PRIu32, i ? "," : "[", f->dims[i]));
    if (f->n_dims && at < bytes)
        at += (size_t)snprintf(buf + at, bytes - at, "]");
    if (f->flags & PEN_FIELD_MASK && at < bytes)
        at += (size_t)snprintf(buf + at, bytes - at, " mask");
    if (f->flags & PEN_FIELD_COORDINATES && at < bytes)
        snprintf(buf + at, bytes - at, " with coordinates %#" PRIx32,
                 f->flags & PEN_FIELD_COORDINATES);
}

static bool is_same(const PenField *a, const PenField *b)
{
    uint32_t flags = PEN_FIELD_MASK | PEN_FIELD_COORDINATES;
    return a->type == b->type && a->n_dims == b->n_dims &&
           memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0 &&
           (a->flags & flags) == (b->flags & flags);
}

static int fail_other(const PenLoadPlan *p, const PenPack *pack, const PenField *want,
                      const PenField *found, PenError *reterr)
{
    char a[80], b[80];
    show_type(want, a, sizeof a);
    if (!found)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "mix: field '%.60s' (%s) of %.120s is missing in %.120s; use fields that "
                         "all packs have",
                         want->name, a, pen__pack_path(p->pack), pen__pack_path(pack));
    show_type(found, b, sizeof b);
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "mix: field '%.60s' is %s in %.120s, but %s in %.120s; use fields that are "
                     "the same in all packs",
                     want->name, a, pen__pack_path(p->pack), b, pen__pack_path(pack));
}

/* The number of the field in another pack. */
static int find_field(const PenLoadPlan *p, const PenPack *pack, uint32_t *number, PenError *reterr)
{
    const PenField *want = &pen_pack_info(p->pack)->fields[*number], *found = NULL;
    const PenPackInfo *info = pen_pack_info(pack);
    for (uint32_t i = 0; i < info->n_fields; i++)
        if (strcmp(info->fields[i].name, want->name) == 0)
            found = &info->fields[i];
    if (!found || !is_same(want, found))
        return fail_other(p, pack, want, found, reterr);
    *number = (uint32_t)(found - info->fields);
    return PEN_OK;
}

static int copy_fields(PenLoadPlan *p, uint32_t source, PenError *reterr)
{
    PenMixSource *s = &p->sources[source];
    int r = PEN_OK;
    s->fields = pen__alloc_array(p->n_fields, sizeof *s->fields);
    if (!s->fields)
        return pen__fail_memory(reterr, WHERE, "fields");
    memcpy(s->fields, p->fields, p->n_fields * sizeof *s->fields);
    for (uint32_t i = 0; i < p->n_fields && r == PEN_OK; i++) {
        PenOutField *f = &s->fields[i];
        if (source) /* samples of one number have other draws in each source */
            f->draws = pen__permute_key(f->draws, 0, PEN_FOR_SOURCE_DRAWS, source);
        if (f->kind == PEN_KIND_SOURCE)
            f->field = source;
        else if (f->field != PEN_NO_FIELD)
            r = find_field(p, s->pack, &f->field, reterr);
    }
    return r;
}

int pen__sources_copy_fields(PenLoadPlan *p, PenError *reterr)
{
    int r = PEN_OK;
    for (uint32_t i = 0; i < p->n_sources && r == PEN_OK; i++)
        r = copy_fields(p, i, reterr);
    return r;
}

/* ---- memory ---- */

int pen__sources_keep(const PenLoadPlan *p, uint64_t bytes, PenError *reterr)
{
    int r = PEN_OK;
    if (!p->sources)
        return pen__pack_keep(p->pack, bytes, reterr);
    for (uint32_t i = 0; i < p->n_sources && r == PEN_OK; i++)
        r = pen__pack_keep(p->sources[i].pack, bytes / p->n_sources, reterr);
    return r;
}

void pen__sources_trim(const PenLoadPlan *p)
{
    pen__pack_trim(p->pack);
    for (uint32_t i = 1; i < p->n_sources; i++)
        pen__pack_trim(p->sources[i].pack);
}

/* ---- samples ---- */

void pen__sources_begin(const PenLoadPlan *p)
{
    if (p->orders)
        memset(p->orders, 0, p->n_sources * sizeof *p->orders);
}

static void begin_epoch(const PenLoadPlan *p, const PenMixSource *s, uint64_t epoch, PenOrder *ret)
{
    PenOrderPlan order = p->state.order;
    order.n = s->n;
    order.seed = s->seed;
    order.block_samples = s->block_samples;
    order.streams = s->streams;
    (void)pen__order_init(ret, &order, epoch, NULL); /* the plan was checked */
}

PenChosen pen__sources_at(const PenLoadPlan *p, PenOrder *orders, uint64_t epoch, uint64_t position)
{
    PenMixed at = pen__mixture_at(p->mixture, epoch * p->state.order.n + position);
    const PenMixSource *s = &p->sources[at.source];
    PenOrder own, *order = orders ? &orders[at.source] : &own;
    uint64_t of_source = at.before / s->n;
    if (!orders || !order->plan.n || order->epoch != of_source)
        begin_epoch(p, s, of_source, order);
    return (PenChosen){.pack = s->pack,
                       .fields = s->fields,
                       .source = at.source,
                       .epoch = of_source,
                       .sample = pen__order_at(order, at.before % s->n)};
}

const PenMixSource *pen__sources_of_block(const PenLoadPlan *p, uint64_t block)
{
    uint32_t low = 0, high = p->n_sources - 1;
    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        if (p->sources[middle].first_block <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return &p->sources[low];
}
