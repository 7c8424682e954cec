/* SPDX-License-Identifier: Apache-2.0 */
/* Loading from where every read is a request: blocks come late, in any order, twice or not at all,
 * and the batches are those of a local pack. The far place is a directory whose files wait. */
#include <stdatomic.h>
#include <unistd.h>

#include <penstock/cache.h>
#include <penstock/preload.h>

#include "base/iov.h"
#include "io/dir.h"
#include "io/source.h"
#include "load/measure/reading.h"
#include "load/plan/builder.h"
#include "load_help.h"
#include "pack/reader/reader.h"
#include "tools.h"

enum { N = 203, BATCH = 10 };

static atomic_uint n_reads, n_open, most_open, fail_next, n_failed;
static atomic_ulong bytes_read;
static atomic_int slow_us;

typedef struct Far {
    PenSource base;
    PenSource *near;
} Far;

static int begin(PenError *reterr)
{
    unsigned now = atomic_fetch_add(&n_open, 1) + 1, most = atomic_load(&most_open);
    while (now > most && !atomic_compare_exchange_weak(&most_open, &most, now))
        ;
    unsigned number = atomic_fetch_add(&n_reads, 1);
    usleep((useconds_t)(atomic_load(&slow_us) * (int)(1 + number % 5)));
    atomic_fetch_sub(&n_open, 1);
    unsigned left = atomic_load(&fail_next);
    while (left && !atomic_compare_exchange_weak(&fail_next, &left, left - 1))
        ;
    if (!left)
        return PEN_OK;
    atomic_fetch_add(&n_failed, 1);
    return pen__fail(reterr, PEN_E_IO, "test", "the line is cut");
}

static int far_read(PenSource *s, void *buf, size_t bytes, uint64_t offset, int again,
                    PenError *reterr)
{
    int r = begin(reterr);
    (void)again;
    atomic_fetch_add(&bytes_read, bytes);
    return r < 0 ? r : pen__source_read(((Far *)s)->near, buf, bytes, offset, reterr);
}

static int far_read_v(PenSource *s, const struct iovec *v, int n, uint64_t offset,
                      const PenArrival *arrival, PenError *reterr)
{
    int r = begin(reterr);
    uint64_t bytes = pen__iov_bytes(v, n), seen = 0;
    atomic_fetch_add(&bytes_read, bytes);
    if (r < 0)
        return r;
    /* An attempt that brings something else, and one that is right and reports a part of it. */
    for (int i = 0; i < n; i++)
        memset(v[i].iov_base, 0xa5, v[i].iov_len);
    pen__arrival_tell(arrival, 0);
    pen__arrival_tell(arrival, bytes);
    r = pen__source_read_v(((Far *)s)->near, v, n, offset, NULL, reterr);
    pen__arrival_tell(arrival, 0);
    for (; r == PEN_OK && (seen += 1 + bytes / 7) < bytes - bytes / 4;)
        pen__arrival_tell(arrival, seen);
    return r;
}

static void far_close(PenSource *s)
{
    pen__source_close(&((Far *)s)->near);
    pen__free(s);
}

static const PenSourceClass far_class = {
    .read = far_read, .close = far_close, .read_v = far_read_v};

static int far_open(void *ctx, const char *name, PenSource **ret, PenError *reterr)
{
    char *path = pen__path_join(ctx, name);
    Far *f = pen__zalloc(sizeof *f);
    if (!path || !f)
        abort();
    int r = pen__source_open_file(path, &f->near, reterr);
    pen__free(path);
    if (r < 0) {
        pen__free(f);
        return r;
    }
    f->base = (PenSource){
        .class_ = &far_class, .name = f->near->name, .bytes = f->near->bytes, .is_remote = 1};
    *ret = &f->base;
    return PEN_OK;
}

