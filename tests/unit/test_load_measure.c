/* SPDX-License-Identifier: Apache-2.0 */
/* Reading by a loader that does not decode, with and without the page cache; copies of memory; what
 * other packs would need. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/sys.h"
#include "load/measure/cold.h"
#include "load/measure/reading.h"
#include "load/plan/builder.h"
#include "load_help.h"
#include "test.h"
#include "tools.h"

static PenPack *pack;
static int drops, drop_result; /* calls; what they return */

static int count_drop(int fd, uint64_t offset, uint64_t bytes)
{
    (void)fd, (void)offset;
    drops++;
    return bytes ? drop_result : -22;
}

static const char *pipeline = "decode | center_crop 16 | tensor u8";

static int measure(int result, PenMeasured *ret, PenError *reterr)
{
    PenSys odd = pen__sys_real;
    PenLoaderSettings s;
    pen_loader_settings_init(&s);
    s.pipeline = pipeline;
    s.order = PEN_ORDER_RANDOM;
    s.batch_size = 16;
    s.threads = s.io_threads = 2;
    odd.cache_drop = count_drop;
    drops = 0;
    drop_result = result;
    pen__sys = &odd;
    int r = pen_measure(pack, &s, 0.02, ret, reterr);
    pen__sys = &pen__sys_real;
    return r;
}

TEST(samples_that_are_not_in_the_page_cache)
{
    PenMeasured measured = {0};
    CHECK_INT(measure(1, &measured, NULL), PEN_OK);
    CHECK(measured.read > 0 && measured.read_cold > 0 && measured.read_half > 0);
    CHECK(drops > 0);
    CHECK(measured.copy_bytes > 1e6);
    CHECK(measured.short_side == 18); /* 16 * 8 / 7 */
    CHECK(measured.raw_ratio > 1);
    CHECK(measured.area_ratio > 0 && measured.area_ratio < 1);
}

static pthread_t caller;
static int reads; /* by this thread: a loader reads with others */

static void read_slowly(void)
{
    reads += pthread_equal(pthread_self(), caller) != 0;
    usleep(20000);
}

static int64_t slow_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    read_slowly();
    return pen__sys_real.pread(fd, buf, bytes, offset);
}

static int64_t slow_preadv(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    read_slowly();
    return pen__sys_real.preadv(fd, iov, n, offset);
}

TEST(reading_the_samples_has_a_limit)
{
    PenSys slow = pen__sys_real;
    PenMeasured measured = {0};
    PenLoaderSettings s = help_loader_settings(10);
    s.pipeline = pipeline;
    slow.pread = slow_pread;
    slow.preadv = slow_preadv;
    reads = 0;
    caller = pthread_self();
    pen__sys = &slow;
    CHECK_INT(pen_measure(pack, &s, 0.1, &measured, NULL), PEN_OK);
    pen__sys = &pen__sys_real;
    CHECK(measured.raw_ratio > 1);
    CHECK(reads >= 1 && reads <= 10);
}

TEST(the_channels_may_come_first)
{
    PenMeasured measured = {0};
    pipeline = "decode | center_crop 16 | tensor f32 nchw";
    CHECK_INT(measure(1, &measured, NULL), PEN_OK);
    pipeline = "decode | center_crop 16 | tensor u8";
    CHECK(measured.short_side == 18);
}

static atomic_size_t largest;

static void *count_alloc(size_t bytes)
{
    size_t most = atomic_load(&largest);
    while (bytes > most && !atomic_compare_exchange_weak(&largest, &most, bytes))
        ;
    return pen__sys_real.alloc(bytes);
}

TEST(copies_take_a_part_of_the_memory)
{
    PenMeasured measured = {0};
    PenSys odd = pen__sys_real;
    PenLoaderSettings s = help_loader_settings(10);
    s.memory_bytes = 64 << 20;
    s.threads = 2;
    odd.alloc = count_alloc;
    pen__sys = &odd;
    int r = pen_measure(pack, &s, 0.02, &measured, NULL);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_OK);
    CHECK(measured.copy_bytes > 1e6);
    CHECK(atomic_load(&largest) >= 4 << 20); /* an eighth, of two threads */
    CHECK(atomic_load(&largest) < 8 << 20);
}

TEST(a_page_cache_that_keeps_them)
{
    static const int results[] = {0, -95};
    for (int i = 0; i < 2; i++) {
        PenMeasured measured = {0};
        CHECK_INT(measure(results[i], &measured, NULL), PEN_OK);
        CHECK(drops > 1); /* it tries again, pages may be on their way */
        CHECK(measured.read > 0);
        CHECK(measured.read_cold == 0 && measured.read_half == 0);
    }
}

