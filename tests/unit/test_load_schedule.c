/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule: the part of a sample has it, what is needed is fetched once where memory allows it,
 * the limit holds, and a pass always ends. */
#include "load/prefetch/schedule.h"

#include "base/mem.h"
#include "lib/fault_sys.h"
#include "lib/order_help.h"
#include "test.h"

enum { MOST = 20000, SAMPLE = 100, EXTRA = 16, MOST_PARTS = 4096 };

typedef struct Run {
    PenSchedule s;
    PenOrderPlan order;
    PenSplit split;
    uint64_t n_samples, block_samples; /* of the pack */
    const uint64_t *list;              /* samples of the run; NULL: all */
    bool fails;                        /* now and then */
    PenRng rng;
    PenBlockPart *on_the_way[MOST_PARTS];
    uint64_t n_on_the_way, n_with_data, fetched_blocks, fetched_parts;
    uint64_t over; /* times that the limit was exceeded by more than one part alone */
    uint8_t fetched[MOST];
} Run;

static Run run;

/* ---- the plan -------------------------------------------------------------------------------- */

static PenSampleSpot spot_of(const void *of, uint64_t epoch, uint64_t index)
{
    const Run *r = of;
    uint64_t sample = r->list ? r->list[index] : index, block = sample / r->block_samples;
    (void)epoch;
    return (PenSampleSpot){
        .block = block,
        .sample = (uint32_t)(sample % r->block_samples),
        .n_samples = (uint32_t)PEN_MIN(r->block_samples, r->n_samples - block * r->block_samples)};
}

/* More than a part has when it arrives. */
static uint64_t bytes_of(void *ctx, uint64_t block, uint32_t n, bool all)
{
    (void)ctx;
    return n * SAMPLE + EXTRA + block % 7 + all;
}

static void drop(void *ctx, const PenBlockPart *p)
{
    Run *r = ctx;
    if (p->data != r)
        abort();
    r->n_with_data--;
}

static void begin_run(PenOrderPlan order, uint64_t block_samples)
{
    memset(&run, 0, sizeof run);
    run.order = order;
    run.n_samples = order.n;
    run.block_samples = block_samples;
    run.rng = pen__rng_init(order.n, block_samples);
    run.split = (PenSplit){.batch = 16, .world = 1};
}

static void init_schedule(uint64_t horizon, uint64_t limit, uint64_t resident)
{
    PenSchedulePlan plan = {.horizon = horizon,
                            .limit_bytes = limit,
                            .resident_bytes = resident,
                            .spot = spot_of,
                            .of = &run,
                            .bytes = bytes_of,
                            .drop = drop,
                            .ctx = &run};
    CHECK_INT(pen__schedule_init(&run.s, &plan, NULL), PEN_OK);
}

static uint64_t block_bytes(void)
{
    return run.block_samples * SAMPLE + EXTRA + 8;
}

static void begin_pass(uint64_t epoch)
{
    PenOrder o;
    CHECK_INT(pen__order_init(&o, &run.order, epoch, NULL), PEN_OK);
    run.split.n = run.order.n;
    run.split.deal = pen__deal_for(&o, run.split.world);
    run.split.streams = o.streams;
    pen__schedule_begin(&run.s, &o, &run.split, pen__split_steps(&run.split));
}

/* ---- a loader -------------------------------------------------------------------------------- */

static void note_limit(void)
{
    uint64_t limit = run.s.plan.limit_bytes;
    if (run.s.bytes > limit && run.n_on_the_way + run.n_with_data > 1)
        run.over++;
    run.over += run.s.resident_bytes > run.s.plan.resident_bytes;
}

static void note_request(PenBlockPart *p)
{
    if (p->state != PEN_FETCH_REQUESTED || run.n_on_the_way == MOST_PARTS)
        abort();
    run.on_the_way[run.n_on_the_way++] = p;
    run.fetched_parts++;
    run.fetched_blocks += p->is_block;
    for (uint32_t i = 0; i < p->n; i++)
        run.fetched[p->block * run.block_samples + p->first + i]++;
    note_limit();
}

