/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/order.h"

#include "lib/order_help.h"
#include "test.h"

/* ---- every sample once ----------------------------------------------------------------------- */

enum { MOST = 8192 };
static uint8_t seen[MOST];

static void check_whole(int32_t kind, uint64_t n, Shape s)
{
    PenOrder o = order_of(kind, n, 5, n, s);
    CHECK(n <= MOST && order_is_whole(&o, seen));
}

static void check_all_whole(uint64_t n, Shape s)
{
    check_whole(PEN_ORDER_SHUFFLE, n, s);
    check_whole(PEN_ORDER_STICKY, n, s);
}

TEST(sequential_is_the_identity)
{
    PenOrder o = order_of(PEN_ORDER_SEQUENTIAL, 1000, 3, 4, (Shape){0});
    for (uint64_t p = 0; p < 1000; p++)
        CHECK_INT(pen__order_at(&o, p), p);
}

TEST(orders_of_every_small_size_are_whole)
{
    for (uint64_t n = 1; n <= 2000; n += n < 250 ? 1 : 61) {
        check_whole(PEN_ORDER_RANDOM, n, (Shape){0});
        for (size_t i = 0; i < PEN_LEN(shapes); i++)
            check_all_whole(n, shapes[i]);
        CHECK_OK_SO_FAR();
    }
}

/* Where a block or a row of blocks of all streams is full, just not, or just begun. */
TEST(orders_at_the_edges_of_blocks_are_whole)
{
    for (size_t i = 0; i < PEN_LEN(shapes); i++) {
        uint64_t k = shapes[i].k, row = k * shapes[i].streams;
        for (uint64_t rows = 0; rows <= 4; rows++)
            for (uint64_t blocks = 0; blocks <= shapes[i].streams; blocks += 1 + blocks / 2) {
                uint64_t n = rows * row + blocks * k;
                if (n < 2 || n > MOST - 2)
                    continue;
                check_all_whole(n - 1, shapes[i]);
                check_all_whole(n, shapes[i]);
                check_all_whole(n + 1, shapes[i]);
                CHECK_OK_SO_FAR();
            }
    }
}

/* Any position by itself: time does not depend on n, or this would not end. */
TEST(the_largest_sizes_hold)
{
    static const Shape large[] = {{1, 6},
                                  {1, PEN_STREAMS_MOST},
                                  {32, 3072},
                                  {7, 12},
                                  {UINT64_C(1) << 31, PEN_STREAMS_MOST},
                                  {UINT64_C(1) << 31, 6}};
    static const uint64_t n[] = {PEN_PERMUTE_MOST, PEN_PERMUTE_MOST - 1, UINT64_C(1000000000000)};
    PenRng rng = pen__rng_init(3, 3);
    for (size_t i = 0; i < PEN_LEN(n); i++) {
        PenOrder o = random_order(n[i], 1, UINT64_MAX);
        CHECK(order_is_injective(&o, 500, &rng));
        for (size_t k = 0; k < PEN_LEN(large); k++)
            for (int32_t kind = PEN_ORDER_SHUFFLE; kind <= PEN_ORDER_STICKY; kind++) {
                o = order_of(kind, n[i], UINT64_MAX, 2, large[k]);
                CHECK(order_is_injective(&o, 500, &rng));
                CHECK(pen__order_at(&o, 0) < n[i] && pen__order_at(&o, n[i] - 1) < n[i]);
                if (o.streams)
                    CHECK(pen__order_at(&o, o.body - 1) < n[i]);
            }
    }
}

/* A position does not depend on those that were computed before it. */
TEST(positions_come_in_any_order)
{
    PenRng rng = pen__rng_init(4, 4);
    for (int32_t kind = PEN_ORDER_SEQUENTIAL; kind <= PEN_ORDER_STICKY; kind++) {
        static uint64_t samples[3003];
        PenOrder o = order_of(kind, PEN_LEN(samples), 8, 9, (Shape){16, 12});
        for (uint64_t p = 0; p < PEN_LEN(samples); p++)
            samples[p] = pen__order_at(&o, p);
        PenOrder again = order_of(kind, PEN_LEN(samples), 8, 9, (Shape){16, 12});
        for (int i = 0; i < 5000; i++) {
            uint64_t p = pen__rng_below(&rng, PEN_LEN(samples));
            CHECK_INT(pen__order_at(&again, p), samples[p]);
        }
    }
}