static PenPack *open_far(const char *name)
{
    static char where[512];
    PenPack *p = NULL;
    PenError err = {0};
    snprintf(where, sizeof where, "%s", at(name));
    if (pen__pack_open_with(name, far_open, where, &p, &err) < 0)
        printf("%s\n", err.message);
    atomic_store(&n_reads, 0);
    atomic_store(&bytes_read, 0);
    atomic_store(&most_open, 0);
    return p;
}

static PenLoaderSettings settings(int order)
{
    PenLoaderSettings s = help_loader_settings(BATCH);
    s.order = order;
    s.io_threads = 0;
    s.shuffle_buffer = 60; /* 12 streams of blocks with 5 samples */
    return s;
}

/* ---- the same batches ---- */

TEST(batches_are_those_of_a_local_pack)
{
    PenPack *near = help_load_pack("a.pen", N, -1, PEN_MODE_KEEP), *far = open_far("a.pen");
    CHECK(near && far);
    atomic_store(&slow_us, 500);
    for (int order = 0; order <= PEN_ORDER_STICKY; order++)
        for (uint32_t world = 1; world <= 3; world += 2) {
            PenLoaderSettings s = settings(order);
            s.world = world;
            s.rank = world / 2;
            s.last_batch = PEN_LAST_PAD;
            uint64_t want = help_epoch_hash(near, &s);
            CHECK(want != 0);
            const int threads[] = {1, 3, 0};
            for (size_t i = 0; i < PEN_LEN(threads); i++) {
                s.io_threads = threads[i];
                CHECK(help_epoch_hash(far, &s) == want);
            }
        }
    pen_pack_close(&near);
    pen_pack_close(&far);
}

TEST(many_are_on_their_way_at_once)
{
    PenPack *far = open_far("a.pen");
    PenLoaderSettings s = settings(PEN_ORDER_SHUFFLE);
    CHECK(far);
    atomic_store(&slow_us, 3000);
    CHECK(help_epoch_hash(far, &s) != 0);
    CHECK(atomic_load(&most_open) >= 20);
    /* Every block once, and the tails of the shards. */
    CHECK(atomic_load(&bytes_read) < pen_pack_info(far)->total_bytes * 5 / 4);
    pen_pack_close(&far);
    far = open_far("a.pen");
    s.io_threads = 2;
    CHECK(help_epoch_hash(far, &s) != 0);
    CHECK(atomic_load(&most_open) <= 2);
    pen_pack_close(&far);
}

TEST(neighbours_come_together)
{
    PenPack *far = open_far("a.pen");
    PenLoaderSettings s = settings(PEN_ORDER_SEQUENTIAL);
    CHECK(far);
    uint64_t blocks = pen_pack_info(far)->n_blocks, shards = pen_pack_info(far)->n_shards;
    atomic_store(&slow_us, 100);
    CHECK(help_epoch_hash(far, &s) != 0);
    CHECK(blocks > 30 && atomic_load(&n_reads) < shards * 4 + blocks / 2);
    pen_pack_close(&far);
}

/* A pass that is given up in the middle, again and again, at another place each time. */
TEST(passes_that_are_given_up)
{
    PenPack *far = open_far("a.pen"), *near = NULL;
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings(PEN_ORDER_SHUFFLE);
    atomic_store(&slow_us, 300);
    CHECK(far && pen_pack_open(at("a.pen"), NULL, &near, &err) == PEN_OK);
    CHECK_INT(pen_loader_open(far, &s, &l, &err), PEN_OK);
    for (uint64_t i = 0; i < 12; i++) {
        PenSha256 hash;
        pen__sha256_init(&hash);
        CHECK_INT(pen_loader_set_epoch(l, i % 2, &err), PEN_OK);
        CHECK_INT(pen_loader_begin(l, &err), PEN_OK);
        int n = help_drain(l, &hash, (int)(i % 5), &err);
        if (n < 0)
            printf("%s\n", err.message);
        CHECK_INT(n, (int)(i % 5));
    }
    PenSha256 a, b;
    uint8_t sum_a[32], sum_b[32];
    PenLoader *other = NULL;
    pen__sha256_init(&a);
    pen__sha256_init(&b);
    CHECK_INT(pen_loader_open(near, &s, &other, &err), PEN_OK);
    CHECK_INT(pen_loader_set_epoch(l, 7, &err), PEN_OK);
    CHECK_INT(pen_loader_set_epoch(other, 7, &err), PEN_OK);
    CHECK_INT(help_drain(l, &a, -1, &err), N / BATCH);
    CHECK_INT(help_drain(other, &b, -1, &err), N / BATCH);
    pen__sha256_final(&a, sum_a);
    pen__sha256_final(&b, sum_b);
    CHECK(memcmp(sum_a, sum_b, sizeof sum_a) == 0);
    pen_loader_close(&l);
    pen_loader_close(&other);
    pen_pack_close(&near);
    pen_pack_close(&far);
}