/* All that can be requested now, up to `most`. */
static void request(uint64_t most)
{
    for (uint64_t i = 0; i < most && run.n_on_the_way < MOST_PARTS;) {
        PenBlockPart *p;
        uint64_t before = pen__schedule_progress(&run.s);
        CHECK_INT(pen__schedule_next(&run.s, &p, NULL), PEN_OK);
        for (PenBlockPart *after = p; p; after = p) {
            note_request(p);
            CHECK_INT(pen__schedule_next_adjacent(&run.s, after, &p, NULL), PEN_OK);
            CHECK(!p || (p->is_block && p->block == after->block + 1));
            i++;
        }
        if (pen__schedule_progress(&run.s) == before)
            return;
    }
}

static PenBlockPart *take_off(uint64_t i)
{
    PenBlockPart *p = run.on_the_way[i];
    run.on_the_way[i] = run.on_the_way[--run.n_on_the_way];
    return p;
}

static void arrive(uint64_t i)
{
    PenBlockPart *p = take_off(i);
    run.n_with_data++;
    if (run.fails && !pen__rng_below(&run.rng, 20)) {
        p->data = &run;
        pen__schedule_failed(&run.s, p);
        return;
    }
    pen__schedule_arrived(&run.s, p, &run, p->n * SAMPLE);
}

/* Samples that the caller knows, with their parts. */
typedef struct Waiting {
    PenBlockPart *part[MOST];
    uint64_t sample[MOST], n;
} Waiting;

static Waiting waiting;

/* The sample that comes next in the pass, whose part is asked for. */
static void take(uint64_t number, PenOrder *o)
{
    const PenSplit *split = &run.split;
    PenPassStep step = pen__split_step(split, number / split->batch);
    bool valid;
    uint64_t index = pen__order_at(
        o, pen__split_position(split, &step, (uint32_t)(number % split->batch), &valid));
    PenSampleSpot at = spot_of(&run, 0, index);
    PenBlockPart *p = pen__schedule_take(&run.s);
    CHECK(p && p->block == at.block && p->uses > 0);
    CHECK(at.sample >= p->first && at.sample - p->first < p->n);
    CHECK(!p->is_block || (p->first == 0 && p->n == at.n_samples));
    waiting.part[waiting.n++] = p;
}

static void retry(PenBlockPart *p)
{
    p->data = NULL;
    run.n_with_data--;
    pen__schedule_retry(p);
    run.on_the_way[run.n_on_the_way++] = p;
}

/* One sample whose part has arrived, or has failed and is not tried again. */
static bool finish_one(void)
{
    uint64_t from = waiting.n ? pen__rng_below(&run.rng, waiting.n) : 0;
    for (uint64_t k = 0; k < waiting.n; k++) {
        uint64_t i = (from + k) % waiting.n;
        PenBlockPart *p = waiting.part[i];
        if (p->state == PEN_FETCH_REQUESTED)
            continue;
        if (p->state == PEN_FETCH_FAILED && pen__rng_below(&run.rng, 3)) {
            retry(p);
            continue;
        }
        waiting.part[i] = waiting.part[--waiting.n];
        pen__schedule_sample_done(&run.s, p);
        return true;
    }
    return false;
}

/* What the threads of a loader do, in any order, up to `stop` samples: requests, arrivals, and
 * samples, of which at most `spare` are taken and not done. */
static void run_pass(uint64_t epoch, uint64_t stop, uint64_t spare)
{
    uint64_t taken = 0, done = 0, idle = 0;
    waiting.n = 0;
    begin_pass(epoch);
    CHECK_OK_SO_FAR();
    stop = PEN_MIN(stop, run.s.n);
    PenOrder o = run.s.order;
    while (done < stop && idle < 2000) {
        bool moved = false;
        uint64_t requested = run.fetched_parts;
        request(pen__rng_below(&run.rng, 20));
        CHECK_OK_SO_FAR();
        moved |= run.fetched_parts != requested;
        while (taken < run.s.cursor && waiting.n < spare && pen__rng_below(&run.rng, 8)) {
            take(taken++, &o);
            CHECK_OK_SO_FAR();
            moved = true;
        }
        for (uint64_t k = pen__rng_below(&run.rng, 4); k && run.n_on_the_way; k--, moved = true)
            arrive(pen__rng_below(&run.rng, run.n_on_the_way));
        for (uint64_t k = pen__rng_below(&run.rng, 30); k && done < stop && finish_one(); k--) {
            done++;
            moved = true;
        }
        note_limit();
        idle = moved ? 0 : idle + 1;
    }
    CHECK(done == stop); /* else it was stuck */
}

