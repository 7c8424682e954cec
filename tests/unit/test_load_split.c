/* SPDX-License-Identifier: Apache-2.0 */
/* How a pass is cut into global batches, and these into the batches of the ranks. */
#include "load/epoch/split.h"

#include "lib/order_help.h"
#include "test.h"

enum { MOST = 6000 };

/* ---- a step ---------------------------------------------------------------------------------- */

typedef struct Counts {
    uint32_t valid_least, valid_most;
    uint64_t fills;
} Counts;

/* The batch of one rank. Marks its positions and its rows of the global batch. */
static void check_batch(const PenSplit *s, uint64_t g, uint8_t *seen, uint8_t *rows, Counts *c)
{
    PenPassStep step = pen__split_step(s, g);
    uint64_t global = (uint64_t)s->batch * s->world;
    CHECK_INT(step.batch, s->batch);
    CHECK_INT(step.first, s->start + g * global);
    CHECK_INT(step.n, PEN_MIN(global, s->n - step.first));
    CHECK_INT(step.samples, s->last_batch == PEN_LAST_SHORT ? step.valid : s->batch);
    for (uint32_t i = 0; i < step.samples; i++) {
        bool valid;
        uint64_t p = pen__split_position(s, &step, i, &valid);
        uint64_t row = step.row + i * step.row_step;
        CHECK_INT(valid, i < step.valid);
        CHECK(row < global && !rows[row]++);
        if (valid) {
            CHECK(p >= step.first && p - step.first < step.n && !seen[p]++);
        } else {
            /* The order is repeated from its start. */
            CHECK_INT(p, (s->deal == PEN_DEAL_IN_TURN ? row - step.n : c->fills) % s->n);
            c->fills++;
        }
    }
    c->valid_least = PEN_MIN(c->valid_least, step.valid);
    c->valid_most = PEN_MAX(c->valid_most, step.valid);
}

static void check_pass(PenSplit s)
{
    static uint8_t seen[MOST], rows[200000];
    uint64_t global = (uint64_t)s.batch * s.world, left = s.n - s.start;
    uint64_t steps = left / global + (s.last_batch != PEN_LAST_DROP && left % global);
    bool is_padded = s.last_batch == PEN_LAST_PAD;
    CHECK(s.n <= MOST && global <= sizeof rows);
    CHECK_INT(pen__split_steps(&s), steps);
    CHECK_INT(pen__split_places(&s, steps), steps * s.batch);
    uint64_t samples = 0;
    memset(seen, 0, sizeof seen);
    for (uint64_t g = 0; g < steps; g++) {
        Counts c = {.valid_least = UINT32_MAX};
        bool is_full = left - g * global >= global;
        memset(rows, 0, global);
        for (s.rank = 0; s.rank < s.world; s.rank++) {
            check_batch(&s, g, seen, rows, &c);
            CHECK_OK_SO_FAR();
            if (g + 1 == steps)
                samples += pen__split_samples(&s, steps);
        }
        CHECK(c.valid_most - c.valid_least <= (is_full ? 0 : 1));
        CHECK_INT(c.fills, is_full || !is_padded ? 0 : global - (left - g * global));
        for (uint64_t p = s.start + g * global; p < PEN_MIN(s.n, s.start + (g + 1) * global); p++)
            CHECK_INT(seen[p], 1);
    }
    CHECK_INT(samples, s.last_batch == PEN_LAST_SHORT ? left : steps * global);
}

static const uint32_t worlds[] = {1, 2, 3, 5, 7, 8, 12, 48, 63, 64, 100, 1000};

static void check_passes(PenSplit s)
{
    static const uint32_t batches[] = {1, 2, 7, 64, 150};
    static const uint64_t sizes[] = {1, 2, 64, 193, 1200, MOST};
    for (size_t b = 0; b < PEN_LEN(batches); b++)
        for (size_t i = 0; i < PEN_LEN(sizes); i++)
            for (uint64_t start = 0; start <= sizes[i]; start += 1 + sizes[i] * 2 / 5) {
                s.n = sizes[i];
                s.start = start;
                s.batch = batches[b];
                for (s.last_batch = PEN_LAST_SHORT; s.last_batch <= PEN_LAST_DROP; s.last_batch++) {
                    check_pass(s);
                    CHECK_OK_SO_FAR();
                }
            }
}

TEST(a_pass_has_every_position_once_and_counts_what_pads)
{
    for (size_t w = 0; w < PEN_LEN(worlds); w++) {
        static const uint32_t streams[] = {6, 96, 3072};
        check_passes((PenSplit){.world = worlds[w], .deal = PEN_DEAL_IN_TURN});
        CHECK_OK_SO_FAR();
        check_passes((PenSplit){.world = worlds[w], .deal = PEN_DEAL_IN_PARTS});
        CHECK_OK_SO_FAR();
        for (size_t i = 0; i < PEN_LEN(streams); i++)
            check_passes(
                (PenSplit){.world = worlds[w], .deal = PEN_DEAL_BY_STREAM, .streams = streams[i]});
        CHECK_OK_SO_FAR();
    }
}

