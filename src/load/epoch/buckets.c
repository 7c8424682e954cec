/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/buckets.h"

#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"

#define WHERE "load/buckets"

enum { FOR_GROUPS = 7 }; /* of the random numbers; order.c and weights.c have those before it */
#define CLASSES_MOST (UINT64_C(1) << 24)
#define FILLS_MOST (UINT64_C(1) << 28) /* a state may name any number of ranks */

typedef struct Bucket {
    uint64_t n;       /* samples */
    uint64_t first;   /* of its full groups */
    uint64_t n_full;  /* full groups; the first of them */
    uint64_t in_turn; /* have positions c mod G in batch c */
    uint64_t part;    /* the group that is not full; UINT64_MAX: none */
    uint64_t seen;    /* samples so far */
    uint64_t rest;    /* and of these, those that were dealt in turn */
} Bucket;

typedef struct Builder {
    const PenBucketOf *of;
    const PenOrder *order;
    PenGrouping g;
    uint64_t group, n_full;
    Bucket *buckets;
    uint32_t *classes; /* of each bucket and position mod G: samples */
    uint32_t *filled;  /* of each full group: places */
    uint64_t n_done;   /* groups that are full */
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

int pen__bucket_places(const PenBucketOf *b, const PenBucketCounts *counts, PenGrouping g,
                       bool drop_last, uint64_t *ret, PenError *reterr)
{
    uint64_t group = (uint64_t)g.batch * g.ranks, groups = 0, places;
    for (uint32_t i = 0; i < b->n_buckets; i++)
        groups += counts->n[i] / group + (!drop_last && counts->n[i] % group);
    if (b->n > PEN_BUCKET_SAMPLES_MOST || pen__mul_over(groups, group, &places) ||
        places > b->n + FILLS_MOST || (uint64_t)g.ranks * b->n_buckets > CLASSES_MOST)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "buckets: expected at most 2^31 samples and 2^28 that only fill batches, "
                         "found %" PRIu64 " samples in %u buckets and batches of %u on %u ranks; "
                         "use fewer buckets, or drop_last",
                         b->n, b->n_buckets, g.batch, g.ranks);
    *ret = places;
    return PEN_OK;
}

/* ---- what is known before places are given ---- */

static void count_groups(Builder *b, const PenBucketCounts *counts, bool drop_last)
{
    uint64_t n_parts = 0;
    for (uint32_t i = 0; i < b->of->n_buckets; i++) {
        Bucket *k = &b->buckets[i];
        *k = (Bucket){.n = counts->n[i], .first = b->n_full, .part = UINT64_MAX};
        k->n_full = k->in_turn = k->n / b->group;
        b->n_full += k->n_full;
    }
    for (uint32_t i = 0; i < b->of->n_buckets && !drop_last; i++)
        if (b->buckets[i].n % b->group)
            b->buckets[i].part = b->n_full + n_parts++;
}

static uint32_t *class_of(Builder *b, uint32_t bucket, uint64_t position)
{
    return &b->classes[(uint64_t)bucket * b->g.ranks + position % b->g.ranks];
}

/* As many groups as the class with the fewest samples has batches. */
static void count_in_turn(Builder *b)
{
    for (uint64_t p = 0; p < b->of->n; p++)
        (*class_of(b, pen__bucket_of(b->of, b->order->epoch, pen__order_at(b->order, p)), p))++;
    for (uint32_t i = 0; i < b->of->n_buckets; i++)
        for (uint32_t c = 0; c < b->g.ranks; c++) {
            uint64_t batches = *class_of(b, i, c) / b->g.batch;
            b->buckets[i].in_turn = PEN_MIN(b->buckets[i].in_turn, batches);
        }
    memset(b->classes, 0, (size_t)b->of->n_buckets * b->g.ranks * sizeof *b->classes);
}

/* ---- places ---- */

/* Which places of a group its samples have, when they are dealt to its batches in turn. */
static uint64_t dealt(const Builder *b, uint64_t inner)
{
    return inner % b->g.ranks * b->g.batch + inner / b->g.ranks;
}