TEST(what_is_only_read_is_not_decoded)
{
    PenPack *bad = help_load_pack("bad.pen", 30, 7, PEN_MODE_KEEP);
    PenLoaderSettings s = help_loader_settings(10);
    PenLoadPlan plan;
    PenReadingRates rates;
    PenError err = {0};
    s.pipeline = "decode | resize 16,16 | tensor u8";
    CHECK(help_epoch_hash(bad, &s) == 0); /* a loader fails at the image */
    CHECK_INT(pen__load_plan_build(&plan, bad, &s, &err), PEN_OK);
    CHECK_INT(pen__reading_measure(&plan, 0.02, &rates, &err), PEN_OK);
    CHECK(rates.warm > 0);
    pen__load_plan_fini(&plan);
    pen_pack_close(&bad);
}

TEST(a_list_of_samples_is_read_as_it_is)
{
    static const uint64_t list[] = {3, 50, 51, 3};
    PenLoaderSettings s = help_loader_settings(2);
    PenLoadPlan plan;
    PenReadingRates rates;
    s.subset = list;
    s.n_subset = 4;
    CHECK_INT(pen__load_plan_build(&plan, pack, &s, NULL), PEN_OK);
    CHECK_INT(pen__reading_measure(&plan, 0.02, &rates, NULL), PEN_OK);
    CHECK(rates.warm > 0);
    pen__load_plan_fini(&plan);
}

TEST(a_list_is_read_by_one_rank_to_its_end)
{
    PenLoaderSettings s = help_loader_settings(80);
    PenLoadPlan plan;
    PenReadingRates rates;
    s.world = 2; /* of the 100 samples, no batch is complete */
    s.rank = 1;
    s.last_batch = PEN_LAST_DROP;
    CHECK_INT(pen__load_plan_build(&plan, pack, &s, NULL), PEN_OK);
    CHECK_INT(pen__reading_measure(&plan, 0.02, &rates, NULL), PEN_OK);
    CHECK(rates.warm > 0);
    pen__load_plan_fini(&plan);
}

/* ---- what is dropped from the page cache ---- */

enum { MANY = 350, EACH = 5 }; /* samples; in a block */

static bool holds(const PenCold *c, uint64_t block)
{
    for (uint64_t i = 0; i < c->n_blocks; i++)
        if (c->blocks[i]->number == block)
            return true;
    return false;
}

/* With the pages at its ends, each block takes a little more than 4 MiB. */
static void check_cold(PenPack *many, const PenLoaderSettings *s, uint64_t expected)
{
    PenLoadPlan plan;
    PenCold c;
    CHECK_INT(pen__load_plan_build(&plan, many, s, NULL), PEN_OK);
    CHECK_INT(pen__cold_choose(&c, &plan, 7, NULL), PEN_OK);
    CHECK_INT(c.n_blocks, 63);
    CHECK(c.bytes <= 256 << 20);
    CHECK_INT(c.n_samples, expected);
    for (uint64_t i = 0; i < c.n_samples; i++)
        CHECK(holds(&c, c.samples[i] / EACH));
    pen__cold_release(&c);
    pen__load_plan_fini(&plan);
}

TEST(a_limited_part_of_the_page_cache_is_dropped)
{
    PenPack *many = help_load_pack("many.pen", MANY, -1, PEN_MODE_KEEP);
    PenLoaderSettings s = help_loader_settings(10);
    uint64_t list[2 * MANY / EACH]; /* two of each block */
    CHECK_INT(pen_pack_info(many)->n_blocks, MANY / EACH);
    check_cold(many, &s, 63 * EACH);
    for (uint64_t i = 0; i < PEN_LEN(list); i++)
        list[i] = i / 2 * EACH + i % 2;
    s.subset = list;
    s.n_subset = PEN_LEN(list);
    check_cold(many, &s, 63 * 2);
    pen_pack_close(&many);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    pack = help_load_pack("pack.pen", 100, -1, PEN_MODE_KEEP);
    RUN(samples_that_are_not_in_the_page_cache);
    RUN(reading_the_samples_has_a_limit);
    RUN(the_channels_may_come_first);
    RUN(copies_take_a_part_of_the_memory);
    RUN(a_page_cache_that_keeps_them);
    RUN(what_is_only_read_is_not_decoded);
    RUN(a_list_of_samples_is_read_as_it_is);
    RUN(a_list_is_read_by_one_rank_to_its_end);
    RUN(a_limited_part_of_the_page_cache_is_dropped);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
