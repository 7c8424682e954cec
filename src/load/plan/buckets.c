/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/buckets.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "load/fields/stored_sizes.h"
#include "load/plan/shapes.h"
#include "ops/operations/op.h"

#define WHERE "load/buckets"

/* ---- settings ---- */

int pen__plan_buckets_take(PenLoadPlan *p, PenError *reterr)
{
    PenLoaderSettings *s = &p->set;
    const PenBucketSize *sizes = s->buckets;
    s->buckets = NULL;
    if (!sizes)
        return PEN_OK;
    if (p->mixture)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "buckets: a mixture of packs cannot have them");
    if (s->n_buckets < 1 || s->n_buckets > PEN_MAX_BUCKETS)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "buckets: expected 1 to %d sizes, found %" PRIu32, PEN_MAX_BUCKETS,
                         s->n_buckets);
    p->buckets = pen__zalloc(sizeof *p->buckets);
    if (!p->buckets)
        return pen__fail_memory(reterr, WHERE, "buckets");
    p->buckets->n = s->n_buckets;
    for (uint32_t i = 0; i < s->n_buckets; i++) {
        const PenBucketSize *size = &sizes[i];
        if (size->height < 1 || size->width < 1 || size->height > PEN_SIZE_LIMIT ||
            size->width > PEN_SIZE_LIMIT)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "buckets: entry %" PRIu32 ": expected sides of 1 to %d pixels, found "
                             "%" PRIu32 " x %" PRIu32 " (height x width)",
                             i, PEN_SIZE_LIMIT, size->height, size->width);
        p->buckets->size[i] = *size;
    }
    p->state.global_batch = (uint64_t)s->batch_size * s->world;
    return PEN_OK;
}

void pen__plan_buckets_free(PenLoadPlan *p)
{
    if (p->buckets)
        pen__free(p->buckets->of_entry);
    pen__free(p->buckets);
    p->buckets = NULL;
}

/* ---- fields ---- */

int pen__plan_buckets_fields(PenLoadPlan *p, PenError *reterr)
{
    bool is_used = false;
    for (uint32_t i = 0; i < p->n_fields; i++) {
        if (!pen__plan_has_shapes(p, &p->fields[i]))
            continue;
        is_used = true;
        if (p->fields[i].sizes)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "buckets: images of '%.60s' have different sizes in one batch; end "
                             "with the operation that has the size of the bucket",
                             p->fields[i].name);
    }
    if (!is_used)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "buckets: no operation of the pipeline has the size of a bucket; write "
                         "'cover bucket' or 'random_resized_crop bucket' instead of a size");
    return pen__plan_shapes_new(p, p->buckets->n, reterr);
}

/* ---- samples ---- */

/* How many times the larger one is the smaller one: the same on all machines. */
static double quotient(double a, double b)
{
    return a > b ? a / b : b / a;
}

/* The nearest aspect ratio; then the nearest area. */
static uint8_t nearest(const PenBucketPlan *b, double width, double height)
{
    double best_aspect = INFINITY, best_area = INFINITY;
    uint32_t best = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        double w = b->size[i].width, h = b->size[i].height;
        double aspect = quotient(width * h, height * w), area = quotient(width * height, w * h);
        if (aspect < best_aspect || (aspect == best_aspect && area < best_area)) {
            best = i;
            best_aspect = aspect;
            best_area = area;
        }
    }
    return (uint8_t)best;
}

typedef struct Assigned {
    const PenBucketPlan *buckets;
    uint8_t *to;
} Assigned;

static void assign_one(void *ctx, uint64_t i, uint32_t width, uint32_t height)
{
    const Assigned *a = ctx;
    a->to[i] = width && height ? nearest(a->buckets, width, height) : 0;
}

static int assign_range(const PenLoadPlan *p, uint32_t field, PenSampleRange range, uint8_t *to,
                        PenError *reterr)
{
    Assigned all = {p->buckets, to};
    return pen__stored_sizes(p->pack, field, range, assign_one, &all, reterr);
}

/* All samples from the first to the last of the list, and then those that it names. */
static int assign_list(const PenLoadPlan *p, uint32_t field, PenError *reterr)
{
    uint64_t n = p->state.order.n, low = p->subset[0], high = low;
    for (uint64_t i = 1; i < n; i++) {
        low = PEN_MIN(low, p->subset[i]);
        high = PEN_MAX(high, p->subset[i]);
    }
    PenSampleRange range = {low, high - low + 1};
    uint8_t *all = pen__alloc_array(range.n, 1);
    if (!all)
        return pen__fail_memory(reterr, WHERE, "buckets of samples");
    int r = assign_range(p, field, range, all, reterr);
    for (uint64_t i = 0; i < n && r == PEN_OK; i++)
        p->buckets->of_entry[i] = all[p->subset[i] - low];
    pen__free(all);
    return r;
}