static void put(Builder *b, uint64_t group, uint64_t place, uint32_t entry)
{
    b->table->entries[group * b->group + place] = entry;
    if (group < b->n_full && ++b->filled[group] == b->group)
        b->table->groups[b->n_done++] = (uint32_t)group;
}

/* The order of the bucket is repeated from its start in what its last group lacks. */
static void fill(Builder *b, const Bucket *k, uint64_t nth, uint32_t entry)
{
    for (uint64_t inner = k->n % b->group + nth; inner < b->group; inner += k->n)
        put(b, k->part, dealt(b, inner), entry | PEN_BUCKET_FILLS);
}

static void put_dealt(Builder *b, Bucket *k, uint32_t entry)
{
    uint64_t group = k->in_turn + k->rest / b->group, inner = k->rest % b->group;
    k->rest++;
    if (group < k->n_full)
        put(b, k->first + group, dealt(b, inner), entry);
    else if (k->part != UINT64_MAX)
        put(b, k->part, dealt(b, inner), entry);
}

static void put_sample(Builder *b, uint64_t position, uint32_t entry)
{
    uint32_t bucket = pen__bucket_of(b->of, b->order->epoch, entry), batch = b->g.batch;
    Bucket *k = &b->buckets[bucket];
    uint32_t nth = (*class_of(b, bucket, position))++;
    if (nth / batch < k->in_turn)
        put(b, k->first + nth / batch, position % b->g.ranks * batch + nth % batch, entry);
    else
        put_dealt(b, k, entry);
    if (k->part != UINT64_MAX)
        fill(b, k, k->seen, entry);
    k->seen++;
}

static void order_groups(Builder *b)
{
    PenPermutation mix;
    uint64_t key = pen__permute_key(b->order->plan.seed, b->order->epoch, FOR_GROUPS, 0);
    if (b->order->plan.kind == PEN_ORDER_RANDOM && b->n_full) {
        pen__permute_init(&mix, b->n_full, key);
        for (uint64_t i = 0; i < b->n_full; i++)
            b->table->groups[i] = (uint32_t)pen__permute_at(&mix, i);
    }
    for (uint64_t i = b->n_full; i < b->table->n_groups; i++)
        b->table->groups[i] = (uint32_t)i;
}

static void build(Builder *b, const PenBucketCounts *counts, bool drop_last)
{
    count_groups(b, counts, drop_last);
    if (b->g.ranks > 1)
        count_in_turn(b);
    for (uint64_t p = 0; p < b->of->n; p++)
        put_sample(b, p, (uint32_t)pen__order_at(b->order, p));
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

int pen__bucket_table_new(const PenBucketOf *of, const PenOrder *order, PenGrouping g,
                          bool drop_last, PenBucketTable **ret, PenError *reterr)
{
    Builder b = {.of = of, .order = order, .g = g, .group = (uint64_t)g.batch * g.ranks};
    PenBucketCounts counts;
    uint64_t places;
    pen__bucket_count(of, order->epoch, &counts);
    int r = pen__bucket_places(of, &counts, g, drop_last, &places, reterr);
    if (r < 0)
        return r;
    b.buckets = pen__alloc_array(of->n_buckets, sizeof *b.buckets);
    b.classes = pen__zalloc((size_t)of->n_buckets * g.ranks * sizeof *b.classes);
    b.filled = pen__zalloc((size_t)(places / b.group + 1) * sizeof *b.filled);
    b.table = new_table(b.group, places / b.group);
    if (b.buckets && b.classes && b.filled && b.table) {
        build(&b, &counts, drop_last);
        *ret = b.table;
    } else {
        pen__bucket_table_free(&b.table);
        r = pen__fail_memory(reterr, WHERE, "order of buckets");
    }
    pen__free(b.buckets);
    pen__free(b.classes);
    pen__free(b.filled);
    return r;
}
