/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/builder.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/machine/cores.h"
#include "base/machine/ranks.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "load/epoch/ordinals.h"
#include "load/plan/buckets.h"
#include "load/plan/fields.h"
#include "load/plan/memory.h"
#include "load/plan/shapes.h"
#include "load/plan/sources.h"
#include "load/plan/tokens.h"
#include "video/plugin.h"

#define WHERE "load/plan"

enum { MAX_BATCH = 1 << 20, MAX_WORLD = 1 << 20, MAX_THREADS = 1024, MAX_PREFETCH = 1024 };
enum { READERS = 64, FETCHERS = 256 };

/* ---- settings ---- */

static const PenLoaderSettings DEFAULTS = {
    .batch_size = 256, .world = 1, .memory_bytes = 2ull << 30, .stall_ms = 300000, .max_bad = 100};

void pen_loader_settings_init(PenLoaderSettings *settings)
{
    *settings = DEFAULTS;
}

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
    if (s->last_batch < PEN_LAST_AUTO || s->last_batch > PEN_LAST_DROP)
        return out_of_range(reterr, "last_batch", (uint64_t)s->last_batch, "0, 1, 2 or 3");
    if (s->threads < 0 || s->threads > MAX_THREADS)
        return out_of_range(reterr, "threads", (uint64_t)s->threads, "0 to 1024");
    if (s->io_threads < 0 || s->io_threads > MAX_THREADS)
        return out_of_range(reterr, "io_threads", (uint64_t)s->io_threads, "0 to 1024");
    if (s->prefetch > MAX_PREFETCH)
        return out_of_range(reterr, "prefetch", s->prefetch, "0 to 1024");
    if (s->shuffle_buffer > PEN_PERMUTE_MOST / 2)
        return out_of_range(reterr, "shuffle_buffer", s->shuffle_buffer, "0 to 2^62");
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

/* Whether a list has one number for each of N samples, which differ. */
static int check_each(const PenLoadPlan *p, const char *list, uint64_t found, uint64_t n,
                      PenError *reterr)
{
    if (found != n)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected %" PRIu64 ", one for each sample, found %" PRIu64, list, n,
                         found);
    if (p->ordinals)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected a subset without repeated samples", list);
    return PEN_OK;
}

static int take_weights(PenLoadPlan *p, uint64_t n, PenError *reterr)
{
    const PenLoaderSettings *s = &p->set;
    int r = check_each(p, "weights", s->n_weights, n, reterr);
    if (r == PEN_OK)
        r = pen__weights_new(s->weights, n, &p->weights, reterr);
    if (r == PEN_OK)
        p->state.subset =
            hash64(&p->state.subset, sizeof p->state.subset, pen__weights_hash(p->weights));
    return r;
}

/* Samples of an epoch are frames of the samples chosen. */
static int take_frames(PenLoadPlan *p, uint64_t n, PenError *reterr)
{
    const PenLoaderSettings *s = &p->set;
    int r = check_each(p, "frames", s->n_frames, n, reterr);
    if (r < 0)
        return r;
    if (s->weights || s->n_buckets)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "frames: expected neither weights nor buckets");
    r = pen__repeats_new(s->frames, n, "frames", &p->weights, &p->state.order.n, reterr);
    if (r < 0)
        return r;
    const uint64_t with[] = {p->state.subset, 1};
    p->state.subset = hash64(with, sizeof with, pen__weights_hash(p->weights));
    p->has_frames = true;
    return PEN_OK;
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
                             "subset: expected a range inside 0 to %" PRIu64 ", found %" PRIu64
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
    int r = s->frames    ? take_frames(p, n, reterr)
            : s->weights ? take_weights(p, n, reterr)
                         : PEN_OK;
    s->weights = NULL;
    s->frames = NULL;
    return r;
}

/* ---- threads, order ---- */

static void choose_threads(PenLoadPlan *p)
{
    uint32_t cores = 0;
    if (!p->set.threads)
        cores = pen__cores_share(p->set.node_ranks, pen__node_job_cores());
    p->threads = p->set.threads ? (uint32_t)p->set.threads : PEN_MIN(cores, (uint32_t)MAX_THREADS);
    /* Reading a pack that is in memory is a copy and a checksum; one thread feeds several. */
    p->io_threads = PEN_MIN(PEN_MAX(p->threads / 4, 2u), 16u);
    if (p->packs.is_ranged)
        p->io_threads = READERS;
    if (p->packs.is_whole) /* what is set is how many wait for a server or a disk */
        p->fetch.fetchers = p->fetch.fetchers_wanted =
            p->set.io_threads ? (uint32_t)p->set.io_threads : FETCHERS;
    else if (p->set.io_threads)
        p->io_threads = (uint32_t)p->set.io_threads;
}

/* Sources of a mixture share the buffer. Videos are read by their own requests in any order, so all
 * of them are mixed at once. */
static uint32_t choose_streams(const PenLoadPlan *p, const PenPack *pack)
{
    const PenPackInfo *info = pen_pack_info(pack);
    uint64_t all = PEN_MAX(info->n_samples, p->mixture ? 0 : p->state.order.n);
    uint64_t buffer = p->set.shuffle_buffer;
    if (!buffer && pen__pack_manifest(pack)->schema.has_videos)
        return pen__streams_for(all, info->block_samples);
    if (!buffer)
        buffer = pen__order_buffer(info->stats.payload_bytes, info->n_samples);
    return pen__streams_for((buffer - 1) / PEN_MAX(p->n_sources, 1u) + 1, info->block_samples);
}

