/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/order.h"

#include "lib/order_help.h"
#include "test.h"

/* ---- permutations ---------------------------------------------------------------------------- */

TEST(sequential_is_the_identity)
{
    PenOrder o = order_of(PEN_ORDER_SEQUENTIAL, 1000, 3, 4, (Shape){0});
    for (uint64_t p = 0; p < 1000; p++) {
        CHECK_INT(pen__order_at(&o, p), p);
        CHECK_INT(pen__order_find(&o, p), p);
    }
}

TEST(random_is_whole)
{
    static uint8_t seen[1000];
    for (uint64_t n = 1; n <= 1000; n += n < 200 ? 1 : 37) {
        PenOrder o = random_order(n, 5, n);
        CHECK(order_is_whole(&o, seen));
    }
}

TEST(block_is_whole)
{
    static uint8_t seen[300];
    for (uint64_t n = 1; n <= 300; n++)
        for (size_t i = 0; i < PEN_LEN(shapes); i++) {
            PenOrder o = block_order(n, 5, n, shapes[i]);
            CHECK(order_is_whole(&o, seen));
            o = order_of(PEN_ORDER_STICKY, n, 5, n, shapes[i]);
            CHECK(order_is_whole(&o, seen));
        }
}

TEST(the_largest_sizes_hold)
{
    static const Shape large[] = {{1, 1, 1},
                                  {1, UINT32_MAX, UINT32_MAX},
                                  {64, 96, 8},
                                  {7, 3, UINT32_MAX},
                                  {UINT64_C(1) << 62, 1, 2},
                                  {UINT64_C(1) << 63, 1, 1},
                                  {UINT64_MAX, UINT32_MAX, UINT32_MAX}};
    static const uint64_t n[] = {PEN_PERMUTE_MOST, PEN_PERMUTE_MOST - 1, UINT64_C(1000000000000)};
    PenRng rng = pen__rng_init(3, 3);
    for (size_t i = 0; i < PEN_LEN(n); i++) {
        PenOrder o = random_order(n[i], 1, UINT64_MAX);
        CHECK(order_inverts(&o, 500, &rng));
        for (size_t k = 0; k < PEN_LEN(large); k++) {
            o = block_order(n[i], UINT64_MAX, 2, large[k]);
            CHECK(order_inverts(&o, 500, &rng));
            CHECK_INT(pen__order_find(&o, pen__order_at(&o, n[i] - 1)), n[i] - 1);
        }
    }
}

/* Runs are resumed by later releases, so these never change. The values come from another program,
 * written after the description in order.c. */
TEST(stays_the_same_for_ever)
{
    static const uint64_t first[] = {120, 76, 583, 961, 273, 305, 137, 90, 892, 250, 631, 306};
    static const uint64_t last[] = {43, 633, 44, 976, 949, 636, 639, 42, 951, 738, 983, 740};
    static const uint64_t random[] = {343, 408, 736, 25, 886, 776, 496, 994, 751, 874, 556, 716};
    uint64_t hash = 0;
    PenOrder o = block_order(1003, 1, 2, (Shape){8, 6, 5});
    PenOrder r = random_order(1003, 1, 2);
    for (uint64_t i = 0; i < 12; i++) {
        CHECK_INT(pen__order_at(&o, i), first[i]);
        CHECK_INT(pen__order_at(&o, 1003 - 12 + i), last[i]);
        CHECK_INT(pen__order_at(&r, i), random[i]);
    }
    for (uint64_t p = 0; p < 1003; p++)
        hash = hash * 31 + pen__order_at(&o, p);
    CHECK_INT(hash, UINT64_C(0x23020834ee8114f7));
}

static uint64_t equal_places(const PenOrder *a, const PenOrder *b)
{
    uint64_t same = 0;
    for (uint64_t p = 0; p < a->plan.n; p++)
        same += pen__order_at(a, p) == pen__order_at(b, p);
    return same;
}