/* The rest of it arrives, and nothing is left. */
static void end_run(void)
{
    pen__schedule_end(&run.s);
    while (run.n_on_the_way)
        arrive(0);
    pen__schedule_fini(&run.s);
    CHECK_INT(run.n_with_data, 0);
    CHECK_INT(run.over, 0);
}

static uint64_t most_fetched(void)
{
    uint64_t most = 0;
    for (uint64_t i = 0; i < run.n_samples; i++)
        most = PEN_MAX(most, run.fetched[i]);
    return most;
}

/* ---- what is fetched ------------------------------------------------------------------------- */

static const PenOrderPlan shuffled = {PEN_ORDER_SHUFFLE, 6405, 9, 16, 24};

static uint64_t all_fetched(void)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < run.n_samples; i++)
        n += run.fetched[i];
    return n;
}

/* Of all streams one block each, and the ones that follow. Only the first batches bring parts of
 * blocks, so that they come soon. */
TEST(a_horizon_of_all_streams_brings_entire_blocks)
{
    static const uint32_t worlds[] = {1, 2, 3, 4, 6, 12};
    for (int32_t kind = PEN_ORDER_SEQUENTIAL; kind <= PEN_ORDER_STICKY; kind++)
        for (size_t w = 0; w < PEN_LEN(worlds) && kind != PEN_ORDER_RANDOM; w++)
            for (uint32_t rank = 0; rank < worlds[w]; rank++) {
                PenOrderPlan order = shuffled;
                bool is_sequential = kind == PEN_ORDER_SEQUENTIAL;
                order.kind = kind;
                begin_run(order, 16);
                run.split.world = worlds[w];
                run.split.rank = rank;
                run.split.last_batch = PEN_LAST_DROP;
                init_schedule(24 * 16 / worlds[w] + 2 * 16, 100 * block_bytes(), 0);
                run_pass(rank, UINT64_MAX, 300);
                uint64_t n = run.s.n;
                end_run();
                CHECK_OK_SO_FAR();
                CHECK(most_fetched() <= (is_sequential ? 1 : 2));
                CHECK(all_fetched() <= n + (is_sequential ? 0 : n / 50 + 16));
                CHECK(run.fetched_parts <= n / 16 + (is_sequential ? 0 : 16 + 24 + 17));
            }
}

/* Time in which each stream comes through a quarter of a block brings quarters of blocks. */
TEST(a_smaller_horizon_brings_runs)
{
    begin_run(shuffled, 16);
    init_schedule(24 * 4, 40 * block_bytes(), 0);
    run_pass(0, UINT64_MAX, 300);
    end_run();
    CHECK_OK_SO_FAR();
    CHECK(run.fetched_blocks < 20);
    CHECK(run.fetched_parts > 6405 / 8 && run.fetched_parts < 6405 / 2);
    begin_run(shuffled, 16);
    init_schedule(1, 40 * block_bytes(), 0);
    run_pass(0, UINT64_MAX, 300);
    end_run();
    CHECK_OK_SO_FAR();
    CHECK(run.fetched_parts > 6405 - 20 && most_fetched() <= 1 + 1); /* and what fills up */
}

/* A horizon of entire blocks, and too little memory for them: it comes again, and ends. */
TEST(what_does_not_fit_is_fetched_again)
{
    begin_run(shuffled, 16);
    init_schedule(24 * 16 + 32, 6 * block_bytes(), 0);
    run_pass(0, UINT64_MAX, 300);
    end_run();
    CHECK_OK_SO_FAR();
    CHECK(most_fetched() > 2);
}