/* ---- what goes wrong ---- */

TEST(a_block_that_cannot_be_had)
{
    PenPack *far = open_far("a.pen");
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings(PEN_ORDER_SHUFFLE);
    PenSha256 hash;
    pen__sha256_init(&hash);
    CHECK(far);
    CHECK_INT(pen_loader_open(far, &s, &l, &err), PEN_OK);
    CHECK_INT(help_drain(l, &hash, 2, &err), 2);
    CHECK_INT(pen_loader_begin(l, &err), PEN_OK); /* the shards are open by now */
    atomic_store(&n_failed, 0);
    atomic_store(&fail_next, 1000000);
    PenPack *again = open_far("a.pen");
    CHECK(!again);
    pen_loader_close(&l);
    /* Nothing is here: every batch says so, and names the sample; then the line is back. */
    atomic_store(&fail_next, 0);
    pen_pack_close(&far);
    far = open_far("a.pen");
    CHECK_INT(pen_loader_open(far, &s, &l, &err), PEN_OK);
    atomic_store(&fail_next, 1000000);
    for (int i = 0; i < 3; i++) {
        PenBatch *b = NULL;
        CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_E_IO);
        CHECK(strstr(err.message, "the line is cut") && strstr(err.message, "sample "));
    }
    atomic_store(&fail_next, 0);
    int good = 0, bad = 0;
    for (;;) {
        PenBatch *b = NULL;
        int r = pen_loader_next(l, -1, &b, &err);
        if (r == PEN_END)
            break;
        good += r == PEN_OK;
        bad += r < 0;
        pen_batch_unref(&b);
    }
    CHECK_INT(good + bad, N / BATCH - 3);
    CHECK(good > 0);
    /* Another pass has all. */
    CHECK_INT(help_drain(l, &hash, -1, &err), N / BATCH);
    pen_loader_close(&l);
    pen_pack_close(&far);
}

/* Now and then one fails, and every sample that was hit says so; the others are right. */
TEST(broken_samples_are_replaced_the_same)
{
    PenPack *near = help_load_pack("b.pen", N, 17, PEN_MODE_KEEP), *far = open_far("b.pen");
    PenLoaderSettings s = settings(PEN_ORDER_SHUFFLE);
    s.on_bad = PEN_BAD_SUBSTITUTE;
    CHECK(near && far);
    atomic_store(&slow_us, 200);
    uint64_t want = help_epoch_hash(near, &s);
    CHECK(want != 0 && help_epoch_hash(far, &s) == want);
    pen_pack_close(&near);
    pen_pack_close(&far);
}

/* ---- what is known about it ---- */

static void fill_facts(PenPack *pack, PenRunFacts *ret)
{
    PenLoader *l = NULL;
    PenLoaderSettings s = settings(PEN_ORDER_SHUFFLE);
    CHECK_INT(pen_loader_open(pack, &s, &l, NULL), PEN_OK);
    pen_run_facts_of(l, ret);
    pen_loader_close(&l);
}

