/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule: every block once, never more bytes than the limit, and a pass always ends. */
#include "load/prefetch/schedule.h"

#include <string.h>

#include "base/attr.h"
#include "base/mem.h"
#include "test.h"

enum { BLOCK = 1000 };

typedef struct Run {
    PenSchedule schedule;
    uint64_t dropped, fetched[5000];
} Run;

static uint64_t bytes_of(void *ctx, uint64_t number)
{
    (void)ctx;
    return BLOCK + number % 7;
}

static void drop(void *ctx, const PenScheduledBlock *b)
{
    Run *run = ctx;
    CHECK(b->data == run && b->number < 5000);
    run->dropped++;
}

static PenSchedulePlan plan_of(Run *run, const PenOrderPlan *order, uint64_t limit)
{
    return (PenSchedulePlan){.block_samples = order->block_samples ? order->block_samples : 8,
                             .n_samples = order->n,
                             .limit_bytes = limit,
                             .block_bytes = bytes_of,
                             .drop = drop,
                             .ctx = run};
}

/* An entire pass: requests all blocks that fit, the newest arrive first, one sample is done. False
 * when the pass is stuck. */
static bool pass(Run *run, const PenOrderPlan *order, const PenSplit *split, uint64_t epoch)
{
    PenSchedule *a = &run->schedule;
    PenOrder o;
    PenScheduledBlock *requested[5000];
    if (pen__order_init(&o, order, epoch, NULL) < 0)
        return false;
    pen__schedule_begin(a, &o, split, pen__split_steps(split));
    for (uint64_t i = 0; i < a->n; i++) {
        int n = 0;
        for (PenScheduledBlock *b;;) {
            uint64_t before = a->cursor;
            if (pen__schedule_next(a, &b, NULL) < 0)
                return false;
            if (b)
                requested[n++] = b;
            else if (a->cursor == before)
                break;
        }
        while (n-- > 0) {
            run->fetched[requested[n]->number]++;
            pen__schedule_arrived(a, requested[n], run, bytes_of(NULL, requested[n]->number) - 1);
        }
        PenScheduledBlock *b =
            i < a->cursor ? pen__schedule_find(a, pen__schedule_block_of(a, i)) : NULL;
        if (a->bytes > a->plan.limit_bytes || !b || b->state != PEN_FETCH_ARRIVED || !b->uses)
            return false;
        pen__schedule_sample_done(a, b);
    }
    return true;
}

static uint64_t most(const Run *run)
{
    uint64_t m = 0;
    for (int i = 0; i < 5000; i++)
        m = PEN_MAX(m, run->fetched[i]);
    return m;
}

static uint64_t all(const Run *run)
{
    uint64_t n = 0;
    for (int i = 0; i < 5000; i++)
        n += run->fetched[i];
    return n;
}

TEST(each_block_once)
{
    static Run run;
    const uint32_t worlds[] = {1, 2, 3, 4};
    for (size_t w = 0; w < PEN_LEN(worlds); w++) {
        uint64_t blocks = 0;
        for (uint32_t rank = 0; rank < worlds[w]; rank++) {
            PenOrderPlan order = {PEN_ORDER_BLOCK, 3205, 9, 8, 12, 4};
            PenSplit split = {.n = 3205, .batch = 16, .rank = rank, .world = worlds[w]};
            memset(&run, 0, sizeof run);
            /* Two windows of all lanes: the one in use and the next one. */
            PenSchedulePlan plan = plan_of(&run, &order, 2 * 12 * 4 * (BLOCK + 10));
            CHECK(pen__schedule_init(&run.schedule, &plan, NULL) == PEN_OK);
            CHECK(pass(&run, &order, &split, 3));
            if (worlds[w] < 3) /* a last batch that is filled up may need some once more */
                CHECK(most(&run) <= 2);
            blocks += all(&run);
            pen__schedule_fini(&run.schedule);
            CHECK_INT(run.dropped, all(&run));
        }
        /* Ranks that keep to their lanes share the blocks out; 401 there are. The rest behind the
         * lanes belongs to all. */
        CHECK(blocks >= 401 && blocks <= 401 + 60u * (worlds[w] - 1) + 16);
    }
}