/* Neither does the sum of seed and epoch count, nor their order. */
TEST(every_seed_and_epoch_has_an_order_of_its_own)
{
    static const uint64_t pairs[][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {2, 0}, {2, 1}};
    for (size_t i = 0; i < PEN_LEN(pairs); i++)
        for (size_t k = 0; k < i; k++) {
            PenOrder a = random_order(5000, pairs[i][0], pairs[i][1]);
            PenOrder b = random_order(5000, pairs[k][0], pairs[k][1]);
            CHECK(equal_places(&a, &b) < 10); /* 1 is expected */
            a = block_order(5000, pairs[i][0], pairs[i][1], (Shape){10, 4, 6});
            b = block_order(5000, pairs[k][0], pairs[k][1], (Shape){10, 4, 6});
            CHECK(equal_places(&a, &b) < 20);
        }
}

static void refuse(int32_t kind, uint64_t n, Shape s, const char *message)
{
    PenError err = {0};
    PenOrder o = {.epoch = 77};
    PenOrderPlan plan = {
        .kind = kind, .n = n, .block_samples = s.k, .lanes = s.lanes, .window = s.window};
    CHECK_INT(pen__order_init(&o, &plan, 0, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, message) != NULL);
    CHECK_INT(o.epoch, 77);
    CHECK_INT(pen__order_init(&o, &plan, 0, NULL), PEN_E_INVALID);
}

TEST(refuses_plans_that_make_no_sense)
{
    refuse(4, 10, (Shape){1, 1, 1}, "order 4: expected sequential");
    refuse(-1, 10, (Shape){1, 1, 1}, "order -1: expected sequential");
    refuse(PEN_ORDER_RANDOM, 0, (Shape){0}, "order of 0 samples: expected 1 to");
    refuse(PEN_ORDER_RANDOM, PEN_PERMUTE_MOST + 1, (Shape){0}, "expected 1 to 2^63");
    refuse(PEN_ORDER_BLOCK, 10, (Shape){0, 1, 1}, "0 samples per block");
    refuse(PEN_ORDER_BLOCK, 10, (Shape){1, 0, 1}, "0 lanes");
    refuse(PEN_ORDER_BLOCK, 10, (Shape){1, 1, 0}, "0 blocks per window");
}

/* ---- lanes and windows ----------------------------------------------------------------------- */

enum { K = 32, MOST_WINDOWS = 64 };

/* The sizes of a lane's windows in blocks, seen from outside: a window ends where none of the
 * blocks begun so far is used again. */
static size_t lane_windows(const PenOrder *o, uint32_t lane, uint64_t ret[MOST_WINDOWS])
{
    static uint64_t last[4096];
    uint64_t per_lane = o->lane_blocks * K;
    uint64_t until = 0; /* the farthest use of what is in use */
    uint64_t begin = 0;
    size_t n = 0;
    for (uint64_t q = 0; q < per_lane; q++)
        last[pen__order_at(o, q * o->plan.lanes + lane) / K] = q;
    for (uint64_t q = 0; q < per_lane && n < MOST_WINDOWS; q++) {
        until = PEN_MAX(until, last[pen__order_at(o, q * o->plan.lanes + lane) / K]);
        if (q != until)
            continue;
        ret[n++] = (q + 1 - begin) / K;
        begin = q + 1;
    }
    return n;
}

static void check_windows(uint64_t n_blocks, Shape s)
{
    PenOrder o = block_order(n_blocks * K + 5, 1, 1, s);
    uint64_t w = s.window;
    CHECK_INT(o.lane_blocks, n_blocks / s.lanes);
    for (uint32_t lane = 0; lane < s.lanes; lane++) {
        uint64_t sizes[MOST_WINDOWS];
        uint64_t head = w - lane * w / s.lanes;
        uint64_t sum = 0;
        size_t n = lane_windows(&o, lane, sizes);
        CHECK(n >= 1 && n < MOST_WINDOWS);
        for (size_t i = 0; i < n; i++) {
            uint64_t whole = i ? w : head;
            sum += sizes[i];
            if (i + 1 < n)
                CHECK_INT(sizes[i], whole);
            else
                CHECK(n == 1 || 2 * sizes[i] >= w);
            CHECK(2 * sizes[i] < 2 * whole + w || sizes[i] == whole);
        }
        CHECK_INT(sum, o.lane_blocks);
    }
}

TEST(windows_are_staggered_and_none_is_too_small)
{
    for (uint64_t n = 4; n < 140; n++)
        check_windows(n, (Shape){K, 4, 8});
    CHECK_OK_SO_FAR();
    check_windows(500, (Shape){K, 12, 5});
    CHECK_OK_SO_FAR();
    check_windows(50, (Shape){K, 1, 7});
    CHECK_OK_SO_FAR();
    check_windows(600, (Shape){K, 12, 8});
}

