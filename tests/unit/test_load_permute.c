/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/permute.h"

#include "lib/order_help.h"
#include "load/epoch/purpose.h"
#include "test.h"

static PenPermutation make(uint64_t n, uint64_t key)
{
    PenPermutation p;
    pen__permute_init(&p, n, key);
    return p;
}

TEST(is_a_permutation_for_every_small_n)
{
    static uint8_t seen[2000];
    for (uint64_t n = 1; n <= 2000; n++) {
        PenPermutation p = make(n, pen__permute_key(n, 1, 2, 3));
        memset(seen, 0, sizeof seen);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t v = pen__permute_at(&p, i);
            CHECK(v < n && !seen[v]);
            seen[v] = 1;
            CHECK_INT(pen__permute_find(&p, v), i);
        }
    }
}

/* Numbers at which roots and products could be off by one. */
static const uint64_t edges[] = {
    1,
    2,
    3,
    63,
    64,
    65,
    UINT64_C(0xffffffff),
    UINT64_C(0x100000000),
    UINT64_C(0x100000001),
    UINT64_C(1000000000000),
    UINT64_C(4503599761588224), /* 67108865^2 - 1: its root rounds up */
    UINT64_C(4503599761588225),
    UINT64_C(4503599761588226),
    UINT64_C(9223372030926249001), /* 3037000499^2, the last square below 2^63 */
    UINT64_C(9223372030926249002),
    PEN_PERMUTE_MOST - 1,
    PEN_PERMUTE_MOST,
};

TEST(holds_at_the_edges)
{
    PenRng rng = pen__rng_init(1, 1);
    for (size_t e = 0; e < PEN_LEN(edges); e++) {
        uint64_t n = edges[e];
        PenPermutation p = make(n, 7);
        CHECK(p.a * p.b >= n && p.a * p.b - n < p.a);
        CHECK(p.a >= p.b && p.a - p.b <= 2);
        for (uint64_t i = 0; i < 2000; i++) {
            uint64_t at = i < 20 ? i % n : n - 1 - pen__rng_below(&rng, n);
            uint64_t v = pen__permute_at(&p, at);
            CHECK(v < n);
            CHECK_INT(pen__permute_find(&p, v), at);
            CHECK_INT(pen__permute_at(&p, pen__permute_find(&p, at)), at);
        }
    }
}

/* Runs are resumed by later releases, so these never change. The values come from another program,
 * written after the description in permute.c. */
TEST(stays_the_same_for_ever)
{
    static const uint64_t few[10] = {0, 5, 7, 4, 9, 8, 1, 6, 3, 2};
    static const uint64_t many[6] = {664222298977, 671454015828, 204351980424,
                                     459159213711, 177447164044, 721674292405};
    CHECK_INT(pen__permute_key(1, 2, 3, 4), UINT64_C(0xd55ccd4aeb3ccafb));
    PenPermutation p = make(10, pen__permute_key(1, 2, 3, 4));
    for (uint64_t i = 0; i < PEN_LEN(few); i++)
        CHECK_INT(pen__permute_at(&p, i), few[i]);
    p = make(UINT64_C(1000000000000), pen__permute_key(1, 2, 3, 4));
    for (uint64_t i = 0; i < PEN_LEN(many); i++)
        CHECK_INT(pen__permute_at(&p, i * UINT64_C(199999999999)), many[i]);
}

/* Another number here means that every order, or every draw of that purpose, is another one. */
TEST(purposes_keep_their_numbers)
{
    static const int numbers[] = {
        PEN_FOR_SAMPLES, PEN_FOR_BLOCKS,      PEN_FOR_IN_BLOCK,     PEN_FOR_PAIR,
        PEN_FOR_WEIGHTS, PEN_FOR_GROUPS,      PEN_FOR_MIXTURE,      PEN_FOR_SOURCE,
        PEN_FOR_LENGTHS, PEN_FOR_REPLACEMENT, PEN_FOR_SOURCE_DRAWS,
    };
    for (size_t i = 0; i < PEN_LEN(numbers); i++)
        CHECK_INT(numbers[i], i + 1);
}