/* Samples that are not chosen are not read, but for a few between others. */
TEST(a_list_brings_what_it_names)
{
    static uint64_t list[400];
    begin_run((PenOrderPlan){.kind = PEN_ORDER_RANDOM, .n = 400, .seed = 9}, 32);
    run.n_samples = 3200;
    for (uint64_t i = 0; i < 400; i++)
        list[i] = i * 8;
    run.list = list;
    run.split.last_batch = PEN_LAST_DROP;
    init_schedule(400, 200 * block_bytes(), 0);
    run_pass(1, UINT64_MAX, 100);
    end_run();
    CHECK_OK_SO_FAR();
    for (uint64_t i = 0; i < 3200; i++)
        CHECK_INT(run.fetched[i], i % 8 == 0);
    for (uint64_t i = 0; i < 400; i++) /* 3 of 4 samples are not named, and come along */
        list[i] = i / 2 * 4;
    memset(run.fetched, 0, sizeof run.fetched);
    run.n_samples = 800;
    init_schedule(400, 200 * block_bytes(), 0);
    run_pass(1, UINT64_MAX, 100);
    end_run();
    CHECK_OK_SO_FAR();
    CHECK(run.fetched_parts >= 400 + 25 && run.fetched_parts <= 400 + 25 + 3 * 16);
    CHECK(most_fetched() <= 2);
}

/* ---- blocks that stay ------------------------------------------------------------------------ */

TEST(a_pack_that_fits_stays)
{
    for (int32_t kind = PEN_ORDER_SEQUENTIAL; kind <= PEN_ORDER_STICKY; kind++) {
        PenOrderPlan order = {kind, 1605, 9, 16, 24};
        begin_run(order, 16);
        init_schedule(32, 110 * block_bytes(), 110 * block_bytes());
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            uint64_t before = all_fetched();
            run_pass(epoch, UINT64_MAX, 200);
            CHECK_OK_SO_FAR();
            /* A block of which a part is on its way does not stay: only in the first passes. */
            CHECK(all_fetched() - before <= (epoch == 0 ? 1605 * 11 / 10 : epoch == 1 ? 320 : 48));
        }
        CHECK(run.fetched_blocks <= 101);
        CHECK(kind != PEN_ORDER_SEQUENTIAL || run.fetched_parts == 101);
        end_run();
        CHECK_OK_SO_FAR();
    }
}

/* As many as fit; of the others, what is needed. */
TEST(some_blocks_stay)
{
    begin_run((PenOrderPlan){.kind = PEN_ORDER_RANDOM, .n = 1600, .seed = 9}, 16);
    init_schedule(1, 60 * block_bytes(), 40 * block_bytes());
    run_pass(0, UINT64_MAX, 50);
    CHECK_OK_SO_FAR();
    CHECK(run.fetched_blocks >= 38 && run.fetched_blocks <= 40);
    CHECK(run.fetched_parts <= run.fetched_blocks + (100 - run.fetched_blocks) * 16 + 16);
    uint64_t blocks = run.fetched_blocks, parts = run.fetched_parts;
    run_pass(1, UINT64_MAX, 50);
    CHECK_OK_SO_FAR();
    CHECK(run.fetched_blocks <= blocks + 2); /* the estimate was larger than what arrived */
    CHECK(run.fetched_parts - parts <= 16 * (100 - blocks) + 16);
    end_run();
}

/* Blocks of the pass before leave when memory is short. */
TEST(blocks_that_stay_leave_for_what_is_needed)
{
    PenOrderPlan order = {PEN_ORDER_SEQUENTIAL, 1600, 9, 0, 0};
    begin_run(order, 16);
    init_schedule(32, 3 * block_bytes(), 3 * block_bytes());
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        run_pass(epoch, UINT64_MAX, 20);
        CHECK_OK_SO_FAR();
    }
    CHECK(run.fetched_parts >= 100 * 3 - 6 && run.fetched_parts <= 100 * 3);
    end_run();
}

/* ---- the first batch ------------------------------------------------------------------------- */

/* It waits for its own samples alone, if the plan says so. */
TEST(a_pass_begins_with_the_first_batch)
{
    begin_run(shuffled, 16);
    init_schedule(24 * 16 + 32, 1000 * block_bytes(), 0);
    run.s.plan.begins_apart = true;
    begin_pass(3);
    CHECK_OK_SO_FAR();
    for (int i = 0; i < 100 && !pen__schedule_has_first_batch(&run.s); i++)
        request(1);
    CHECK_INT(run.s.cursor, 16);
    CHECK(run.fetched_parts <= 16 && all_fetched() <= 16 + 3);
    CHECK_INT(run.fetched_blocks, 0);
    request(300);
    CHECK(run.fetched_parts >= 300 && run.fetched_blocks > 200);
    waiting.n = 0;
    end_run();
}

/* ---- any sizes ------------------------------------------------------------------------------- */