/* ---- the same everywhere, and other each time ------------------------------------------------ */

typedef struct Golden {
    int32_t kind;
    uint64_t n, seed, epoch;
    Shape shape;
    uint64_t hash; /* of all samples, of the first 20,000 */
    uint64_t first[16];
} Golden;

static const Golden golden[] = {
    {PEN_ORDER_SEQUENTIAL,
     1003,
     1,
     2,
     {0, 0},
     UINT64_C(0x4dfd1e25a03e3895),
     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    {PEN_ORDER_RANDOM, 1, 7, 7, {0, 0}, UINT64_C(0x0000000000000000), {0}},
    {PEN_ORDER_RANDOM,
     63,
     1,
     2,
     {0, 0},
     UINT64_C(0x4f2dbfd759fbc7db),
     {7, 26, 15, 38, 19, 50, 20, 2, 44, 24, 6, 61, 32, 39, 62, 14}},
    {PEN_ORDER_RANDOM,
     1003,
     1,
     2,
     {0, 0},
     UINT64_C(0xe31d60866acf3955),
     {343, 408, 736, 25, 886, 776, 496, 994, 751, 874, 556, 716, 817, 382, 677, 508}},
    {PEN_ORDER_RANDOM,
     UINT64_C(1000000000000),
     42,
     0,
     {0, 0},
     UINT64_C(0xbcd519659b98683f),
     {UINT64_C(755359957679), UINT64_C(126197680795), UINT64_C(968933247893),
      UINT64_C(108853622301), UINT64_C(845752265918), UINT64_C(142481358953),
      UINT64_C(302213039988), UINT64_C(279197834969), UINT64_C(929011042997),
      UINT64_C(743055617295), UINT64_C(473837590173), UINT64_C(39164681785), UINT64_C(839607529999),
      UINT64_C(669540884025), UINT64_C(952796669293), UINT64_C(525876902697)}},
    {PEN_ORDER_SHUFFLE,
     100,
     1,
     2,
     {32, 6},
     UINT64_C(0x625fcbaf78438e4c),
     {8, 33, 66, 89, 18, 57, 50, 41, 69, 67, 84, 76, 31, 56, 60, 43}},
    {PEN_ORDER_SHUFFLE,
     1003,
     1,
     2,
     {8, 12},
     UINT64_C(0xd8b9b98a141da963),
     {140, 576, 625, 75, 964, 309, 327, 583, 631, 76, 967, 311, 141, 890, 624, 74}},
    {PEN_ORDER_SHUFFLE,
     1003,
     1,
     3,
     {8, 12},
     UINT64_C(0xd94861feff372d63),
     {76, 928, 616, 883, 896, 325, 344, 935, 623, 884, 901, 327, 77, 924, 617, 882}},
    {PEN_ORDER_SHUFFLE,
     1003,
     2,
     2,
     {8, 12},
     UINT64_C(0x21d601dfb013a0e3),
     {594, 240, 553, 360, 564, 389, 96, 241, 554, 364, 567, 391, 595, 682, 552, 361}},
    {PEN_ORDER_SHUFFLE,
     5000,
     UINT64_C(18446744073709551615),
     UINT64_C(9223372036854775807),
     {33, 6},
     UINT64_C(0x399a8b3442b74d66),
     {2014, 4785, 4146, 1617, 4796, 4157, 2013, 4786, 4145, 1618, 4797, 4156, 2016, 4787, 4144,
      1619}},
    {PEN_ORDER_SHUFFLE,
     100000,
     42,
     0,
     {32, 96},
     UINT64_C(0xa38d8edebb3e6fe9),
     {91997, 81097, 69472, 98944, 73857, 53568, 27328, 39907, 64868, 20389, 84512, 59558, 56551,
      42112, 92512, 65225}},
    {PEN_ORDER_SHUFFLE,
     2000000,
     42,
     5,
     {100, 192},
     UINT64_C(0xec50c45ce0727bab),
     {1994287, 627400, 1900900, 1028400, 577203, 29104, 753305, 559600, 295007, 1264600, 1941300,
      1047400, 868700, 1523200, 1430713, 969900}},
    {PEN_ORDER_SHUFFLE, 7, 3, 4, {1, 6}, UINT64_C(0x000000003a0712fd), {1, 3, 0, 5, 2, 4, 6}},
    {PEN_ORDER_STICKY,
     1003,
     1,
     2,
     {8, 12},
     UINT64_C(0xf51668f2e72a7f23),
     {609, 832, 40, 496, 564, 965, 808, 839, 47, 500, 567, 967, 608, 470, 41, 497}},
    {PEN_ORDER_STICKY,
     1003,
     1,
     3,
     {8, 12},
     UINT64_C(0x6e361a7f47a4fb23),
     {395, 600, 265, 955, 864, 773, 615, 601, 271, 959, 871, 774, 394, 537, 264, 954}},
    {PEN_ORDER_STICKY,
     1003,
     2,
     2,
     {8, 12},
     UINT64_C(0x94e61171cac7d6c3),
     {941, 632, 608, 568, 756, 693, 96, 633, 610, 572, 759, 695, 940, 716, 609, 569}},
    {PEN_ORDER_STICKY,
     700,
     5,
     6,
     {100, 96},
     UINT64_C(0x88f278f87e573d0a),
     {399, 132, 265, 500, 133, 266, 398, 131, 264, 501, 134, 267, 397, 130, 263, 502}},
    {PEN_ORDER_STICKY,
     599,
     5,
     6,
     {100, 96},
     UINT64_C(0x603c536064710e87),
     {45, 493, 518, 385, 465, 417, 225, 306, 364, 70, 290, 431, 408, 587, 409, 354}},
    {PEN_ORDER_STICKY,
     100000,
     42,
     0,
     {7, 48},
     UINT64_C(0x3f5e2c324de6d006),
     {21851, 55953, 58700, 53634, 17710, 8610, 30492, 98700, 98035, 11565, 81557, 891, 17747, 5336,
      84703, 82736}},
    {PEN_ORDER_STICKY,
     UINT64_C(1000000000000),
     42,
     9,
     {64, 3072},
     UINT64_C(0x2c7b6bee94245ec5),
     {UINT64_C(770635619868), 1758738014, UINT64_C(79161799918), UINT64_C(666171269802),
      UINT64_C(726323976236), UINT64_C(706875487090), UINT64_C(348386279998),
      UINT64_C(385897739040), UINT64_C(138934641682), UINT64_C(882988312922),
      UINT64_C(548694274186), UINT64_C(248034239605), UINT64_C(69364270114), UINT64_C(293293142752),
      UINT64_C(793589427189), UINT64_C(425845588702)}},
};

/* Runs are resumed by later releases, so these never change. The values come from another program,
 * which was written after the description in order.c and makes lists of entire streams. */
TEST(orders_are_those_of_the_table)
{
    for (size_t i = 0; i < PEN_LEN(golden); i++) {
        const Golden *g = &golden[i];
        PenOrder o = order_of(g->kind, g->n, g->seed, g->epoch, g->shape);
        uint64_t hash = 0;
        for (uint64_t p = 0; p < PEN_MIN(g->n, 20000u); p++) {
            uint64_t sample = pen__order_at(&o, p);
            hash = hash * 31 + sample;
            if (p < 16)
                CHECK_INT(sample, g->first[p]);
        }
        CHECK_INT(hash, g->hash);
    }
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
    for (int32_t kind = PEN_ORDER_RANDOM; kind <= PEN_ORDER_STICKY; kind++)
        for (size_t i = 0; i < PEN_LEN(pairs); i++)
            for (size_t k = 0; k < i; k++) {
                Shape s = {10, 12};
                PenOrder a = order_of(kind, 5000, pairs[i][0], pairs[i][1], s);
                PenOrder b = order_of(kind, 5000, pairs[k][0], pairs[k][1], s);
                CHECK(equal_places(&a, &b) < (kind == PEN_ORDER_STICKY ? 150 : 30));
            }
}

/* The blocks of a small pack are not enough for all streams: every sample may be anywhere. */
TEST(a_pack_that_fits_into_the_buffer_is_mixed_at_once)
{
    for (size_t i = 0; i < PEN_LEN(shapes); i++) {
        uint64_t buffer = shapes[i].k * shapes[i].streams;
        PenOrder at_once = random_order(buffer, 7, 3), o = shuffle_order(buffer, 7, 3, shapes[i]);
        CHECK_INT(equal_places(&o, &at_once), buffer);
        o = order_of(PEN_ORDER_STICKY, 6 * shapes[i].k - 1, 7, 3, shapes[i]);
        at_once = random_order(o.plan.n, 7, 3);
        CHECK_INT(equal_places(&o, &at_once), o.plan.n);
        o = shuffle_order(buffer + 1, 7, 3, shapes[i]);
        CHECK_INT(o.streams, shapes[i].streams);
    }
}

/* Blocks of a rank stay with it only where there are streams. */
TEST(sticky_has_fewer_streams_in_a_small_pack)
{
    PenOrderPlan plan = {PEN_ORDER_STICKY, 1, 0, 10, 96};
    static const uint32_t expected[][2] = {{5, 0},   {6, 6},   {11, 6},  {12, 12},  {47, 24},
                                           {48, 48}, {95, 48}, {96, 96}, {1000, 96}};
    for (size_t i = 0; i < PEN_LEN(expected); i++)
        for (uint64_t more = 0; more < 10; more += 9) {
            plan.n = expected[i][0] * 10 + more;
            CHECK_INT(pen__order_streams(&plan), expected[i][1]);
        }
    plan.kind = PEN_ORDER_SHUFFLE;
    plan.n = 960;
    CHECK_INT(pen__order_streams(&plan), 0);
    plan.n = 961;
    CHECK_INT(pen__order_streams(&plan), 96);
    plan.kind = PEN_ORDER_RANDOM;
    CHECK_INT(pen__order_streams(&plan), 0);
}

static void refuse(int32_t kind, uint64_t n, Shape s, const char *message)
{
    PenError err = {0};
    PenOrder o = {.epoch = 77};
    PenOrderPlan plan = {.kind = kind, .n = n, .block_samples = s.k, .streams = s.streams};
    CHECK_INT(pen__order_init(&o, &plan, 0, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, message) != NULL);
    CHECK_INT(o.epoch, 77);
    CHECK_INT(pen__order_init(&o, &plan, 0, NULL), PEN_E_INVALID);
}

TEST(refuses_plans_that_make_no_sense)
{
    refuse(4, 10, (Shape){1, 6}, "order 4: expected sequential");
    refuse(-1, 10, (Shape){1, 6}, "order -1: expected sequential");
    refuse(PEN_ORDER_RANDOM, 0, (Shape){0}, "order of 0 samples: expected 1 to");
    refuse(PEN_ORDER_RANDOM, PEN_PERMUTE_MOST + 1, (Shape){0}, "expected 1 to 2^63");
    refuse(PEN_ORDER_SHUFFLE, 10, (Shape){0, 6}, "6 streams of blocks with 0 samples");
    refuse(PEN_ORDER_SHUFFLE, 10, (Shape){1, 3}, "order of 3 streams");
    refuse(PEN_ORDER_SHUFFLE, 10, (Shape){1, 0}, "order of 0 streams");
    refuse(PEN_ORDER_SHUFFLE, 10, (Shape){1, 8}, "expected 3 * 2^k streams");
    refuse(PEN_ORDER_STICKY, 10, (Shape){1, 18}, "expected 3 * 2^k streams");
}

/* ---- streams --------------------------------------------------------------------------------- */

TEST(streams_hold_the_buffer)
{
    static const uint64_t cases[][3] = {
        {1, 32, 6},      {192, 32, 6}, {193, 32, 12}, {384, 32, 12},  {3072, 32, 96},
        {3073, 32, 192}, {6, 1, 6},    {7, 1, 12},    {100, 1000, 6}, {1000000, 1, 3u << 19}};
    for (size_t i = 0; i < PEN_LEN(cases); i++)
        CHECK_INT(pen__streams_for(cases[i][0], cases[i][1]), cases[i][2]);
    CHECK_INT(pen__streams_for(UINT64_MAX, 1), PEN_STREAMS_MOST);
}

/* Every lane once; both streams of a pair belong to the same rank, whose streams are next to each
 * other where the ranks are 3 * 2^j. */
TEST(lanes_keep_pairs_and_ranks_together)
{
    for (uint32_t g = PEN_STREAMS_LEAST; g <= 3072; g *= 2) {
        static uint32_t stream[3072];
        memset(stream, 0xff, sizeof stream);
        for (uint32_t p = 0; p < g; p++) {
            uint32_t lane = pen__stream_lane(g, UINT64_C(1000) * g + p);
            CHECK(lane < g && stream[lane] == UINT32_MAX);
            stream[lane] = p;
        }
        for (uint32_t world = 1; world <= g / 2; world++)
            for (uint32_t lane = 0; lane < g && g / 2 % world == 0; lane++) {
                CHECK_INT(stream[lane] % world, stream[lane ^ 1] % world);
                if (world % 3 == 0 && lane % (g / world))
                    CHECK_INT(stream[lane] % world, stream[lane - 1] % world);
            }
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

typedef struct Use {
    uint64_t first, last, n; /* positions */
} Use;

static Use uses[MOST];

/* Where the samples of each block are; returns how many blocks are in use at most at a time. */
static uint64_t find_uses(const PenOrder *o)
{
    uint64_t live = 0, most = 0, k = o->plan.block_samples;
    memset(uses, 0, sizeof uses);
    for (uint64_t p = 0; p < o->plan.n; p++) {
        uint64_t block = pen__order_at(o, p) / k;
        Use *u = &uses[block];
        if (!u->n++)
            u->first = p;
        u->last = p;
        live += u->n == 1;
        most = PEN_MAX(most, live);
        live -= u->n == PEN_MIN(k, o->plan.n - block * k);
    }
    return most;
}

TEST(as_many_blocks_are_in_use_as_there_are_streams)
{
    for (size_t i = 0; i < PEN_LEN(shapes); i++)
        for (int32_t kind = PEN_ORDER_SHUFFLE; kind <= PEN_ORDER_STICKY; kind++) {
            uint64_t k = shapes[i].k, row = k * shapes[i].streams;
            PenOrder o = order_of(kind, 9 * row + 4 * k + k / 2, 1, i, shapes[i]);
            uint64_t most = find_uses(&o);
            CHECK(most <= shapes[i].streams);
            CHECK(k < 7 || most >= shapes[i].streams * 2 / 3);
            for (uint64_t b = 0; b * k < o.plan.n; b++)
                CHECK(uses[b].last - uses[b].first < row);
        }
}

/* An eighth of a block's time brings about an eighth of the blocks. */
TEST(blocks_are_needed_evenly)
{
    Shape s = {64, 96};
    PenOrder o = shuffle_order(80 * s.streams * s.k, 1, 1, s);
    uint64_t stretch = s.streams * s.k / 8, begun[80 * 8] = {0};
    CHECK(80 * s.streams <= MOST);
    (void)find_uses(&o);
    for (uint64_t b = 0; b < 80 * s.streams; b++)
        begun[uses[b].first / stretch]++;
    for (size_t i = 8; i < 8 * 79; i++)
        CHECK(begun[i] >= s.streams / 8 / 2 && begun[i] <= s.streams / 8 * 2);
}

/* Is the first part of the time one half of the block, and the same of both halves? */
static bool is_halved(const uint64_t *samples, uint64_t first, uint64_t n)
{
    if (n == 1)
        return samples[0] == first;
    uint64_t half = n / 2;
    bool swap = samples[0] >= first + half;
    return swap ? is_halved(samples, first + half, n - half) &&
                      is_halved(samples + n - half, first, half)
                : is_halved(samples, first, half) &&
                      is_halved(samples + half, first + half, n - half);
}

/* All that a stream delivers of one block, in order, if it delivers the entire block. */
static bool list_block(const PenOrder *o, uint64_t block, uint64_t *ret)
{
    uint64_t k = o->plan.block_samples, at = uses[block].first;
    if (uses[block].last - at != (k - 1) * o->streams || uses[block].last >= o->body)
        return false;
    for (uint64_t i = 0; i < k; i++)
        ret[i] = pen__order_at(o, at + i * o->streams);
    return ret[k - 1] / k == block;
}

/* So of a power of two, any part of the time that begins at a multiple of its length is one piece
 * of the block. */
TEST(each_half_of_a_blocks_time_is_half_of_the_block)
{
    for (size_t i = 0; i < PEN_LEN(shapes); i++)
        for (int32_t kind = PEN_ORDER_SHUFFLE; kind <= PEN_ORDER_STICKY; kind++) {
            uint64_t k = shapes[i].k, rows = 8, entire = 0, in_order = 0, samples[100];
            PenOrder o = order_of(kind, rows * k * shapes[i].streams, 2, i, shapes[i]);
            (void)find_uses(&o);
            for (uint64_t b = 0; b < rows * shapes[i].streams; b++) {
                if (!list_block(&o, b, samples))
                    continue;
                CHECK(is_halved(samples, b * k, k));
                entire++;
                in_order += samples[0] == b * k && samples[k - 1] == b * k + k - 1;
            }
            CHECK(entire >= (rows - 1) * shapes[i].streams);
            CHECK(k < 3 || in_order < entire * 2 / 3);
        }
}

/* Of one pair of streams, the samples of a block that both deliver are two pieces, at the same
 * time, one for each. */
TEST(streams_of_a_pair_share_their_first_and_last_block)
{
    PenOrder o = shuffle_order(8 * 24 * 32, 2, 3, (Shape){32, 24});
    uint64_t shared = 0;
    (void)find_uses(&o);
    for (uint64_t p = 0; p < o.plan.n; p++) {
        const Use *u = &uses[pen__order_at(&o, p) / 32];
        uint64_t lane = pen__stream_lane(24, p), other = pen__stream_lane(24, u->first);
        CHECK_INT(lane / 2, other / 2);
        shared += lane != other;
        CHECK(lane == other || p / 24 < 32 || p / 24 >= 7 * 32);
    }
    CHECK(shared > 12 * 32 / 2);
}

/* ---- sticky ---------------------------------------------------------------------------------- */

/* The rank of each block, if all of it is delivered by streams; else 0. */
static void ranks_of(const PenOrder *o, uint32_t world, uint32_t *ret)
{
    uint64_t k = o->plan.block_samples;
    memset(ret, 0, MOST * sizeof *ret);
    for (uint64_t p = 0; p < o->body; p++) {
        uint32_t *rank = &ret[pen__order_at(o, p) / k];
        CHECK(!*rank || *rank == p % world + 1);
        *rank = (uint32_t)(p % world) + 1;
    }
}

static void check_sticky(uint64_t n, uint32_t world, Shape s)
{
    static uint32_t first[MOST], now[MOST];
    uint64_t moved = 0, other = 0, n_blocks = n / s.k;
    PenOrder o = order_of(PEN_ORDER_STICKY, n, 3, 0, s);
    ranks_of(&o, world, first);
    CHECK_OK_SO_FAR();
    uint64_t before = uses[0].first;
    for (uint64_t epoch = 1; epoch < 6; epoch++) {
        o = order_of(PEN_ORDER_STICKY, n, 3, epoch, s);
        ranks_of(&o, world, now);
        CHECK_OK_SO_FAR();
        CHECK_MEM(now, first, sizeof now);
        (void)find_uses(&o);
        moved += uses[0].first != before;
        before = uses[0].first;
        o = order_of(PEN_ORDER_SHUFFLE, n, 3, epoch, s);
        ranks_of(&o, world, now);
        for (uint64_t b = 0; b < n_blocks; b++)
            other += now[b] != first[b];
    }
    CHECK(moved >= 4);
    CHECK(world == 1 || other > n_blocks); /* else the test sees nothing */
}

TEST(sticky_ranks_keep_their_blocks)
{
    static const uint32_t worlds[] = {1, 2, 3, 4, 6, 12};
    for (size_t i = 0; i < PEN_LEN(worlds); i++) {
        check_sticky(200 * 16 + 5, worlds[i], (Shape){16, 24});
        check_sticky(216 * 7, worlds[i], (Shape){7, 24});
        CHECK_OK_SO_FAR();
    }
}

TEST(the_default_buffer_takes_any_statistics)
{
    CHECK_INT(pen__order_buffer(110000ull * 1000, 1000), (1 << 30) / 110001);
    CHECK_INT(pen__order_buffer(UINT64_MAX, 1), 3072);
    CHECK_INT(pen__order_buffer(0, 0), 1 << 30);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(sequential_is_the_identity);
    RUN(orders_of_every_small_size_are_whole);
    RUN(orders_at_the_edges_of_blocks_are_whole);
    RUN(the_largest_sizes_hold);
    RUN(positions_come_in_any_order);
    RUN(orders_are_those_of_the_table);
    RUN(every_seed_and_epoch_has_an_order_of_its_own);
    RUN(a_pack_that_fits_into_the_buffer_is_mixed_at_once);
    RUN(sticky_has_fewer_streams_in_a_small_pack);
    RUN(refuses_plans_that_make_no_sense);
    RUN(streams_hold_the_buffer);
    RUN(lanes_keep_pairs_and_ranks_together);
    RUN(as_many_blocks_are_in_use_as_there_are_streams);
    RUN(blocks_are_needed_evenly);
    RUN(each_half_of_a_blocks_time_is_half_of_the_block);
    RUN(streams_of_a_pair_share_their_first_and_last_block);
    RUN(sticky_ranks_keep_their_blocks);
    RUN(the_default_buffer_takes_any_statistics);
    return TEST_END();
}
