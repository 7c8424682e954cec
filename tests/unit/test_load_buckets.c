/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of several sizes. test_py_buckets.py compares the order with a model. */
#include "load/epoch/buckets.h"

#include "base/attr.h"
#include "base/rng.h"
#include "lib/fault_sys.h"
#include "load/epoch/order.h"
#include "load_help.h"

enum { MOST = 3000, N = 40 };

static PenPack *pack;
static uint8_t of_entry[MOST];

static PenOrder order_of(int32_t kind, uint64_t n, uint64_t epoch)
{
    PenOrderPlan plan = {
        .kind = kind, .n = n, .seed = 9, .block_samples = 8, .lanes = 3, .window = 2};
    PenOrder o;
    int r = pen__order_init(&o, &plan, epoch, NULL);
    if (r < 0)
        abort();
    return o;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Every sample has one place that counts, or is one of fewer than a group that are dropped. */
static void check_all_once(const PenBucketOf *of, const PenBucketTable *t, bool drop_last)
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
            CHECK(!drop_last);
    }
    for (uint64_t i = 0; i < of->n; i++) {
        CHECK(times[i] == 1 || (drop_last && times[i] == 0));
        missing[of->of_entry[i]] += !times[i];
    }
    for (uint32_t i = 0; i < of->n_buckets; i++)
        CHECK(missing[i] < t->group);
}

TEST(each_sample_has_one_place_in_a_group_of_its_bucket)
{
    PenRng rng = pen__rng_init(5, 0);
    for (int round = 0; round < 120; round++) {
        PenBucketOf of = {.of_entry = of_entry,
                          .n_buckets = 1 + (uint32_t)pen__rng_below(&rng, 9),
                          .n = 1 + pen__rng_below(&rng, round < 20 ? 12 : MOST)};
        PenGrouping g = {.batch = 1 + (uint32_t)pen__rng_below(&rng, 9),
                         .ranks = 1 + (uint32_t)pen__rng_below(&rng, 5)};
        bool drop_last = round & 1;
        PenBucketTable *t = NULL;
        PenBucketCounts counts;
        uint64_t places;
        for (uint64_t i = 0; i < of.n; i++)
            of_entry[i] = (uint8_t)(pen__rng_below(&rng, of.n_buckets) *
                                    pen__rng_below(&rng, of.n_buckets) / of.n_buckets);
        PenOrder order = order_of(round / 2 % 4, of.n, (uint64_t)round);
        CHECK_INT(pen__bucket_table_new(&of, &order, g, drop_last, &t, NULL), PEN_OK);
        pen__bucket_count(&of, 0, &counts);
        CHECK_INT(pen__bucket_places(&of, &counts, g, drop_last, &places, NULL), PEN_OK);
        CHECK_INT(places, t->n_groups * t->group);
        check_all_once(&of, t, drop_last);
        pen__bucket_table_free(&t);
        CHECK_OK_SO_FAR();
    }
}

/* A bucket of few samples is anywhere in the epoch, and not where it has filled up at last. */
TEST(rare_buckets_of_a_random_order_are_not_late)
{
    uint64_t early = 0, n = MOST;
    PenBucketOf of = {.of_entry = of_entry, .n_buckets = 2, .n = n};
    for (uint64_t i = 0; i < n; i++)
        of_entry[i] = i < 8;
    for (uint64_t epoch = 0; epoch < 40; epoch++) {
        PenOrder order = order_of(PEN_ORDER_RANDOM, n, epoch);
        PenBucketTable *t = NULL;
        CHECK_INT(pen__bucket_table_new(&of, &order, (PenGrouping){8, 1}, true, &t, NULL), PEN_OK);
        for (uint64_t g = 0; g < t->n_groups / 2; g++)
            early += of_entry[pen__bucket_table_at(t, g * 8)];
        pen__bucket_table_free(&t);
    }
    CHECK(early > 8 && early < 32);
}

TEST(a_table_has_limits)
{
    static PenBucketCounts counts;
    PenError err = {0};
    uint64_t places;
    PenBucketOf of = {.n_buckets = 2, .n = PEN_BUCKET_SAMPLES_MOST};
    PenGrouping g = {.batch = 1024, .ranks = 1024};
    counts.n[0] = of.n;
    CHECK_INT(pen__bucket_places(&of, &counts, g, false, &places, &err), PEN_OK);
    CHECK_INT(places, of.n);
    of.n++;
    CHECK_INT(pen__bucket_places(&of, &counts, g, false, &places, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "at most 2^31 samples"));
    of.n = 10;
    counts.n[0] = counts.n[1] = 5;
    g = (PenGrouping){.batch = 1u << 20, .ranks = 1u << 7};
    CHECK_INT(pen__bucket_places(&of, &counts, g, false, &places, &err), PEN_OK);
    CHECK_INT(places, UINT64_C(1) << 28);
    g.ranks += 1;
    CHECK_INT(pen__bucket_places(&of, &counts, g, false, &places, &err), PEN_E_LIMIT);
    g = (PenGrouping){.batch = 1u << 31, .ranks = 2};
    CHECK_INT(pen__bucket_places(&of, &counts, g, false, &places, &err), PEN_E_LIMIT);
    CHECK_INT(pen__bucket_places(&of, &counts, g, true, &places, &err), PEN_OK);
    CHECK_INT(places, 0);
    g = (PenGrouping){.batch = 1, .ranks = UINT32_MAX};
    CHECK_INT(pen__bucket_places(&of, &counts, g, true, &places, &err), PEN_E_LIMIT);
}

TEST(without_memory_a_table_says_so)
{
    PenOrder order = order_of(PEN_ORDER_RANDOM, 50, 0);
    PenBucketOf of = {.of_entry = of_entry, .n_buckets = 2, .n = 50};
    uint64_t at = 1;
    for (int r = PEN_E_NO_MEMORY; r != PEN_OK && at < 20; at++) {
        PenError err = {0};
        PenBucketTable *t = NULL;
        fault_begin(&(FaultPlan){.at = at});
        r = pen__bucket_table_new(&of, &order, (PenGrouping){4, 2}, false, &t, &err);
        pen__bucket_table_free(&t);
        CHECK_INT(fault_end().memory, 0);
        CHECK(r == PEN_OK || (r == PEN_E_NO_MEMORY && strstr(err.message, "order of buckets")));
    }
    CHECK_INT(at, 8);
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
    RUN(rare_buckets_of_a_random_order_are_not_late);
    RUN(a_table_has_limits);
    RUN(without_memory_a_table_says_so);
    RUN(the_caller_chooses_buckets);
    RUN(single_samples_have_the_size_of_their_bucket);
    RUN(what_is_no_bucket_is_refused);
    RUN(failures_leave_nothing_behind);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