static PenOrderPlan any_order(PenRng *rng)
{
    return (PenOrderPlan){.kind = (int32_t)pen__rng_below(rng, 4),
                          .n = 1 + pen__rng_below(rng, pen__rng_below(rng, 3) ? 900 : 4000),
                          .seed = pen__rng_next(rng),
                          .block_samples = 1 + pen__rng_below(rng, 40),
                          .streams = 6u << pen__rng_below(rng, 5)};
}

/* Passes that are left in the middle, with parts on their way that arrive in the next one. */
TEST(passes_of_any_size_end)
{
    PenRng rng = pen__rng_init(77, 7);
    for (int round = 0; round < (TEST_SANITIZED ? 150 : 400); round++) {
        PenOrderPlan order = any_order(&rng);
        begin_run(order, order.block_samples);
        run.split.world = 1 + (uint32_t)pen__rng_below(&rng, 7);
        run.split.rank = (uint32_t)pen__rng_below(&rng, run.split.world);
        run.split.batch = 1 + (uint32_t)pen__rng_below(&rng, 40);
        run.split.start = pen__rng_below(&rng, order.n);
        run.fails = round % 3 == 0;
        uint64_t blocks = 1 + pen__rng_below(&rng, pen__rng_below(&rng, 2) ? 5 : 60);
        uint64_t limit = block_bytes() * blocks - pen__rng_below(&rng, block_bytes());
        init_schedule(1 + pen__rng_below(&rng, 2000), limit,
                      pen__rng_below(&rng, 2) * pen__rng_below(&rng, limit));
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            bool entire = pen__rng_below(&rng, 2);
            run_pass(epoch, entire ? UINT64_MAX : pen__rng_below(&rng, order.n),
                     1 + pen__rng_below(&rng, 200));
            if (test__now.state != TEST_PASSED)
                printf("round %d: kind %d n %" PRIu64 " K %" PRIu64 "\n", round, (int)order.kind,
                       order.n, order.block_samples);
            CHECK_OK_SO_FAR();
            if (pen__rng_below(&rng, 2))
                pen__schedule_end(&run.s);
        }
        end_run();
        CHECK_OK_SO_FAR();
    }
}

/* A horizon and a caller that both want more samples than are counted at a time. */
TEST(samples_that_are_not_taken_have_an_end)
{
    begin_run((PenOrderPlan){.kind = PEN_ORDER_SEQUENTIAL, .n = MOST}, 64);
    init_schedule(64, UINT64_MAX / 2, 0);
    begin_pass(0);
    request(UINT64_MAX);
    CHECK_OK_SO_FAR();
    uint64_t cursor = run.s.cursor;
    CHECK(cursor > 64 && cursor < MOST && pen__schedule_is_full(&run.s));
    PenOrder o = run.s.order;
    for (uint64_t i = 0; i < 100; i++) {
        take(i, &o);
        CHECK_OK_SO_FAR();
    }
    CHECK(!pen__schedule_is_full(&run.s));
    request(UINT64_MAX);
    CHECK_INT(run.s.cursor, cursor + 100);
    waiting.n = 0;
    end_run();
}

/* ---- what fails ------------------------------------------------------------------------------ */

TEST(a_part_that_fails_is_requested_again)
{
    PenBlockPart *p, *next;
    begin_run((PenOrderPlan){.kind = PEN_ORDER_SEQUENTIAL, .n = 80}, 8);
    run.split.last_batch = PEN_LAST_DROP;
    init_schedule(16, 100 * block_bytes(), 0);
    PenSchedule *s = &run.s;
    begin_pass(0);
    CHECK(!pen__schedule_has_first_batch(s));
    CHECK(pen__schedule_next(s, &p, NULL) == PEN_OK && p && p->block == 0 && p->is_block);
    CHECK(pen__schedule_next_adjacent(s, p, &next, NULL) == PEN_OK && next && next->block == 1);
    CHECK(pen__schedule_next_adjacent(s, p, &next, NULL) == PEN_OK && !next); /* 2 is not 0 + 1 */
    CHECK(s->cursor == 16 && pen__schedule_has_first_batch(s));
    pen__schedule_failed(s, p);
    CHECK(p->uses == 8 && p->state == PEN_FETCH_FAILED);
    pen__schedule_retry(p);
    CHECK(p->state == PEN_FETCH_REQUESTED);
    pen__schedule_failed(s, p);
    uint64_t bytes = s->bytes, parts = s->n_parts;
    for (int i = 0; i < 8; i++) {
        CHECK(pen__schedule_take(s) == p);
        pen__schedule_sample_done(s, p);
    }
    CHECK(s->n_parts == parts - 1 && s->bytes < bytes); /* no sample needs it: it is dropped */
    /* One that arrives when the pass that it was for is over. */
    pen__schedule_end(s);
    for (int i = 0; i < 2; i++)
        CHECK(pen__schedule_next(s, &p, NULL) == PEN_OK && !p);
    begin_pass(1);
    CHECK_OK_SO_FAR();
    while (s->parts) {
        run.n_with_data++;
        pen__schedule_arrived(s, s->parts, &run, 8 * SAMPLE);
    }
    CHECK_INT(s->bytes, 0);
    pen__schedule_fini(s);
    CHECK_INT(run.n_with_data, 0);
}