TEST(a_pass_that_is_over_has_no_batches)
{
    PenSplit s = {.n = 100, .start = 100, .batch = 8, .world = 2};
    CHECK_INT(pen__split_steps(&s), 0);
    s.start = 1000;
    CHECK_INT(pen__split_steps(&s), 0);
    s.last_batch = PEN_LAST_DROP;
    CHECK_INT(pen__split_steps(&s), 0);
}

TEST(the_largest_batches_do_not_overflow)
{
    bool valid;
    uint64_t left = PEN_PERMUTE_MOST - 5;
    PenSplit s = {.n = PEN_PERMUTE_MOST,
                  .start = 5,
                  .batch = UINT32_MAX,
                  .rank = UINT32_MAX - 1,
                  .world = UINT32_MAX};
    CHECK_INT(pen__split_steps(&s), 1);
    PenPassStep step = pen__split_step(&s, 0);
    CHECK_INT(pen__split_position(&s, &step, 0, &valid), UINT64_C(0xfffffffe));
    CHECK_INT(valid, 1);
    CHECK_INT(step.n, left);
    CHECK(step.valid == left / UINT32_MAX || step.valid == left / UINT32_MAX + 1);
    for (int deal = PEN_DEAL_IN_PARTS; deal <= PEN_DEAL_BY_STREAM; deal++) {
        s.deal = (PenDeal)deal;
        s.streams = PEN_STREAMS_MOST;
        step = pen__split_step(&s, 0);
        CHECK_INT(step.before + step.valid, left); /* it is the last rank */
        CHECK(pen__split_position(&s, &step, step.valid - 1, &valid) < s.n && valid);
        CHECK_INT(pen__split_position(&s, &step, UINT32_MAX - 1, &valid),
                  (uint64_t)UINT32_MAX * UINT32_MAX - left - 1);
        CHECK_INT(valid, 0);
    }
    s.last_batch = PEN_LAST_DROP;
    CHECK_INT(pen__split_steps(&s), 0);
}

/* ---- by streams ------------------------------------------------------------------------------ */

typedef struct Placed {
    uint64_t lane, position;
} Placed;