static int assign_by_size(const PenLoadPlan *p, PenError *reterr)
{
    uint32_t first = 0;
    while (!pen__plan_has_shapes(p, &p->fields[first]))
        first++;
    uint32_t field = p->fields[first].field;
    if (p->subset)
        return assign_list(p, field, reterr);
    return assign_range(p, field, (PenSampleRange){p->set.first, p->state.order.n},
                        p->buckets->of_entry, reterr);
}

static int take_assigned(const PenLoadPlan *p, const uint8_t *of, PenError *reterr)
{
    uint64_t n = p->state.order.n;
    if (p->set.n_bucket_of != n)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "bucket_of: expected %" PRIu64 ", one for each sample, found %" PRIu64, n,
                         p->set.n_bucket_of);
    for (uint64_t i = 0; i < n; i++)
        if (of[i] >= p->buckets->n)
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "bucket_of: entry %" PRIu64 ": expected a number below %" PRIu32
                             ", found %u",
                             i, p->buckets->n, of[i]);
    memcpy(p->buckets->of_entry, of, (size_t)n);
    return PEN_OK;
}

/* The sizes are part of the pixels; the assignment is part of the order. */
static uint64_t hash_of(const PenLoadPlan *p)
{
    PenSha256 s;
    uint8_t sum[32], bytes[8];
    pen__sha256_init(&s);
    pen__store64(bytes, p->state.subset);
    pen__sha256_update(&s, bytes, sizeof bytes);
    for (uint32_t i = 0; i < p->buckets->n; i++) {
        pen__store32(bytes, p->buckets->size[i].height);
        pen__store32(bytes + 4, p->buckets->size[i].width);
        pen__sha256_update(&s, bytes, sizeof bytes);
    }
    pen__sha256_update(&s, p->buckets->of_entry, (size_t)p->state.order.n);
    pen__sha256_final(&s, sum);
    return pen__load64(sum);
}

/* ---- the order ---- */

static PenBucketOf buckets_of(const PenLoadPlan *p)
{
    return (PenBucketOf){.of_entry = p->buckets->of_entry,
                         .weights = p->weights,
                         .n_buckets = p->buckets->n,
                         .n = p->state.order.n,
                         .seed = p->set.seed};
}

static PenBucketSteps steps_of(const PenLoadPlan *p)
{
    return (PenBucketSteps){.group = p->state.global_batch,
                            .world = p->set.world,
                            .last_batch = p->set.last_batch,
                            .has_pairs = p->has_pairs};
}

/* Samples of each bucket in an epoch; without weights they are the same in all. */
static const PenBucketCounts *counts_of(const PenLoadPlan *p, uint64_t epoch)
{
    PenBucketPlan *b = p->buckets;
    PenBucketOf of = buckets_of(p);
    uint64_t wanted = p->weights ? epoch + 1 : 1;
    if (b->counted != wanted)
        pen__bucket_count(&of, epoch, &b->counts);
    b->counted = wanted;
    return &b->counts;
}

int pen__plan_buckets_assign(PenLoadPlan *p, PenError *reterr)
{
    const uint8_t *given = p->set.bucket_of;
    p->buckets->of_entry = pen__alloc_array(p->state.order.n, 1);
    if (!p->buckets->of_entry)
        return pen__fail_memory(reterr, WHERE, "buckets of samples");
    int r = given ? take_assigned(p, given, reterr) : assign_by_size(p, reterr);
    if (r < 0)
        return r;
    p->state.subset = hash_of(p);
    PenBucketOf of = buckets_of(p);
    PenBucketSteps steps = steps_of(p);
    uint64_t places; /* not too many? */
    return pen__bucket_places(&of, counts_of(p, 0), &steps, &places, reterr);
}

uint32_t pen__plan_bucket_of(const PenLoadPlan *p, uint64_t epoch, uint64_t i)
{
    PenBucketOf of = buckets_of(p);
    return pen__bucket_of(&of, epoch, i);
}

uint64_t pen__plan_places(const PenLoadPlan *p, uint64_t epoch)
{
    PenBucketOf of = buckets_of(p);
    PenBucketSteps steps = steps_of(p);
    uint64_t places = 0;
    (void)pen__bucket_places(&of, counts_of(p, epoch), &steps, &places, NULL);
    return places;
}

int pen__plan_buckets_order(const PenLoadPlan *p, const PenOrder *order, PenBucketTable **ret,
                            PenError *reterr)
{
    PenBucketOf of = buckets_of(p);
    PenBucketSteps steps = steps_of(p);
    return pen__bucket_table_new(&of, order, &steps, ret, reterr);
}
