/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/buckets.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "load/epoch/purpose.h"

#define WHERE "load/buckets"

#define FILLS_MOST (UINT64_C(1) << 28) /* a state may name any global batch */

typedef struct Bucket {
    uint64_t n;      /* samples */
    uint64_t first;  /* of its full groups */
    uint64_t n_full; /* full groups */
    uint64_t part;   /* the group that is not full; UINT64_MAX: none */
    uint64_t seen;   /* samples so far */
} Bucket;

typedef struct Builder {
    const PenBucketOf *of;
    const PenOrder *order;
    const PenBucketSteps *steps;
    uint64_t group, n_full;
    Bucket *buckets;
    uint32_t *filled; /* of each full group: places */
    uint32_t *lanes;  /* of each place's sample; NULL: it does not matter */
    uint64_t *sorted; /* one group */
    uint64_t n_done;  /* groups that are full */
    PenBucketTable *table;
} Builder;

uint32_t pen__bucket_of(const PenBucketOf *b, uint64_t epoch, uint64_t i)
{
    return b->of_entry[b->weights ? pen__weights_at(b->weights, b->seed, epoch, i).entry : i];
}

void pen__bucket_count(const PenBucketOf *b, uint64_t epoch, PenBucketCounts *ret)
{
    *ret = (PenBucketCounts){0};
    for (uint64_t i = 0; i < b->n; i++)
        ret->n[pen__bucket_of(b, epoch, i)]++;
}

int pen__bucket_places(const PenBucketOf *b, const PenBucketCounts *counts,
                       const PenBucketSteps *steps, uint64_t *ret, PenError *reterr)
{
    uint64_t group = steps->group, groups = 0, places;
    for (uint32_t i = 0; i < b->n_buckets; i++)
        groups += counts->n[i] / group +
                  (steps->last_batch != PEN_LAST_DROP && counts->n[i] % group != 0);
    if (b->n > PEN_BUCKET_SAMPLES_MOST || pen__mul_over(groups, group, &places) ||
        places > b->n + FILLS_MOST)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "buckets: expected at most 2^31 samples and 2^28 that only pad batches, "
                         "found %" PRIu64 " samples in %u buckets and global batches of %" PRIu64
                         "; use fewer buckets, or last_batch=\"drop\"",
                         b->n, b->n_buckets, group);
    *ret = places;
    return PEN_OK;
}

/* ---- groups ---- */

static void count_groups(Builder *b, const PenBucketCounts *counts)
{
    uint64_t n_parts = 0;
    for (uint32_t i = 0; i < b->of->n_buckets; i++) {
        Bucket *k = &b->buckets[i];
        *k = (Bucket){.n = counts->n[i], .first = b->n_full, .part = UINT64_MAX};
        k->n_full = k->n / b->group;
        b->n_full += k->n_full;
    }
    for (uint32_t i = 0; i < b->of->n_buckets; i++)
        if (b->steps->last_batch != PEN_LAST_DROP && b->buckets[i].n % b->group)
            b->buckets[i].part = b->n_full + n_parts++;
}

static void put_sample(Builder *b, uint64_t position, uint32_t entry)
{
    Bucket *k = &b->buckets[pen__bucket_of(b->of, b->order->epoch, entry)];
    uint64_t nth = k->seen++ / b->group, inner = (k->seen - 1) % b->group;
    uint64_t group = nth < k->n_full ? k->first + nth : k->part;
    if (group == UINT64_MAX)
        return;
    b->table->entries[group * b->group + inner] = entry;
    if (b->lanes)
        b->lanes[group * b->group + inner] = pen__stream_lane(b->order->streams, position);
    if (group < b->n_full && ++b->filled[group] == b->group)
        b->table->groups[b->n_done++] = (uint32_t)group;
}

/* The order of the bucket is repeated from its start in what its last group lacks. */
static void fill_part(const Builder *b, const Bucket *k)
{
    uint64_t n = k->n % b->group;
    uint32_t *part = &b->table->entries[k->part * b->group];
    const uint32_t *from = k->n_full ? &b->table->entries[k->first * b->group] : part;
    for (uint64_t i = n; i < b->group; i++)
        part[i] = from[(i - n) % k->n] | PEN_BUCKET_FILLS;
}