TEST(a_pack_in_memory_is_no_longer_remote)
{
    PenError err = {0};
    PenRunFacts facts;
    PenPack *far = open_far("a.pen");
    atomic_store(&slow_us, 0);
    CHECK(far);
    fill_facts(far, &facts);
    CHECK(facts.is_remote && !facts.has_cache && !facts.is_preloaded);
    CHECK_INT(facts.pack_bytes, pen_pack_info(far)->total_bytes);
    pen_pack_close(&far);
    far = open_far("a.pen");
    CHECK_INT(pen_pack_preload(far, NULL, NULL, &err), PEN_OK);
    fill_facts(far, &facts);
    CHECK(!facts.is_remote && !facts.has_cache && facts.is_preloaded);
    pen_pack_close(&far);
}

TEST(facts_say_whether_there_is_a_cache)
{
    PenError err = {0};
    PenRunFacts facts;
    PenCacheSettings cache;
    PenPack *far = open_far("a.pen");
    pen_cache_settings_init(&cache);
    cache.directory = at("cache-of-facts");
    CHECK(far);
    CHECK_INT(pen_pack_cache(far, &cache, &err), PEN_OK);
    fill_facts(far, &facts);
    CHECK(facts.is_remote && facts.has_cache && !facts.is_preloaded);
    pen_pack_close(&far);
}

/* Half of the threads would read what the others have stored. */
TEST(what_is_measured_later_is_not_in_the_cache)
{
    PenPack *near = help_load_pack("c.pen", 3 * N, -1, PEN_MODE_KEEP), *far = open_far("c.pen");
    PenCacheSettings cache;
    PenCacheStats stats;
    PenLoadPlan plan;
    PenReadingRates rates;
    PenLoaderSettings s = settings(PEN_ORDER_RANDOM);
    s.batch_size = 2;
    s.io_threads = 2;
    pen_cache_settings_init(&cache);
    cache.directory = at("cache");
    CHECK(near && far);
    CHECK_INT(pen_pack_cache(far, &cache, NULL), PEN_OK);
    atomic_store(&slow_us, 5000);
    CHECK_INT(pen__load_plan_build(&plan, far, &s, NULL), PEN_OK);
    CHECK_INT(pen__reading_measure(&plan, 0, &rates, NULL), PEN_OK); /* one batch each */
    pen__load_plan_fini(&plan);
    pen_pack_cache_stats(far, &stats);
    CHECK(rates.warm > 0 && rates.half > 0);
    CHECK(stats.misses >= 4);
    CHECK(stats.hits <= 1);
    pen_pack_close(&near);
    pen_pack_close(&far);
}

/* ---- memory ---- */

TEST(little_memory_is_enough)
{
    PenPack *far = open_far("a.pen"), *near = NULL;
    PenError err = {0};
    PenLoaderSettings s = settings(PEN_ORDER_SHUFFLE);
    CHECK(far && pen_pack_open(at("a.pen"), NULL, &near, &err) == PEN_OK);
    atomic_store(&slow_us, 100);
    s.memory_bytes = 14 << 20;
    CHECK(help_epoch_hash(near, &s) == help_epoch_hash(far, &s));
    s.order = PEN_ORDER_RANDOM;
    CHECK(help_epoch_hash(near, &s) == help_epoch_hash(far, &s));
    pen_pack_close(&near);
    pen_pack_close(&far);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(batches_are_those_of_a_local_pack);
    RUN(many_are_on_their_way_at_once);
    RUN(neighbours_come_together);
    RUN(passes_that_are_given_up);
    RUN(a_block_that_cannot_be_had);
    RUN(broken_samples_are_replaced_the_same);
    RUN(a_pack_in_memory_is_no_longer_remote);
    RUN(facts_say_whether_there_is_a_cache);
    RUN(what_is_measured_later_is_not_in_the_cache);
    RUN(little_memory_is_enough);
    help_end();
    return TEST_END();
}