static void choose_order(PenLoadPlan *p)
{
    PenOrderPlan *order = &p->state.order;
    order->kind = p->set.order;
    order->seed = p->set.seed;
    if (!pen__order_has_streams(order->kind))
        return;
    order->block_samples = pen_pack_info(p->pack)->block_samples;
    order->streams = choose_streams(p, p->pack);
    for (uint32_t i = 0; i < p->n_sources; i++) {
        uint64_t with[] = {p->state.subset,
                           p->sources[i].streams = choose_streams(p, p->sources[i].pack)};
        p->state.subset = hash64(with, sizeof with, i);
    }
}

/* `mix` is NULL for one pack. */
static int choose_all(PenLoadPlan *p, const PenMixSettings *mix, PenError *reterr)
{
    int r = pen__node_ranks(p->set.node_ranks, &p->set.node_ranks, reterr);
    if (r < 0)
        return r;
    pen__sources_measure(p);
    choose_threads(p);
    r = mix ? pen__sources_mix(p, mix, reterr) : choose_samples(p, reterr);
    if (r == PEN_OK)
        r = pen__plan_tokens_take(p, reterr);
    if (r == PEN_OK)
        r = pen__plan_buckets_take(p, reterr);
    if (r == PEN_OK)
        r = pen__plan_fields_choose(p, reterr);
    if (r == PEN_OK && mix)
        r = pen__sources_add_field(p, mix, reterr);
    if (r == PEN_OK && p->lengths)
        r = pen__plan_tokens_fields(p, reterr);
    if (r == PEN_OK && p->buckets)
        r = pen__plan_buckets_fields(p, reterr);
    if (r == PEN_OK && p->buckets)
        r = pen__plan_buckets_assign(p, reterr);
    p->set.bucket_of = NULL;
    if (r == PEN_OK)
        r = pen__plan_memory_share(p, reterr);
    if (r == PEN_OK && mix)
        r = pen__sources_copy_fields(p, reterr);
    return r;
}

/* A missing decoder is an error of the loader, not of its first batch. */
static int check_decoder(const PenLoadPlan *p, PenError *reterr)
{
    const PenVideoPlugin *plugin = NULL;
    uint64_t videos = pen_pack_info(p->pack)->stats.videos;
    for (uint32_t i = 0; i < p->n_sources; i++)
        videos |= pen_pack_info(p->sources[i].pack)->stats.videos;
    return videos && p->n_clips ? pen__video_plugin(&plugin, reterr) : PEN_OK;
}

PenSplit pen__load_plan_split(const PenLoadPlan *p, uint64_t epoch, uint64_t start, uint64_t step)
{
    return (PenSplit){.n = p->buckets ? pen__plan_places(p, epoch) : p->state.order.n,
                      .start = start,
                      .batch = p->set.batch_size,
                      .rank = p->set.rank,
                      .world = p->set.world,
                      .last_batch = p->set.last_batch,
                      .has_pairs = p->has_pairs,
                      .lengths = p->lengths,
                      .epoch = epoch,
                      .step = step};
}

void pen__load_plan_fini(PenLoadPlan *p)
{
    pen__plan_shapes_free(p);
    pen__plan_buckets_free(p);
    pen__free(p->lengths);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        pen__program_free(&p->fields[i].program);
        pen__free(p->fields[i].name);
    }
    pen__free(p->fields);
    pen__free(p->views);
    pen__free(p->follows);
    pen__free(p->text);
    pen__free(p->subset);
    pen__free(p->ordinals);
    pen__weights_free(&p->weights);
    pen__free(p->warning);
    pen__spec_free(&p->spec);
    pen__sources_fini(p);
    pen_pack_close(&p->pack);
    *p = (PenLoadPlan){0};
}

static int begin(PenLoadPlan *p, const PenLoaderSettings *settings, PenError *reterr)
{
    *p = (PenLoadPlan){.set = settings ? *settings : DEFAULTS, .epoch_most = PEN_EPOCH_MOST};
    int r = check_settings(&p->set, reterr);
    if (p->set.last_batch == PEN_LAST_AUTO)
        p->set.last_batch = p->set.order != PEN_ORDER_SEQUENTIAL && p->set.world > 1
                                ? PEN_LAST_PAD
                                : PEN_LAST_SHORT;
    return r;
}

/* `r` is the result of the steps before. */
static int finish(PenLoadPlan *p, const PenMixSettings *mix, int r, PenError *reterr)
{
    if (r == PEN_OK)
        r = choose_all(p, mix, reterr);
    if (r == PEN_OK)
        r = check_decoder(p, reterr);
    if (r < 0) {
        pen__load_plan_fini(p);
        return r;
    }
    p->set.pipeline = p->text;
    p->state.pipeline = hash64(p->text, strlen(p->text), 0);
    choose_order(p);
    pen__plan_fetching_choose(p);
    return PEN_OK;
}

int pen__load_plan_build(PenLoadPlan *p, PenPack *pack, const PenLoaderSettings *settings,
                         PenError *reterr)
{
    int r = begin(p, settings, reterr);
    if (r == PEN_OK)
        r = pen__pack_alive(pack, reterr);
    if (r < 0)
        return r;
    p->pack = pen__pack_ref(pack);
    /* A state of an in-place pack fits its copy too: both have the same shards. */
    memcpy(p->state.pack_id, pen__pack_manifest(pack)->content_id, sizeof p->state.pack_id);
    return finish(p, NULL, r, reterr);
}

/* ---- mixtures ---- */

void pen_mix_settings_init(PenMixSettings *settings)
{
    *settings = (PenMixSettings){.n_stages = 1};
}

int pen__load_plan_build_mix(PenLoadPlan *p, const PenMixSettings *mix,
                             const PenLoaderSettings *settings, PenError *reterr)
{
    int r = begin(p, settings, reterr);
    if (r < 0)
        return r;
    return finish(p, mix, pen__sources_open(p, mix, reterr), reterr);
}