/* A block that stays and is needed later fails when no scheduled sample needs it. */
TEST(an_orphan_that_fails_is_planned_again)
{
    PenBlockPart *p;
    begin_run((PenOrderPlan){.kind = PEN_ORDER_SEQUENTIAL, .n = 80}, 8);
    init_schedule(16, 100 * block_bytes(), 100 * block_bytes());
    PenSchedule *s = &run.s;
    begin_pass(0);
    CHECK(pen__schedule_next(s, &p, NULL) == PEN_OK && p && p->is_resident);
    begin_pass(1); /* it needs the same block */
    s->plan.limit_bytes = 1;
    PenBlockPart *none;
    CHECK(pen__schedule_next(s, &none, NULL) == PEN_OK);
    CHECK(!none && p->uses > 0);
    pen__schedule_failed(s, p);
    s->plan.limit_bytes = 100 * block_bytes();
    CHECK(p->state == PEN_FETCH_FAILED);
    for (int i = 0; i < 8; i++) {
        CHECK(pen__schedule_take(s) == p);
        pen__schedule_sample_done(s, p);
    }
    CHECK(pen__schedule_next(s, &p, NULL) == PEN_OK && p && p->block == 1);
    pen__schedule_fini(s);
}

/* Without memory a call fails, and another one finds the same sample. */
TEST(without_memory_nothing_is_lost)
{
    PenOrderPlan order = {PEN_ORDER_SHUFFLE, 700, 9, 16, 6};
    for (uint64_t at = 1; at < 200; at++) {
        begin_run(order, 16);
        init_schedule(40, 50 * block_bytes(), 0);
        begin_pass(2);
        CHECK_OK_SO_FAR();
        PenOrder o = run.s.order;
        PenBlockPart *p;
        int failed = 0;
        fault_begin(&(FaultPlan){.at = at});
        for (int i = 0; i < 400; i++) {
            int r = pen__schedule_next(&run.s, &p, NULL);
            failed += r < 0;
            if (r == PEN_OK && p)
                run.on_the_way[run.n_on_the_way++] = p;
        }
        (void)fault_end();
        CHECK(failed <= 1);
        waiting.n = 0;
        for (uint64_t i = 0; i < run.s.cursor; i++) {
            take(i, &o);
            CHECK_OK_SO_FAR();
        }
        for (uint64_t i = 0; i < waiting.n; i++) {
            pen__schedule_sample_done(&run.s, waiting.part[i]);
        }
        end_run();
        CHECK_OK_SO_FAR();
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(a_horizon_of_all_streams_brings_entire_blocks);
    RUN(a_smaller_horizon_brings_runs);
    RUN(what_does_not_fit_is_fetched_again);
    RUN(a_list_brings_what_it_names);
    RUN(a_pack_that_fits_stays);
    RUN(some_blocks_stay);
    RUN(blocks_that_stay_leave_for_what_is_needed);
    RUN(a_pass_begins_with_the_first_batch);
    RUN(passes_of_any_size_end);
    RUN(samples_that_are_not_taken_have_an_end);
    RUN(a_part_that_fails_is_requested_again);
    RUN(an_orphan_that_fails_is_planned_again);
    RUN(without_memory_nothing_is_lost);
    return TEST_END();
}
