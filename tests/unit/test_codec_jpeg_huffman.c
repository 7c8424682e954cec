/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/huffman.h"

#include "test.h"

/* Lengths of 1 to 16, each symbol once, and the code of all ones free. */
static void check_table(const uint32_t counts[256], const PenHuffTable *t)
{
    uint32_t used = 0, n = 0, seen[256] = {0};
    for (uint32_t length = 1; length <= 16; length++) {
        n += t->n_codes[length];
        used += (uint32_t)t->n_codes[length] << (16 - length);
    }
    CHECK(used < 0x10000);
    CHECK_INT(n, t->n_symbols);
    for (uint32_t i = 0; i < n; i++)
        seen[t->symbols[i]]++;
    for (uint32_t i = 0; i < 256; i++)
        CHECK_INT(seen[i], counts[i] ? 1 : 0);
}

static uint64_t cost(const uint32_t counts[256], const PenHuffTable *t)
{
    uint64_t sum = 0;
    uint32_t at = 0;
    for (uint32_t length = 1; length <= 16; length++)
        for (uint32_t i = 0; i < t->n_codes[length]; i++)
            sum += (uint64_t)counts[t->symbols[at++]] * length;
    return sum;
}

TEST(one_symbol_gets_one_bit)
{
    uint32_t counts[256] = {0};
    PenHuffTable t;
    counts[77] = 1000;
    pen__huff_optimal(counts, &t);
    check_table(counts, &t);
    CHECK_OK_SO_FAR();
    CHECK_INT(t.n_codes[1], 1);
    CHECK_INT(t.symbols[0], 77);
}

TEST(nothing_gives_an_empty_table)
{
    uint32_t counts[256] = {0};
    PenHuffTable t;
    pen__huff_optimal(counts, &t);
    CHECK_INT(t.n_symbols, 0);
    check_table(counts, &t);
}

TEST(powers_of_two_get_their_own_lengths)
{
    uint32_t counts[256] = {0};
    PenHuffTable t;
    for (uint32_t i = 0; i < 12; i++)
        counts[i * 20] = 1u << (20 - i);
    pen__huff_optimal(counts, &t);
    check_table(counts, &t);
    CHECK_OK_SO_FAR();
    for (uint32_t i = 0; i < 12; i++) {
        CHECK_INT(t.n_codes[i + 1], 1);
        CHECK_INT(t.symbols[i], i * 20);
    }
}

/* Weights that grow like these give a tree as deep as it has leaves. */
TEST(lengths_stay_within_16)
{
    uint32_t counts[256] = {0};
    PenHuffTable t;
    uint32_t a = 1, b = 1;
    for (uint32_t i = 0; i < 40; i++) {
        counts[i] = b;
        uint32_t next = a + b;
        a = b;
        b = next;
    }
    pen__huff_optimal(counts, &t);
    check_table(counts, &t);
    CHECK_OK_SO_FAR();
    CHECK(t.n_codes[16] > 0);
    for (uint32_t i = 0; i < 256; i++)
        counts[i] = 5;
    pen__huff_optimal(counts, &t);
    check_table(counts, &t);
    CHECK_OK_SO_FAR();
    CHECK_INT(t.n_codes[8], 255); /* 257 leaves, one of them the unused code */
    CHECK_INT(t.n_codes[9], 1);
}

/* The cost of an optimal code, by adding up the two least weights until one is left. */
static uint64_t least_cost(const uint32_t counts[256], bool with_unused)
{
    uint64_t weights[257], sum = 0;
    size_t n = 0;
    if (with_unused)
        weights[n++] = 1;
    for (size_t i = 0; i < 256; i++)
        if (counts[i])
            weights[n++] = counts[i];
    while (n > 1) {
        for (size_t k = 0; k < 2; k++) /* the least to the end, then the next before it */
            for (size_t i = 0; i + 1 < n - k; i++)
                if (weights[i] < weights[n - 1 - k]) {
                    uint64_t w = weights[i];
                    weights[i] = weights[n - 1 - k];
                    weights[n - 1 - k] = w;
                }
        weights[n - 2] += weights[n - 1];
        sum += weights[n - 2];
        n--;
    }
    return sum;
}

TEST(random_counts_cost_the_least)
{
    uint32_t state = 1;
    for (int round = 0; round < 300; round++) {
        uint32_t counts[256] = {0};
        PenHuffTable t;
        for (uint32_t i = 0; i < 256; i++) {
            state = state * 1664525u + 1013904223u;
            if ((state >> 9) % 7 < (uint32_t)round % 8)
                counts[i] = 1 + (state >> 16) % 700;
        }
        counts[round % 256] = 1;
        pen__huff_optimal(counts, &t);
        check_table(counts, &t);
        CHECK_OK_SO_FAR();
        /* The unused code of all ones weighs 1: the cost lies just above that without it. */
        CHECK(cost(counts, &t) >= least_cost(counts, false));
        CHECK(cost(counts, &t) < least_cost(counts, true));
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(one_symbol_gets_one_bit);
    RUN(nothing_gives_an_empty_table);
    RUN(powers_of_two_get_their_own_lengths);
    RUN(lengths_stay_within_16);
    RUN(random_counts_cost_the_least);
    return TEST_END();
}
