/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of several sizes. test_py_buckets.py compares the order with a model. */
#include "load/epoch/buckets.h"

#include "base/attr.h"
#include "base/rng.h"
#include "lib/fault_sys.h"
#include "lib/order_help.h"
#include "load/epoch/split.h"
#include "load_help.h"

enum { MOST = 3000, N = 40 };

static PenPack *pack;
static uint8_t of_entry[MOST];

static PenOrder order_for(int32_t kind, uint64_t n, uint64_t epoch)
{
    return order_of(kind, n, 9, epoch, (Shape){8, 12});
}

static void draw_buckets(PenRng *rng, PenBucketOf *of)
{
    for (uint64_t i = 0; i < of->n; i++)
        of_entry[i] = (uint8_t)(pen__rng_below(rng, of->n_buckets) *
                                pen__rng_below(rng, of->n_buckets) / of->n_buckets);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Every sample has one place that counts, or is one of fewer than a group that are dropped. */
static void check_all_once(const PenBucketOf *of, const PenBucketTable *t, int32_t last_batch)
{
    static uint8_t times[MOST];
    static uint64_t missing[PEN_MAX_BUCKETS];
    memset(times, 0, sizeof times);
    memset(missing, 0, sizeof missing);
    for (uint64_t p = 0; p < t->n_groups * t->group; p++) {
        uint64_t i = pen__bucket_table_at(t, p);
        uint64_t first = pen__bucket_table_at(t, p - p % t->group);
        CHECK(i < of->n && of->of_entry[i] == of->of_entry[first]);
        if (!pen__bucket_table_fills(t, p))
            times[i]++;
        else
            CHECK(last_batch != PEN_LAST_DROP);
    }
    for (uint64_t i = 0; i < of->n; i++) {
        CHECK(times[i] == 1 || (last_batch == PEN_LAST_DROP && times[i] == 0));
        missing[of->of_entry[i]] += !times[i];
    }
    for (uint32_t i = 0; i < of->n_buckets; i++)
        CHECK(missing[i] < t->group);
}

/* The parts of the ranks in each group: what counts comes first, and about as much on every rank.
 */
static void check_parts(const PenBucketTable *t, uint32_t world)
{
    uint64_t each = t->group / world, partial = 0;
    for (uint64_t g = 0; g < t->n_groups; g++) {
        uint64_t least = each, most = 0;
        for (uint32_t rank = 0; rank < world; rank++) {
            uint64_t first = g * t->group + rank * each, valid = 0;
            while (valid < each && !pen__bucket_table_fills(t, first + valid))
                valid++;
            for (uint64_t i = valid; i < each; i++)
                CHECK(pen__bucket_table_fills(t, first + i));
            least = PEN_MIN(least, valid);
            most = PEN_MAX(most, valid);
        }
        CHECK(most - least <= 1 && most > 0);
        partial += least < each;
        CHECK(!partial || least < each); /* groups that are not full come last */
    }
}

/* The batches of the ranks have every sample once. Those that are short have no padding, and sizes
 * that differ by at most one. */
static void check_split(const uint8_t *of, const PenBucketTable *t, const PenBucketSteps *steps)
{
    PenSplit s = {.n = t->n_groups * t->group,
                  .batch = (uint32_t)(t->group / steps->world),
                  .world = steps->world,
                  .last_batch = steps->last_batch,
                  .deal = PEN_DEAL_IN_PARTS,
                  .table = t};
    uint64_t samples = 0, counted = 0, valid = 0;
    CHECK_INT(pen__split_steps(&s), t->n_groups);
    for (uint64_t g = 0; g < t->n_groups; g++) {
        uint32_t least = UINT32_MAX, most = 0;
        for (s.rank = 0; s.rank < s.world; s.rank++) {
            PenPassStep step = pen__split_step(&s, g);
            least = PEN_MIN(least, step.samples);
            most = PEN_MAX(most, step.samples);
            samples += step.samples;
            for (uint32_t i = 0; i < step.samples; i++) {
                bool is_valid;
                uint64_t place = pen__split_position(&s, &step, i, &is_valid);
                CHECK_INT(of[pen__bucket_table_at(t, place)],
                          of[pen__bucket_table_at(t, step.first)]);
                CHECK_INT(place, step.first + s.rank * s.batch + i);
                valid += !pen__bucket_table_fills(t, place);
            }
        }
        CHECK(most - least <= 1);
    }
    for (s.rank = 0; s.rank < s.world; s.rank++)
        counted += pen__split_samples(&s, t->n_groups);
    CHECK_INT(counted, samples);
    CHECK(steps->last_batch == PEN_LAST_SHORT ? samples == valid : samples == s.n);
}

TEST(each_sample_has_one_place_in_a_group_of_its_bucket)
{
    PenRng rng = pen__rng_init(5, 0);
    for (int round = 0; round < 160; round++) {
        PenBucketOf of = {.of_entry = of_entry,
                          .n_buckets = 1 + (uint32_t)pen__rng_below(&rng, 9),
                          .n = 1 + pen__rng_below(&rng, round < 20 ? 12 : MOST)};
        uint32_t world = 1 + (uint32_t)pen__rng_below(&rng, 9);
        uint64_t group = world * (1 + pen__rng_below(&rng, 9)), places;
        PenBucketSteps steps = {.group = group,
                                .world = world,
                                .last_batch = PEN_LAST_SHORT + round % 3,
                                .has_pairs = round % 3 == 0 && round & 1};
        PenBucketTable *t = NULL;
        PenBucketCounts counts;
        draw_buckets(&rng, &of);
        PenOrder order = order_for(round / 3 % 4, of.n, (uint64_t)round);
        CHECK_INT(pen__bucket_table_new(&of, &order, &steps, &t, NULL), PEN_OK);
        pen__bucket_count(&of, 0, &counts);
        CHECK_INT(pen__bucket_places(&of, &counts, &steps, &places, NULL), PEN_OK);
        CHECK_INT(places, t->n_groups * t->group);
        CHECK_INT(t->group, group);
        check_all_once(&of, t, steps.last_batch);
        check_parts(t, world);
        check_split(of.of_entry, t, &steps);
        pen__bucket_table_free(&t);
        CHECK_OK_SO_FAR();
    }
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The places of each group, sorted: with the mark of those that only fill up. */
static void list_groups(const PenBucketOf *of, const PenOrder *order, uint64_t group,
                        uint32_t world, uint64_t *ret, uint64_t *ret_n)
{
    PenBucketTable *t = NULL;
    PenBucketSteps steps = {.group = group, .world = world};
    CHECK_INT(pen__bucket_table_new(of, order, &steps, &t, NULL), PEN_OK);
    *ret_n = t->n_groups * group;
    CHECK(*ret_n <= 2 * MOST);
    for (uint64_t p = 0; p < *ret_n; p++)
        ret[p] = pen__bucket_table_entry(t, p);
    for (uint64_t g = 0; g < t->n_groups; g++)
        qsort(ret + g * group, group, sizeof *ret, by_number);
    pen__bucket_table_free(&t);
}

TEST(global_batches_do_not_depend_on_the_ranks)
{
    enum { GROUP = 24 };
    static uint64_t one[2 * MOST], many[2 * MOST];
    static const uint32_t worlds[] = {2, 3, 4, 6, 8, 12, 24};
    PenRng rng = pen__rng_init(6, 0);
    for (int round = 0; round < 40; round++) {
        PenBucketOf of = {.of_entry = of_entry,
                          .n_buckets = 1 + (uint32_t)pen__rng_below(&rng, 6),
                          .n = 1 + pen__rng_below(&rng, MOST)};
        PenOrder order = order_for(round % 4, of.n, (uint64_t)round);
        uint64_t n, n_many;
        draw_buckets(&rng, &of);
        list_groups(&of, &order, GROUP, 1, one, &n);
        for (size_t i = 0; i < PEN_LEN(worlds); i++) {
            list_groups(&of, &order, GROUP, worlds[i], many, &n_many);
            CHECK_OK_SO_FAR();
            CHECK_INT(n_many, n);
            CHECK_MEM(many, one, n * sizeof *one);
        }
    }
}

/* So that few ranks read a block. */
TEST(a_group_is_cut_by_streams)
{
    PenBucketOf of = {.of_entry = of_entry, .n_buckets = 1, .n = 1200};
    PenOrder order = order_for(PEN_ORDER_SHUFFLE, of.n, 2);
    static uint64_t position[1200];
    PenBucketTable *t = NULL;
    memset(of_entry, 0, sizeof of_entry);
    PenBucketSteps steps = {.group = 48, .world = 4};
    CHECK_INT(pen__bucket_table_new(&of, &order, &steps, &t, NULL), PEN_OK);
    for (uint64_t p = 0; p < of.n; p++)
        position[pen__order_at(&order, p)] = p;
    for (uint64_t p = 0; p < of.n; p++) {
        uint64_t now = position[pen__bucket_table_at(t, p)];
        CHECK_INT(now / 48, p / 48);
        CHECK_INT(pen__stream_lane(order.streams, now), p % 48 / 4);
    }
    pen__bucket_table_free(&t);
}

static const PenBucketSteps eights = {.group = 8, .world = 1, .last_batch = PEN_LAST_DROP};

/* The place in the order of the last sample of each group: groups come as they fill up, or mixed.
 */
static uint64_t count_late_groups(int32_t kind)
{
    static uint64_t position[MOST];
    PenBucketOf of = {.of_entry = of_entry, .n_buckets = 3, .n = MOST};
    PenOrder order = order_for(kind, of.n, 2);
    PenBucketTable *t = NULL;
    uint64_t late = 0, before = 0;
    for (uint64_t p = 0; p < MOST; p++)
        position[pen__order_at(&order, p)] = p;
    if (pen__bucket_table_new(&of, &order, &eights, &t, NULL) < 0)
        return UINT64_MAX;
    for (uint64_t g = 0; g < t->n_groups; g++) {
        uint64_t last = 0;
        for (uint64_t i = 0; i < 8; i++)
            last = PEN_MAX(last, position[pen__bucket_table_at(t, g * 8 + i)]);
        late += last < before;
        before = last;
    }
    pen__bucket_table_free(&t);
    return late;
}

TEST(groups_are_mixed_where_all_samples_are)
{
    for (uint32_t i = 0; i < MOST; i++)
        of_entry[i] = (uint8_t)(i * 7 % 3);
    CHECK_INT(count_late_groups(PEN_ORDER_SEQUENTIAL), 0);
    CHECK_INT(count_late_groups(PEN_ORDER_SHUFFLE), 0);
    CHECK_INT(count_late_groups(PEN_ORDER_STICKY), 0);
    uint64_t late = count_late_groups(PEN_ORDER_RANDOM);
    CHECK(late > MOST / 8 / 3 && late < MOST / 8);
}

/* A bucket of few samples is anywhere in the epoch, and not where it has filled up at last. */
TEST(rare_buckets_of_a_random_order_are_not_late)
{
    uint64_t early = 0, n = MOST;
    PenBucketOf of = {.of_entry = of_entry, .n_buckets = 2, .n = n};
    for (uint64_t i = 0; i < n; i++)
        of_entry[i] = i < 8;
    for (uint64_t epoch = 0; epoch < 40; epoch++) {
        PenOrder order = order_for(PEN_ORDER_RANDOM, n, epoch);
        PenBucketTable *t = NULL;
        CHECK_INT(pen__bucket_table_new(&of, &order, &eights, &t, NULL), PEN_OK);
        for (uint64_t g = 0; g < t->n_groups / 2; g++)
            early += of_entry[pen__bucket_table_at(t, g * 8)];
        pen__bucket_table_free(&t);
    }
    CHECK(early > 8 && early < 32);
}

static int places_of(const PenBucketOf *of, const PenBucketCounts *counts, uint64_t group,
                     int32_t last_batch, uint64_t *ret, PenError *reterr)
{
    PenBucketSteps steps = {.group = group, .world = 1, .last_batch = last_batch};
    return pen__bucket_places(of, counts, &steps, ret, reterr);
}

TEST(a_table_has_limits)
{
    static PenBucketCounts counts;
    PenError err = {0};
    uint64_t places;
    PenBucketOf of = {.n_buckets = 2, .n = PEN_BUCKET_SAMPLES_MOST};
    counts.n[0] = of.n;
    CHECK_INT(places_of(&of, &counts, 1u << 20, PEN_LAST_PAD, &places, &err), PEN_OK);
    CHECK_INT(places, of.n);
    of.n++;
    CHECK_INT(places_of(&of, &counts, 1u << 20, PEN_LAST_PAD, &places, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "at most 2^31 samples"));
    of.n = 10;
    counts.n[0] = counts.n[1] = 5;
    CHECK_INT(places_of(&of, &counts, 1u << 27, PEN_LAST_PAD, &places, &err), PEN_OK);
    CHECK_INT(places, UINT64_C(1) << 28);
    CHECK_INT(places_of(&of, &counts, (1u << 27) + (1u << 20), PEN_LAST_PAD, &places, &err),
              PEN_E_LIMIT);
    CHECK(strstr(err.message, "global batches of 135266304"));
    CHECK_INT(places_of(&of, &counts, UINT64_MAX, PEN_LAST_PAD, &places, &err), PEN_E_LIMIT);
    CHECK_INT(places_of(&of, &counts, UINT64_MAX, PEN_LAST_DROP, &places, &err), PEN_OK);
    CHECK_INT(places, 0);
}

/* An epoch without groups takes no memory for one. */
TEST(a_huge_global_batch_drops_all)
{
    PenOrder order = order_for(PEN_ORDER_RANDOM, 50, 0);
    PenBucketOf of = {.of_entry = of_entry, .n_buckets = 1, .n = 50};
    PenBucketTable *t = NULL;
    memset(of_entry, 0, sizeof of_entry);
    PenBucketSteps steps = {.group = UINT64_C(1) << 47, .world = 2, .last_batch = PEN_LAST_DROP};
    CHECK_INT(pen__bucket_table_new(&of, &order, &steps, &t, NULL), PEN_OK);
    CHECK_INT(t->n_groups, 0);
    pen__bucket_table_free(&t);
}

TEST(without_memory_a_table_says_so)
{
    PenOrder order = order_for(PEN_ORDER_SHUFFLE, 500, 0);
    PenBucketOf of = {.of_entry = of_entry, .n_buckets = 2, .n = 500};
    uint64_t at = 1;
    for (int r = PEN_E_NO_MEMORY; r != PEN_OK && at < 20; at++) {
        PenError err = {0};
        PenBucketTable *t = NULL;
        fault_begin(&(FaultPlan){.at = at});
        PenBucketSteps steps = {.group = 8, .world = 2};
        r = pen__bucket_table_new(&of, &order, &steps, &t, &err);
        pen__bucket_table_free(&t);
        CHECK_INT(fault_end().memory, 0);
        CHECK(r == PEN_OK || (r == PEN_E_NO_MEMORY && strstr(err.message, "order of buckets")));
    }
    CHECK_INT(at, 9);
}

/* ---- the loader ------------------------------------------------------------------------------ */

static const PenBucketSize sizes[] = {{16, 16}, {12, 20}, {20, 12}};

static PenLoaderSettings settings(uint32_t batch)
{
    PenLoaderSettings s = help_loader_settings(batch);
    s.pipeline = "image: decode | cover bucket | tensor u8; label: tensor; key: key";
    s.buckets = sizes;
    s.n_buckets = PEN_LEN(sizes);
    s.bucket_of = of_entry;
    s.n_bucket_of = N;
    for (uint32_t i = 0; i < N; i++)
        of_entry[i] = (uint8_t)(i % 3);
    return s;
}

TEST(the_caller_chooses_buckets)
{
    PenLoaderSettings s = settings(3);
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    uint32_t n = 0;
    CHECK_INT(pen_loader_open(pack, &s, &l, NULL), PEN_OK);
    CHECK_INT(pen_loader_len(l), 12); /* of 14, 13 and 13 samples */
    CHECK_INT(pen_loader_dropped(l), 4);
    PenTensor t = pen_loader_field_tensor(l, 0);
    CHECK(t.shape[0] == 3 && t.shape[1] == -1 && t.shape[2] == -1 && t.shape[3] == 3);
    CHECK_INT(pen_loader_field_tensor(l, 1).shape[0], 3);
    for (int r; (r = pen_loader_next(l, -1, &b, NULL)) == PEN_OK; n++) {
        CHECK_INT(b->fields[0].shape[1], sizes[b->bucket].height);
        CHECK_INT(b->fields[0].shape[2], sizes[b->bucket].width);
        for (uint32_t i = 0; i < 3; i++) {
            char key[32];
            int bytes = snprintf(key, sizeof key, "key-%u", (unsigned)b->samples[i]);
            CHECK_INT(b->samples[i] % 3, b->bucket);
            CHECK_INT(((const int64_t *)b->fields[1].data)[i], b->samples[i]);
            CHECK_MEM((const char *)b->fields[2].data + b->lists[2].offsets[i], key, (size_t)bytes);
        }
        pen_batch_unref(&b);
    }
    CHECK_INT(n, 12);
    pen_loader_close(&l);
}

TEST(single_samples_have_the_size_of_their_bucket)
{
    PenLoaderSettings s = settings(1);
    PenLoader *l = NULL;
    PenBatch *b = NULL;
    CHECK_INT(pen_loader_open(pack, &s, &l, NULL), PEN_OK);
    for (uint64_t i = 0; i < 6; i++) {
        CHECK_INT(pen_loader_get(l, 0, i, &b, NULL), PEN_OK);
        CHECK_INT(b->bucket, i % 3);
        CHECK_INT(b->fields[0].shape[1], sizes[i % 3].height);
        pen_batch_unref(&b);
    }
    pen_loader_close(&l);
}

static void refuse(const PenLoaderSettings *s, const char *says)
{
    PenError err = {0};
    PenLoader *l = NULL;
    CHECK_INT(pen_loader_open(pack, s, &l, &err), PEN_E_INVALID);
    CHECK(!l && strstr(err.message, says));
}

TEST(what_is_no_bucket_is_refused)
{
    static const PenBucketSize empty = {0, 8};
    PenLoaderSettings s = settings(2);
    s.n_bucket_of--;
    refuse(&s, "bucket_of: expected 40, one for each sample, found 39");
    s = settings(2);
    of_entry[30] = 3;
    refuse(&s, "bucket_of: entry 30: expected a number below 3, found 3");
    s = settings(2);
    s.n_buckets = 0;
    refuse(&s, "buckets: expected 1 to 255 sizes, found 0");
    s.buckets = &empty;
    s.n_buckets = 1;
    refuse(&s, "buckets: entry 0: expected sides of 1 to");
    s = settings(2);
    s.pipeline = "decode | center_crop 8";
    refuse(&s, "no operation of the pipeline has the size of a bucket");
    s = settings(2);
    s.buckets = NULL;
    refuse(&s, "cover: size is 'bucket', but there are no buckets");
}

/* Any call of the system may fail while a loader is opened and begins: nothing is left behind. */
TEST(failures_leave_nothing_behind)
{
    PenLoaderSettings s = settings(2);
    int r = PEN_E_NO_MEMORY;
    s.bucket_of = NULL;
    for (uint64_t at = 1; at < 2000 && r != PEN_OK; at++) {
        PenLoader *l = NULL;
        fault_begin(&(FaultPlan){.at = at});
        r = pen_loader_open(pack, &s, &l, NULL);
        pen_loader_close(&l);
        FaultSeen seen = fault_end();
        CHECK(r < 0 || !seen.failed || seen.first != FAULT_ALLOC);
        if (r == PEN_OK && seen.failed)
            r = PEN_E_NO_MEMORY; /* it did without */
    }
    CHECK_INT(r, PEN_OK);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    pack = help_load_pack("pack.pen", N, -1, PEN_MODE_KEEP);
    RUN(each_sample_has_one_place_in_a_group_of_its_bucket);
    RUN(global_batches_do_not_depend_on_the_ranks);
    RUN(a_group_is_cut_by_streams);
    RUN(groups_are_mixed_where_all_samples_are);
    RUN(rare_buckets_of_a_random_order_are_not_late);
    RUN(a_table_has_limits);
    RUN(a_huge_global_batch_drops_all);
    RUN(without_memory_a_table_says_so);
    RUN(the_caller_chooses_buckets);
    RUN(single_samples_have_the_size_of_their_bucket);
    RUN(what_is_no_bucket_is_refused);
    RUN(failures_leave_nothing_behind);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