/* Blocks that are in use at a time, the most of any position; and those begun in a stretch of
 * positions, the most of any that is not at the start. */
static void measure_use(const PenOrder *o, uint64_t stretch, uint64_t *ret_live,
                        uint64_t *ret_begun)
{
    static uint64_t left[4096];
    uint64_t live = 0;
    uint64_t begun = 0;
    *ret_live = *ret_begun = 0;
    for (size_t b = 0; b < PEN_LEN(left); b++)
        left[b] = K;
    for (uint64_t p = 0; p < o->plan.n; p++) {
        uint64_t b = pen__order_at(o, p) / K;
        live += left[b] == K;
        begun += left[b] == K;
        live -= --left[b] == 0;
        *ret_live = PEN_MAX(*ret_live, live);
        if (p % stretch != stretch - 1)
            continue;
        if (p > stretch * 8 && p < o->body)
            *ret_begun = PEN_MAX(*ret_begun, begun);
        begun = 0;
    }
}

TEST(few_blocks_are_in_use_and_they_are_needed_evenly)
{
    Shape s = {K, 24, 8};
    uint64_t n_blocks = 24 * 100;
    uint64_t live, begun;
    PenOrder o = block_order(n_blocks * K, 1, 1, s);
    uint64_t in_windows = s.lanes * s.window;
    uint64_t stretch = in_windows * K / 8;
    measure_use(&o, stretch, &live, &begun);
    CHECK(live <= in_windows * 3 / 2);
    CHECK(live > in_windows / 2);
    CHECK(begun <= in_windows / 8 * 2); /* an eighth of a window's time brings about an eighth */
}

/* Positions `apart` from each other that hold samples at the same place in their blocks. */
static uint64_t same_place(const PenOrder *o, uint64_t apart)
{
    uint64_t same = 0;
    for (uint64_t p = 0; p + apart < o->body; p++)
        same += pen__order_at(o, p) % K == pen__order_at(o, p + apart) % K;
    return same;
}

/* Next lane, and next window of the lane. */
TEST(every_window_has_a_mix_of_its_own)
{
    PenOrder o = block_order(1600 * K, 1, 1, (Shape){K, 8, 4});
    uint64_t expected = o.body / K;
    CHECK(same_place(&o, 1) < expected * 11 / 10);
    CHECK(same_place(&o, 8 * 4 * K) < expected * 11 / 10);
    CHECK(same_place(&o, 8 * 4 * K) > expected * 9 / 10);
}

/* All blocks of all lanes, and then what is left over, once each. */
TEST(what_does_not_fit_into_lanes_comes_last)
{
    PenOrder o = block_order(103 * K + 9, 1, 1, (Shape){K, 10, 4});
    static uint32_t in_body[104];
    memset(in_body, 0, sizeof in_body);
    CHECK_INT(o.body, 100 * K);
    for (uint64_t p = 0; p < o.body; p++)
        in_body[pen__order_at(&o, p) / K]++;
    uint64_t whole = 0;
    for (size_t b = 0; b < 103; b++) {
        whole += in_body[b] == K;
        CHECK(in_body[b] == K || in_body[b] == 0);
    }
    CHECK_INT(whole, 100);
    CHECK_INT(in_body[103], 0);
}

TEST(fewer_blocks_than_lanes_are_fully_random)
{
    PenOrder o = block_order(10 * K, 1, 1, (Shape){K, 11, 4});
    CHECK_INT(o.body, 0);
    uint64_t first = 0;
    for (uint64_t p = 0; p < 160; p++)
        first += pen__order_at(&o, p) < 160;
    CHECK(first > 55 && first < 105);
}

/* Which lane is a block in, and where? */
static uint64_t lane_of(const PenOrder *o, uint64_t block)
{
    return pen__order_find(o, block * o->plan.block_samples) % o->plan.lanes;
}

