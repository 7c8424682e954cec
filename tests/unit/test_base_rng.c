/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include "test.h"

/* The three philox4x32 10 lines of kat_vectors in Random123. */
TEST(known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t ret[4];
        pen__philox(known[i].key, known[i].counter, ret);
        CHECK_MEM(ret, known[i].expected, sizeof ret);
    }
}

TEST(position_carries)
{
    PenRng a = pen__rng_init(0x1122334455667788u, 0x99aabbccddeeff00u);
    CHECK_INT(a.key[0], 0x55667788u);
    CHECK_INT(a.key[1], 0x11223344u);
    CHECK_INT(a.counter[2], 0xddeeff00u);
    CHECK_INT(a.counter[3], 0x99aabbccu);
    a.counter[0] = 0xffffffffu;
    uint32_t x[4];
    pen__philox(a.key, a.counter, x);
    CHECK_INT(pen__rng_next(&a), x[0] | (uint64_t)x[1] << 32);
    CHECK_INT(a.counter[0], 0);
    CHECK_INT(a.counter[1], 1);
}

/* At 3 * 2^62 the biased methods give a third of the results twice the chance: the remainder of x
 * favours the lowest third, the high half of x * n the multiples of three. */
TEST(below_is_even)
{
    PenRng rng = pen__rng_init(1, 2);
    const uint64_t n = (uint64_t)3 << 62;
    int third[3] = {0}, remainder[3] = {0};
    for (int i = 0; i < 30000; i++) {
        uint64_t x = pen__rng_below(&rng, n);
        CHECK(x < n);
        third[x >> 62]++;
        remainder[x % 3]++;
    }
    for (int i = 0; i < 3; i++) {
        CHECK(third[i] > 9700 && third[i] < 10300);
        CHECK(remainder[i] > 9700 && remainder[i] < 10300);
    }
}

TEST(below_small)
{
    PenRng rng = pen__rng_init(5, 0);
    int seen[7] = {0};
    for (int i = 0; i < 70000; i++) {
        uint64_t x = pen__rng_below(&rng, 7);
        CHECK(x < 7);
        seen[x]++;
    }
    for (int i = 0; i < 7; i++)
        CHECK(seen[i] > 9600 && seen[i] < 10400);
    CHECK_INT(pen__rng_below(&rng, 0), 0);
    CHECK_INT(pen__rng_below(&rng, 1), 0);
}

TEST(same_seed_same_numbers)
{
    PenRng a = pen__rng_init(9, 1), b = pen__rng_init(9, 1), c = pen__rng_init(9, 2);
    int differ = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t x = pen__rng_next(&a);
        CHECK_INT(pen__rng_next(&b), x);
        differ += pen__rng_next(&c) != x;
    }
    CHECK_INT(differ, 100);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(known_answers);
    RUN(position_carries);
    RUN(below_is_even);
    RUN(below_small);
    RUN(same_seed_same_numbers);
    return TEST_END();
}