static int by_lane(const void *a, const void *b)
{
    const Placed *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* Of every second global batch, the samples of a stream from the last to the first. */
static int by_lane_back(const void *a, const void *b)
{
    const Placed *x = a, *y = b;
    return x->lane != y->lane ? by_lane(a, b) : by_lane(b, a);
}

TEST(a_global_batch_is_sorted_by_streams)
{
    PenRng rng = pen__rng_init(6, 6);
    for (int round = 0; round < 300; round++) {
        static Placed sorted[MOST];
        uint32_t world = 1 + (uint32_t)pen__rng_below(&rng, 20);
        PenSplit s = {.n = MOST,
                      .start = pen__rng_below(&rng, MOST),
                      .batch = 1 + (uint32_t)pen__rng_below(&rng, MOST / world),
                      .world = world,
                      .deal = PEN_DEAL_BY_STREAM,
                      .streams = 6u << pen__rng_below(&rng, 10)};
        PenPassStep step = pen__split_step(&s, 0);
        for (uint64_t i = 0; i < step.n; i++)
            sorted[i] = (Placed){pen__stream_lane(s.streams, step.first + i), step.first + i};
        bool back = step.first / ((uint64_t)s.batch * world) % 2;
        qsort(sorted, step.n, sizeof *sorted, back ? by_lane_back : by_lane);
        uint64_t at = 0;
        for (s.rank = 0; s.rank < world; s.rank++) {
            step = pen__split_step(&s, 0);
            CHECK_INT(step.before, at);
            for (uint32_t i = 0; i < step.valid; i++) {
                bool valid;
                CHECK_INT(pen__split_position(&s, &step, i, &valid), sorted[at++].position);
            }
        }
    }
}

TEST(the_deal_follows_from_the_order_and_the_ranks)
{
    PenBucketTable table = {0};
    Shape s = {8, 96};
    PenOrder o = order_of(PEN_ORDER_SEQUENTIAL, 5000, 1, 1, s);
    CHECK_INT(pen__deal_for(&o, 2), PEN_DEAL_IN_PARTS);
    o = random_order(5000, 1, 1);
    CHECK_INT(pen__deal_for(&o, 5), PEN_DEAL_IN_TURN);
    for (int32_t kind = PEN_ORDER_SHUFFLE; kind <= PEN_ORDER_STICKY; kind++) {
        o = order_of(kind, 5000, 1, 1, s);
        for (uint32_t world = 1; world < 200; world++)
            CHECK_INT(pen__deal_for(&o, world), 48 % world ? PEN_DEAL_BY_STREAM : PEN_DEAL_IN_TURN);
        o = order_of(kind, 40, 1, 1, s); /* mixed at once */
        CHECK_INT(pen__deal_for(&o, 7), PEN_DEAL_IN_TURN);
        o.table = &table;
        CHECK_INT(pen__deal_for(&o, 7), PEN_DEAL_IN_PARTS);
    }
}

/* ---- with an order --------------------------------------------------------------------------- */

/* How many ranks use each block, in sum. */
static uint64_t count_users(const PenOrder *o, uint32_t world, uint32_t batch, uint64_t start)
{
    static uint8_t used[64][MOST];
    uint64_t users = 0;
    PenSplit s = {.n = o->plan.n,
                  .start = start,
                  .batch = batch,
                  .world = world,
                  .last_batch = PEN_LAST_DROP,
                  .deal = pen__deal_for(o, world),
                  .streams = o->streams};
    memset(used, 0, sizeof used);
    for (s.rank = 0; s.rank < world; s.rank++)
        for (uint64_t g = 0; g < pen__split_steps(&s); g++) {
            PenPassStep step = pen__split_step(&s, g);
            for (uint32_t i = 0; i < batch; i++) {
                bool valid;
                uint64_t p = pen__split_position(&s, &step, i, &valid);
                used[s.rank][pen__order_at(o, p) / o->plan.block_samples] = 1;
            }
        }
    for (size_t r = 0; r < world; r++)
        for (size_t b = 0; b < MOST; b++)
            users += used[r][b];
    return users;
}

enum { BLOCKS = 96 * 12 };

/* Also after a start that is no multiple of the ranks, or of the batch. */
TEST(ranks_have_streams_of_their_own_when_they_divide_the_pairs)
{
    static const uint32_t even[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 48};
    for (int32_t kind = PEN_ORDER_SHUFFLE; kind <= PEN_ORDER_STICKY; kind++) {
        PenOrder o = order_of(kind, BLOCKS * 32, 4, 4, (Shape){32, 96});
        for (size_t i = 0; i < PEN_LEN(even); i++) {
            CHECK(count_users(&o, even[i], 16, 0) <= BLOCKS);
            CHECK(count_users(&o, even[i], 5, 7777) <= BLOCKS);
        }
    }
}

/* Between two ranks, one pair of streams or so is shared. */
TEST(other_numbers_of_ranks_share_few_blocks)
{
    static const uint32_t odd[] = {5, 7, 9, 10, 13, 20};
    PenOrder o = shuffle_order(BLOCKS * 32, 4, 4, (Shape){32, 96});
    for (size_t i = 0; i < PEN_LEN(odd); i++) {
        uint64_t shared = count_users(&o, odd[i], 96, 0);
        CHECK(shared > BLOCKS && shared <= BLOCKS + (odd[i] - 1) * 2 * (BLOCKS / 96));
        shared = count_users(&o, odd[i], 50, 777);
        CHECK(shared <= BLOCKS + (odd[i] - 1) * 6 * (BLOCKS / 96));
    }
}

/* The samples of a global batch, in the order of their numbers. */
static void list_global(const PenOrder *o, PenSplit s, uint64_t g, uint64_t *ret)
{
    uint64_t n = 0;
    bool valid;
    s.deal = pen__deal_for(o, s.world);
    s.streams = o->streams;
    for (s.rank = 0; s.rank < s.world; s.rank++) {
        PenPassStep step = pen__split_step(&s, g);
        for (uint32_t i = 0; i < s.batch; i++)
            ret[n++] = pen__order_at(o, pen__split_position(&s, &step, i, &valid));
    }
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Those that only fill up are the same, too. */
TEST(global_batches_are_the_same_for_any_number_of_ranks)
{
    enum { GLOBAL = 60 };
    static const uint32_t divisors[] = {2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60};
    for (int32_t kind = PEN_ORDER_SEQUENTIAL; kind <= PEN_ORDER_STICKY; kind++)
        for (size_t i = 0; i < PEN_LEN(divisors); i++) {
            PenOrder o = order_of(kind, 1003, 1, 2, (Shape){8, 12});
            PenSplit one = {.n = 1003, .start = i * 7, .batch = GLOBAL, .world = 1}, many = one;
            many.world = divisors[i];
            many.batch = GLOBAL / divisors[i];
            for (uint64_t g = 0; g < pen__split_steps(&one); g++) {
                uint64_t a[GLOBAL], b[GLOBAL];
                list_global(&o, one, g, a);
                list_global(&o, many, g, b);
                qsort(a, GLOBAL, sizeof *a, by_number);
                qsort(b, GLOBAL, sizeof *b, by_number);
                CHECK_MEM(b, a, sizeof a);
            }
        }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(a_pass_has_every_position_once_and_counts_what_pads);
    RUN(a_pass_that_is_over_has_no_batches);
    RUN(the_largest_batches_do_not_overflow);
    RUN(a_global_batch_is_sorted_by_streams);
    RUN(the_deal_follows_from_the_order_and_the_ranks);
    RUN(ranks_have_streams_of_their_own_when_they_divide_the_pairs);
    RUN(other_numbers_of_ranks_share_few_blocks);
    RUN(global_batches_are_the_same_for_any_number_of_ranks);
    return TEST_END();
}