TEST(sticky_lanes_keep_their_blocks)
{
    PenOrder first = order_of(PEN_ORDER_STICKY, 100 * K, 3, 0, (Shape){K, 4, 5});
    uint64_t moved = 0, other = 0;
    for (uint64_t epoch = 1; epoch < 6; epoch++) {
        PenOrder o = order_of(PEN_ORDER_STICKY, 100 * K, 3, epoch, (Shape){K, 4, 5});
        PenOrder free = order_of(PEN_ORDER_BLOCK, 100 * K, 3, epoch, (Shape){K, 4, 5});
        for (uint64_t b = 0; b < 100; b++) {
            CHECK_INT(lane_of(&o, b), lane_of(&first, b));
            other += lane_of(&free, b) != lane_of(&first, b);
            moved += pen__order_find(&o, b * K) != pen__order_find(&first, b * K);
        }
    }
    CHECK(moved > 480 && other > 300);
}

/* ---- lanes from memory ----------------------------------------------------------------------- */

#define MIB (UINT64_C(1) << 20)

static void choose(uint64_t bytes, uint64_t block_bytes, uint64_t n_blocks, uint32_t lanes,
                   uint32_t window)
{
    uint32_t c = 0;
    uint32_t w = 0;
    pen__order_choose(bytes, block_bytes, n_blocks, 1, &c, &w);
    CHECK_INT(c, lanes);
    CHECK_INT(w, window);
}

TEST(lanes_follow_from_memory)
{
    static const struct {
        uint64_t bytes, block_bytes, n_blocks;
        uint32_t lanes, window;
    } cases[] = {
        {2048 * MIB, 4 * MIB, 100000, 24, 10},
        {1024 * MIB, 1 * MIB, 100000, 48, 10},
        {65536 * MIB, 4 * MIB, 1000000, 768, 10},
        {96 * MIB, 1 * MIB, 100000, 6, 8},
        {95 * MIB, 1 * MIB, 100000, 4, 11},
        {16 * MIB, 1 * MIB, 100000, 1, 8},
        {8 * MIB, 1 * MIB, 100000, 1, 4},
        {MIB, 8 * MIB, 100000, 1, 1},
        {0, 0, 0, 1, 1},
        {UINT64_MAX, 1, UINT64_MAX, 786432, 16},
        {2048 * MIB, 4 * MIB, 256, 384, 1}, /* all fit: more lanes than blocks */
        {2048 * MIB, 4 * MIB, 3, 4, 16},
        {2048 * MIB, 4 * MIB, 257, 24, 10},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        choose(cases[i].bytes, cases[i].block_bytes, cases[i].n_blocks, cases[i].lanes,
               cases[i].window);
        CHECK_OK_SO_FAR();
    }
}

TEST(lanes_are_a_multiple_of_the_ranks)
{
    static const struct {
        uint32_t world, lanes;
    } cases[] = {{1, 24}, {2, 24}, {3, 24}, {5, 25}, {8, 24}, {16, 32}, {64, 64}, {8000, 8000}};
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        uint32_t c, w;
        pen__order_choose(2048 * MIB, 4 * MIB, 100000, cases[i].world, &c, &w);
        CHECK_INT(c, cases[i].lanes);
        CHECK_INT(w, 10);
        pen__order_choose(2048 * MIB, 4 * MIB, 200, cases[i].world, &c, &w);
        CHECK_INT(c, 384); /* all fit: every rank keeps all */
    }
}