TEST(another_key_is_another_permutation)
{
    PenPermutation p = make(100000, 5);
    PenPermutation q = make(100000, 6);
    PenPermutation again = q;
    uint64_t same = 0;
    for (uint64_t i = 0; i < 100000; i++)
        same += pen__permute_at(&p, i) == pen__permute_at(&q, i);
    CHECK(same < 10); /* 1 is expected */
    pen__permute_rekey(&again, 5);
    for (uint64_t i = 0; i < 1000; i++)
        CHECK_INT(pen__permute_at(&again, i), pen__permute_at(&p, i));
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

TEST(keys_differ_by_every_word)
{
    static uint64_t keys[24 * 24 * 5 * 24];
    size_t n = 0;
    for (uint64_t seed = 0; seed < 24; seed++)
        for (uint64_t epoch = 0; epoch < 24; epoch++)
            for (uint64_t purpose = 0; purpose < 5; purpose++)
                for (uint64_t index = 0; index < 24; index++)
                    keys[n++] = pen__permute_key(seed, epoch, purpose, index);
    CHECK_INT(n, PEN_LEN(keys));
    qsort(keys, n, sizeof *keys, by_value);
    for (size_t i = 1; i < n; i++)
        CHECK(keys[i] != keys[i - 1]);
}

/* ---- quality: all seeds are fixed, so these pass always or never ----------------------------- */

/* Where two values stand, over many keys: all pairs of places are equally frequent. */
static double pair_deviation(uint64_t n, uint64_t i, uint64_t j, uint64_t n_keys)
{
    static uint32_t counts[200 * 200];
    size_t used = 0;
    memset(counts, 0, sizeof counts);
    for (uint64_t k = 0; k < n_keys; k++) {
        PenPermutation p = make(n, pen__permute_key(k, 0, 0, 0));
        counts[pen__permute_at(&p, i) * n + pen__permute_at(&p, j)]++;
    }
    for (uint64_t x = 0; x < n * n; x++) /* two values are never at one place */
        if (x / n != x % n)
            counts[used++] = counts[x];
    return chi_deviation(counts, used);
}

TEST(pairs_are_even)
{
    CHECK(fabs(pair_deviation(5, 0, 1, 20000)) < 4);
    CHECK(fabs(pair_deviation(6, 2, 5, 20000)) < 4);
    CHECK(fabs(pair_deviation(12, 10, 11, 20000)) < 4);
    CHECK(fabs(pair_deviation(65, 3, 4, 50000)) < 4);
    CHECK(fabs(pair_deviation(200, 0, 1, 100000)) < 4);
    CHECK(fabs(pair_deviation(200, 7, 107, 100000)) < 4);
}

enum { BINS = 64 };

static size_t bin_of(uint64_t v, uint64_t n)
{
    return PEN_MIN((size_t)((double)v / (double)n * BINS), BINS - 1);
}

static void look_at_neighbours(uint64_t n)
{
    static uint32_t steps[BINS], places[BINS * BINS], residues[49];
    memset(steps, 0, sizeof steps);
    memset(places, 0, sizeof places);
    memset(residues, 0, sizeof residues);
    PenPermutation p = make(n, pen__permute_key(n, 0, 0, 0));
    uint64_t count = PEN_MIN(n, 200000);
    uint64_t touching = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t v = pen__permute_at(&p, i);
        uint64_t w = pen__permute_at(&p, (i + 1) % n);
        uint64_t step = w > v ? w - v : w + n - v;
        touching += step == 1 || step == n - 1;
        steps[bin_of(step, n)]++;
        residues[i % 7 * 7 + v % 7]++;
        /* These are spread over all of n. */
        places[i * BINS / count * BINS + bin_of(pen__permute_at(&p, i * (n / count)), n)]++;
    }
    CHECK(touching < 12); /* 2 are expected */
    CHECK(fabs(chi_deviation(steps, BINS)) < 4);
    CHECK(fabs(chi_deviation(places, PEN_LEN(places))) < 4);
    CHECK(fabs(chi_deviation(residues, PEN_LEN(residues))) < 4);
}

TEST(neighbours_are_far_apart)
{
    look_at_neighbours(1281167); /* the images of ImageNet */
    CHECK_OK_SO_FAR();
    look_at_neighbours(UINT64_C(1000000000));
    CHECK_OK_SO_FAR();
    look_at_neighbours(PEN_PERMUTE_MOST);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(is_a_permutation_for_every_small_n);
    RUN(holds_at_the_edges);
    RUN(stays_the_same_for_ever);
    RUN(purposes_keep_their_numbers);
    RUN(another_key_is_another_permutation);
    RUN(keys_differ_by_every_word);
    RUN(pairs_are_even);
    RUN(neighbours_are_far_apart);
    return TEST_END();
}
