/* SPDX-License-Identifier: Apache-2.0 */
/* Every stage alone: reading by a loader that does not decode, with and without the page cache. */
#include <penstock/bench.h>

#include "base/sys.h"
#include "load_help.h"
#include "test.h"

static PenPack *pack;
static int drops, drop_result; /* calls; what they return */

static int count_drop(int fd, uint64_t offset, uint64_t bytes)
{
    (void)fd, (void)offset;
    drops++;
    return bytes ? drop_result : -22;
}

static int measure(int result, PenStages *ret, PenError *reterr)
{
    PenSys odd = pen__sys_real;
    PenLoaderSettings s;
    pen_loader_settings_init(&s);
    s.pipeline = "decode | center_crop 16 | tensor u8";
    s.order = PEN_ORDER_RANDOM;
    s.batch_size = 16;
    s.threads = s.io_threads = 2;
    odd.cache_drop = count_drop;
    drops = 0;
    drop_result = result;
    pen__sys = &odd;
    int r = pen_bench_stages(pack, &s, 0.02, ret, reterr);
    pen__sys = &pen__sys_real;
    return r;
}

TEST(samples_that_are_not_in_the_page_cache)
{
    PenStages stages = {0};
    CHECK_INT(measure(1, &stages, NULL), PEN_OK);
    for (int i = 0; i < PEN_STAGE_COUNT; i++)
        CHECK(stages.per_second[i] > 0);
    CHECK(drops > 0);
    CHECK(stages.short_side == 18); /* 16 * 8 / 7 */
    CHECK(stages.raw_ratio > 1);
    CHECK(stages.area_ratio > 0 && stages.area_ratio < 1);
}

TEST(a_page_cache_that_keeps_them)
{
    static const int results[] = {0, -95};
    for (int i = 0; i < 2; i++) {
        PenStages stages = {0};
        CHECK_INT(measure(results[i], &stages, NULL), PEN_OK);
        CHECK(drops > 1); /* it tries again, pages may be on their way */
        CHECK(stages.per_second[PEN_STAGE_READ] > 0);
        CHECK(stages.per_second[PEN_STAGE_READ_COLD] == 0);
        CHECK(stages.per_second[PEN_STAGE_READ_HALF] == 0);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    pack = help_load_pack("pack.pen", 100, -1, PEN_MODE_TILE);
    RUN(samples_that_are_not_in_the_page_cache);
    RUN(a_page_cache_that_keeps_them);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