static int by_lane(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Cuts a group of n samples, and others that pad it, into parts for the ranks. */
static void cut(const Builder *b, uint64_t group, uint64_t n, uint32_t parts)
{
    uint32_t *entries = &b->table->entries[group * b->group];
    uint64_t each = b->group / parts, fill = n;
    for (uint64_t i = 0; i < b->group; i++) /* the sort keeps the order within a lane */
        b->sorted[i] = i | (b->lanes && i < n ? (uint64_t)b->lanes[group * b->group + i] << 32 : 0);
    if (b->lanes)
        qsort(b->sorted, n, sizeof *b->sorted, by_lane);
    for (uint64_t i = 0; i < b->group; i++)
        b->sorted[i] = entries[(uint32_t)b->sorted[i]];
    for (uint64_t r = 0; r < parts; r++) {
        uint64_t from = n * r / parts, valid = n * (r + 1) / parts - from;
        for (uint64_t i = 0; i < each; i++)
            entries[r * each + i] = (uint32_t)b->sorted[i < valid ? from + i : fill++];
    }
}

static void order_groups(Builder *b)
{
    PenPermutation mix;
    uint64_t key = pen__permute_key(b->order->plan.seed, b->order->epoch, PEN_FOR_GROUPS, 0);
    bool is_mixed = b->order->plan.kind != PEN_ORDER_SEQUENTIAL && !b->order->streams;
    if (is_mixed && b->n_full) {
        pen__permute_init(&mix, b->n_full, key);
        for (uint64_t i = 0; i < b->n_full; i++)
            b->table->groups[i] = (uint32_t)pen__permute_at(&mix, i);
    }
    for (uint64_t i = b->n_full; i < b->table->n_groups; i++)
        b->table->groups[i] = (uint32_t)i;
}

static void build(Builder *b, const PenBucketCounts *counts)
{
    uint32_t full = b->steps->has_pairs ? 1 : b->steps->world;
    uint32_t part = b->steps->last_batch == PEN_LAST_SHORT ? b->steps->world : full;
    count_groups(b, counts);
    for (uint64_t p = 0; p < b->of->n; p++)
        put_sample(b, p, (uint32_t)pen__order_at(b->order, p));
    for (uint32_t i = 0; i < b->of->n_buckets; i++) /* before the groups that it repeats are cut */
        if (b->buckets[i].part != UINT64_MAX)
            fill_part(b, &b->buckets[i]);
    for (uint64_t i = 0; i < b->n_full && full > 1; i++)
        cut(b, i, b->group, full);
    for (uint32_t i = 0; i < b->of->n_buckets; i++)
        if (b->buckets[i].part != UINT64_MAX)
            cut(b, b->buckets[i].part, b->buckets[i].n % b->group, part);
    order_groups(b);
}

/* ---- life ---- */

static PenBucketTable *new_table(uint64_t group, uint64_t n_groups)
{
    PenBucketTable *t = pen__zalloc(sizeof *t);
    if (!t)
        return NULL;
    *t = (PenBucketTable){.group = group, .n_groups = n_groups};
    t->entries = pen__alloc_array(PEN_MAX(n_groups * group, 1u), sizeof *t->entries);
    t->groups = pen__alloc_array(PEN_MAX(n_groups, 1u), sizeof *t->groups);
    if (!t->entries || !t->groups)
        pen__bucket_table_free(&t);
    return t;
}

void pen__bucket_table_free(PenBucketTable **table)
{
    if (!*table)
        return;
    pen__free((*table)->entries);
    pen__free((*table)->groups);
    pen__free(*table);
    *table = NULL;
}

static void free_builder(Builder *b)
{
    pen__free(b->buckets);
    pen__free(b->filled);
    pen__free(b->lanes);
    pen__free(b->sorted);
}

int pen__bucket_table_new(const PenBucketOf *of, const PenOrder *order, const PenBucketSteps *steps,
                          PenBucketTable **ret, PenError *reterr)
{
    uint64_t group = steps->group, places;
    Builder b = {.of = of, .order = order, .steps = steps, .group = group};
    PenBucketCounts counts;
    pen__bucket_count(of, order->epoch, &counts);
    int r = pen__bucket_places(of, &counts, steps, &places, reterr);
    if (r < 0)
        return r;
    bool has_lanes = order->streams && steps->world > 1 && !steps->has_pairs;
    b.buckets = pen__alloc_array(of->n_buckets, sizeof *b.buckets);
    b.filled = pen__zalloc((size_t)(places / group + 1) * sizeof *b.filled);
    b.lanes = has_lanes ? pen__alloc_array(PEN_MAX(places, 1u), sizeof *b.lanes) : NULL;
    b.sorted = pen__alloc_array(PEN_MIN(group, places + 1), sizeof *b.sorted);
    b.table = new_table(group, places / group);
    if (b.buckets && b.filled && b.sorted && b.table && (b.lanes || !has_lanes)) {
        build(&b, &counts);
        *ret = b.table;
    } else {
        pen__bucket_table_free(&b.table);
        r = pen__fail_memory(reterr, WHERE, "order of buckets");
    }
    free_builder(&b);
    return r;
}