TEST(chosen_lanes_fit_into_memory)
{
    PenRng rng = pen__rng_init(8, 8);
    for (int i = 0; i < 20000; i++) {
        uint64_t bytes = pen__rng_next(&rng) >> pen__rng_below(&rng, 64);
        uint64_t block_bytes = 1 + (pen__rng_next(&rng) >> (20 + pen__rng_below(&rng, 44)));
        uint64_t n_blocks = pen__rng_next(&rng) >> pen__rng_below(&rng, 64);
        uint64_t fit = bytes / block_bytes;
        uint32_t c, w;
        pen__order_choose(bytes, block_bytes, n_blocks, 1, &c, &w);
        CHECK(c >= 1 && w >= 1 && w <= 16);
        if (c > n_blocks)
            CHECK(n_blocks <= fit / 2);
        else
            CHECK((c == 1 && w == 1) || 2ull * c * w <= fit);
        CHECK(c <= 4 || c % 6 == 0);
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

/* The samples of global batch g in the order of their positions, from all ranks; with those that
 * only fill up counted. */
static uint64_t global_batch(const PenOrder *o, PenSplit s, uint64_t g, uint64_t *ret)
{
    uint64_t padding = 0;
    for (s.rank = 0; s.rank < s.world; s.rank++)
        for (uint32_t i = 0; i < s.batch; i++) {
            bool valid;
            uint64_t p = pen__split_position(&s, g, i, &valid);
            ret[(uint64_t)i * s.world + s.rank] = pen__order_at(o, p);
            padding += !valid;
        }
    return padding;
}

enum { GLOBAL = 48 };

static void check_worlds(const PenOrder *o, uint64_t start, bool drop_last)
{
    static const uint32_t worlds[] = {2, 3, 4, 6, 12};
    PenSplit one = {
        .n = o->plan.n, .start = start, .batch = GLOBAL, .world = 1, .drop_last = drop_last};
    uint64_t steps = pen__split_steps(&one);
    for (size_t k = 0; k < PEN_LEN(worlds); k++) {
        PenSplit many = one;
        many.world = worlds[k];
        many.batch = GLOBAL / worlds[k];
        for (many.rank = 0; many.rank < many.world; many.rank++)
            CHECK_INT(pen__split_steps(&many), steps);
        for (uint64_t g = 0; g < steps; g++) {
            uint64_t a[GLOBAL], b[GLOBAL];
            CHECK_INT(global_batch(o, many, g, a), global_batch(o, one, g, b));
            CHECK_MEM(a, b, sizeof a);
        }
    }
}

TEST(global_batches_are_the_same_for_any_number_of_ranks)
{
    for (int32_t kind = PEN_ORDER_SEQUENTIAL; kind <= PEN_ORDER_STICKY; kind++) {
        PenOrder o = order_of(kind, 1003, 1, 2, (Shape){8, 12, 4});
        check_worlds(&o, 0, true);
        CHECK_OK_SO_FAR();
        check_worlds(&o, 0, false);
        CHECK_OK_SO_FAR();
        check_worlds(&o, 331, false);
        CHECK_OK_SO_FAR();
    }
}

/* The numbers of the samples count as positions do: none twice, none left out but at the end. */
static void check_pass(uint64_t n, uint64_t start, uint32_t batch, uint32_t world)
{
    static uint32_t seen[600];
    PenSplit s = {.n = n, .start = start, .batch = batch, .world = world};
    uint64_t steps = pen__split_steps(&s);
    uint64_t global = (uint64_t)batch * world;
    uint64_t padding = 0;
    memset(seen, 0, sizeof seen);
    for (s.rank = 0; s.rank < world; s.rank++)
        for (uint64_t g = 0; g < steps; g++)
            for (uint32_t i = 0; i < batch; i++) {
                bool valid;
                uint64_t linear = start + g * global + (uint64_t)i * world + s.rank;
                uint64_t p = pen__split_position(&s, g, i, &valid);
                CHECK_INT(valid, linear < n);
                CHECK_INT(p, linear % n);
                seen[p] += valid;
                padding += !valid;
            }
    for (uint64_t p = 0; p < n; p++)
        CHECK_INT(seen[p], p >= start);
    CHECK_INT(padding, steps * global - (n - start));
    CHECK(padding < global);
    s.drop_last = true;
    CHECK_INT(pen__split_steps(&s), (n - start) / global);
}

TEST(a_pass_has_every_position_once_and_counts_what_fills_up)
{
    static const uint32_t worlds[] = {1, 2, 3, 5, 8};
    static const uint32_t batches[] = {1, 2, 7, 64, 700};
    static const uint64_t sizes[] = {1, 2, 64, 193, 600};
    for (size_t w = 0; w < PEN_LEN(worlds); w++)
        for (size_t b = 0; b < PEN_LEN(batches); b++)
            for (size_t i = 0; i < PEN_LEN(sizes); i++)
                for (uint64_t start = 0; start <= sizes[i]; start += 1 + sizes[i] / 5) {
                    check_pass(sizes[i], start, batches[b], worlds[w]);
                    CHECK_OK_SO_FAR();
                }
}

TEST(a_pass_that_is_over_has_no_batches)
{
    PenSplit s = {.n = 100, .start = 100, .batch = 8, .world = 2};
    CHECK_INT(pen__split_steps(&s), 0);
    s.start = 1000;
    CHECK_INT(pen__split_steps(&s), 0);
    s.drop_last = true;
    CHECK_INT(pen__split_steps(&s), 0);
}

TEST(the_largest_batches_do_not_overflow)
{
    bool valid = true;
    PenSplit s = {.n = PEN_PERMUTE_MOST,
                  .start = 5,
                  .batch = UINT32_MAX,
                  .rank = UINT32_MAX - 1,
                  .world = UINT32_MAX};
    CHECK_INT(pen__split_steps(&s), 1);
    CHECK_INT(pen__split_position(&s, 0, 0, &valid), 5 + UINT64_C(0xfffffffe));
    CHECK_INT(valid, 1);
    /* UINT32_MAX^2 - 1 of the pass; 2^63 - 5 are left, so it is this far behind the end. */
    uint64_t over = UINT64_C(0xfffffffe00000000) - (PEN_PERMUTE_MOST - 5);
    CHECK_INT(pen__split_position(&s, 0, UINT32_MAX - 1, &valid), over % PEN_PERMUTE_MOST);
    CHECK_INT(valid, 0);
    s.drop_last = true;
    CHECK_INT(pen__split_steps(&s), 0);
    s = (PenSplit){
        .n = PEN_PERMUTE_MOST, .start = PEN_PERMUTE_MOST - 3, .batch = 2, .rank = 1, .world = 2};
    CHECK_INT(pen__split_position(&s, 0, 1, &valid), 0);
    CHECK_INT(valid, 0);
    CHECK_INT(pen__split_position(&s, 0, 0, &valid), PEN_PERMUTE_MOST - 2);
    CHECK_INT(valid, 1);
}

/* Which rank uses each block of the body: one only. */
static void check_own_lanes(uint32_t world, uint64_t start, uint64_t expected_shared)
{
    static uint32_t user[4096];
    uint64_t shared = 0;
    PenOrder o = block_order(1200 * K, 4, 4, (Shape){K, 12, 4});
    PenSplit s = {.n = o.plan.n, .start = start, .batch = 16, .world = world, .drop_last = true};
    memset(user, 0, sizeof user);
    for (s.rank = 0; s.rank < world; s.rank++)
        for (uint64_t g = 0; g < pen__split_steps(&s); g++)
            for (uint32_t i = 0; i < s.batch; i++) {
                bool valid;
                uint64_t b = pen__order_at(&o, pen__split_position(&s, g, i, &valid)) / K;
                shared += user[b] != 0 && user[b] != s.rank + 1;
                user[b] = s.rank + 1;
            }
    CHECK(expected_shared ? shared > expected_shared : shared == 0);
}

TEST(ranks_keep_to_their_own_lanes_when_they_divide_them)
{
    static const uint32_t worlds[] = {1, 2, 3, 4, 6, 12};
    for (size_t i = 0; i < PEN_LEN(worlds); i++) {
        check_own_lanes(worlds[i], 0, 0);
        check_own_lanes(worlds[i], 7777, 0);
        CHECK_OK_SO_FAR();
    }
    check_own_lanes(5, 0, 1000); /* else the test sees nothing */
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(sequential_is_the_identity);
    RUN(random_is_whole);
    RUN(block_is_whole);
    RUN(the_largest_sizes_hold);
    RUN(stays_the_same_for_ever);
    RUN(every_seed_and_epoch_has_an_order_of_its_own);
    RUN(refuses_plans_that_make_no_sense);
    RUN(windows_are_staggered_and_none_is_too_small);
    RUN(few_blocks_are_in_use_and_they_are_needed_evenly);
    RUN(every_window_has_a_mix_of_its_own);
    RUN(what_does_not_fit_into_lanes_comes_last);
    RUN(fewer_blocks_than_lanes_are_fully_random);
    RUN(sticky_lanes_keep_their_blocks);
    RUN(lanes_follow_from_memory);
    RUN(lanes_are_a_multiple_of_the_ranks);
    RUN(chosen_lanes_fit_into_memory);
    RUN(global_batches_are_the_same_for_any_number_of_ranks);
    RUN(a_pass_has_every_position_once_and_counts_what_fills_up);
    RUN(a_pass_that_is_over_has_no_batches);
    RUN(the_largest_batches_do_not_overflow);
    RUN(ranks_keep_to_their_own_lanes_when_they_divide_them);
    return TEST_END();
}