TEST(whole_pack_stays)
{
    static Run run;
    PenOrderPlan order = {PEN_ORDER_BLOCK, 800, 9, 8, 12, 4};
    PenSplit split = {.n = 800, .batch = 16, .world = 1, .drop_last = true};
    PenSchedulePlan plan = plan_of(&run, &order, 1000 * BLOCK);
    plan.keeps = true;
    CHECK(pen__schedule_init(&run.schedule, &plan, NULL) == PEN_OK);
    for (uint64_t epoch = 0; epoch < 3; epoch++)
        CHECK(pass(&run, &order, &split, epoch));
    CHECK_INT(all(&run), 100);
    pen__schedule_fini(&run.schedule);
}

TEST(tight)
{
    static Run run;
    const int32_t kinds[] = {PEN_ORDER_SEQUENTIAL, PEN_ORDER_RANDOM, PEN_ORDER_BLOCK};
    for (size_t i = 0; i < PEN_LEN(kinds); i++)
        for (uint64_t limit = 1; limit < 6; limit++) {
            PenOrderPlan order = {kinds[i], 403, 9, 8, 3, 2};
            PenSplit split = {.n = 403, .start = 17, .batch = 10, .rank = 1, .world = 3};
            memset(&run, 0, sizeof run);
            PenSchedulePlan plan = plan_of(&run, &order, limit * (BLOCK + 10));
            CHECK(pen__schedule_init(&run.schedule, &plan, NULL) == PEN_OK);
            CHECK(pass(&run, &order, &split, 1));
            if (kinds[i] == PEN_ORDER_SEQUENTIAL)
                CHECK(most(&run) <= 1 + (limit == 1));
            pen__schedule_fini(&run.schedule);
        }
}

static uint64_t of_list(const void *list, uint64_t epoch, uint64_t index)
{
    (void)epoch;
    return ((const uint64_t *)list)[index] / 8;
}

TEST(list_and_range)
{
    static Run run;
    uint64_t list[200];
    for (uint64_t i = 0; i < 200; i++)
        list[i] = (i * 37) % 800;
    PenOrderPlan order = {PEN_ORDER_RANDOM, 200, 9, 0, 0, 0};
    PenSplit split = {.n = 200, .batch = 10, .world = 1};
    for (int listed = 0; listed < 2; listed++) {
        memset(&run, 0, sizeof run);
        PenSchedulePlan plan = plan_of(&run, &order, 12 * (BLOCK + 10));
        plan.n_samples = 800;
        plan.block = listed ? of_list : NULL;
        plan.of = list;
        plan.first = listed ? 0 : 301;
        CHECK(pen__schedule_init(&run.schedule, &plan, NULL) == PEN_OK);
        CHECK(pass(&run, &order, &split, 1));
        if (!listed)
            for (uint64_t b = 0; b < 5000; b++)
                CHECK(!run.fetched[b] == (b < 301 / 8 || b > 500 / 8));
        pen__schedule_fini(&run.schedule);
    }
}

TEST(failed)
{
    static Run run;
    PenOrderPlan order = {PEN_ORDER_SEQUENTIAL, 80, 9, 0, 0, 0};
    PenSplit split = {.n = 80, .batch = 8, .world = 1, .drop_last = true};
    PenSchedulePlan plan = plan_of(&run, &order, 100 * BLOCK);
    PenOrder o;
    PenScheduledBlock *b, *next;
    CHECK(pen__order_init(&o, &order, 0, NULL) == PEN_OK);
    CHECK(pen__schedule_init(&run.schedule, &plan, NULL) == PEN_OK);
    PenSchedule *a = &run.schedule;
    pen__schedule_begin(a, &o, &split, 10);
    CHECK(pen__schedule_next(a, &b, NULL) == PEN_OK && b && b->number == 0);
    CHECK(pen__schedule_next_adjacent(a, b, &next, NULL) == PEN_OK && next && next->number == 1);
    CHECK(!b->last || b->last == 7);
    pen__schedule_failed(a, b);
    CHECK(b->uses == 8 && b->state == PEN_FETCH_FAILED);
    pen__schedule_retry(b);
    CHECK(b->state == PEN_FETCH_REQUESTED);
    pen__schedule_failed(a, b);
    for (int i = 0; i < 8; i++)
        pen__schedule_sample_done(a, b);
    CHECK(!pen__schedule_find(a, 0)); /* nobody needs it: it is not kept */
    /* One that arrives when the pass it was for is over. */
    pen__schedule_begin(a, &o, &split, 0);
    pen__schedule_arrived(a, next, &run, BLOCK);
    CHECK(a->finished.newest == next);
    pen__schedule_fini(a);
    CHECK_INT(run.dropped, 1);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(each_block_once);
    RUN(whole_pack_stays);
    RUN(tight);
    RUN(list_and_range);
    RUN(failed);
    return TEST_END();
}
