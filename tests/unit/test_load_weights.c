/* SPDX-License-Identifier: Apache-2.0 */
#include "load/epoch/weights.h"

#include <math.h>

#include "base/attr.h"
#include "base/rng.h"
#include "lib/fault_sys.h"
#include "test.h"

enum { MOST = 3000 };

static double sum_of(const double *weights, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += weights[i];
    return sum;
}

/* Entries rise, ordinals count them, and every entry is there about as often as its weight says. */
static void check_epoch(const double *weights, uint64_t n, uint64_t epoch)
{
    static uint64_t times[MOST];
    double sum = sum_of(weights, n);
    PenWeights *w = NULL;
    uint64_t last = 0;
    memset(times, 0, sizeof times);
    CHECK_INT(pen__weights_new(weights, n, &w, NULL), PEN_OK);
    for (uint64_t k = 0; k < n; k++) {
        PenDrawn d = pen__weights_at(w, 7, epoch, k);
        CHECK(d.entry < n && d.entry >= last);
        CHECK_INT(d.ordinal, times[d.entry]);
        times[d.entry]++;
        last = d.entry;
    }
    for (uint64_t i = 0; i < n; i++) {
        double want = (double)n * weights[i] / sum;
        CHECK(fabs((double)times[i] - want) < 1 + 1e-6);
        CHECK(weights[i] > 0 || !times[i]);
    }
    pen__weights_free(&w);
    CHECK(!w);
}

/* Every entry n_times[i] times, whatever seed and epoch are. */
TEST(entries_are_repeated)
{
    static const uint64_t times[] = {3, 0, 1, 4, 0};
    static const PenDrawn want[] = {{0, 0}, {0, 1}, {0, 2}, {2, 0}, {3, 0}, {3, 1}, {3, 2}, {3, 3}};
    PenWeights *w = NULL;
    uint64_t n = 0;
    CHECK_INT(pen__repeats_new(times, PEN_LEN(times), "frames", &w, &n, NULL), PEN_OK);
    CHECK_INT(n, PEN_LEN(want));
    for (uint64_t seed = 0; seed < 3; seed++)
        for (uint64_t k = 0; k < n; k++) {
            PenDrawn d = pen__weights_at(w, seed, seed, k);
            CHECK_INT(d.entry, want[k].entry);
            CHECK_INT(d.ordinal, want[k].ordinal);
        }
    pen__weights_free(&w);
}

TEST(repeats_are_checked)
{
    PenError err = {0};
    PenWeights *w = NULL;
    uint64_t n = 0, zero[2] = {0, 0}, large[2] = {1, UINT64_C(1) << 32};
    CHECK_INT(pen__repeats_new(zero, 2, "frames", &w, &n, &err), PEN_E_INVALID);
    CHECK_STR(err.message, "frames: expected at least one that is not 0");
    CHECK_INT(pen__repeats_new(large, 2, "frames", &w, &n, &err), PEN_E_INVALID);
    CHECK_STR(err.message, "frames: entry 1: expected at most 2^32 - 1, found 4294967296");
    CHECK(!w);
}

TEST(entries_are_drawn_by_their_weights)
{
    static double weights[MOST];
    PenRng rng = pen__rng_init(3, 0);
    for (uint64_t round = 0; round < 60; round++) {
        uint64_t n = round < 6 ? round + 1 : 1 + pen__rng_below(&rng, MOST);
        for (uint64_t i = 0; i < n; i++) {
            double x = (double)pen__rng_below(&rng, 1000);
            weights[i] = round % 3 == 0 ? 1 + x : round % 3 == 1 ? (x < 700 ? 0 : x) : exp2(x / 50);
        }
        weights[pen__rng_below(&rng, n)] = 12;
        for (uint64_t epoch = 0; epoch < 3; epoch++)
            check_epoch(weights, n, epoch);
    }
}

TEST(equal_weights_draw_each_once)
{
    static double weights[MOST];
    for (uint64_t i = 0; i < MOST; i++)
        weights[i] = 0.1;
    PenWeights *w = NULL;
    CHECK_INT(pen__weights_new(weights, MOST, &w, NULL), PEN_OK);
    for (uint64_t k = 0; k < MOST; k++)
        CHECK(pen__weights_at(w, 1, 5, k).entry == k);
    pen__weights_free(&w);
}

/* 0.5 of an entry is one of it in every second epoch, not in the same half of all of them. */
TEST(epochs_draw_others)
{
    static const double weights[] = {1, 1, 2, 1, 1, 2, 1, 1, 2, 3, 1, 4, 1, 1};
    enum { EPOCHS = 4000 };
    double total[PEN_LEN(weights)] = {0}, sum = sum_of(weights, PEN_LEN(weights));
    PenWeights *w = NULL;
    CHECK_INT(pen__weights_new(weights, PEN_LEN(weights), &w, NULL), PEN_OK);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint64_t k = 0; k < PEN_LEN(weights); k++)
            total[pen__weights_at(w, 1, epoch, k).entry] += 1.0 / EPOCHS;
    for (size_t i = 0; i < PEN_LEN(weights); i++)
        CHECK(fabs(total[i] - weights[i] * PEN_LEN(weights) / sum) < 0.04);
    pen__weights_free(&w);
}

TEST(a_tiny_weight_is_not_zero_and_a_huge_sum_does_not_overflow)
{
    static const double weights[] = {1e-300, 1e300, 1e300, 1e300, 5e-324, 1e300};
    check_epoch(weights, PEN_LEN(weights), 0);
    PenWeights *a = NULL, *b = NULL;
    CHECK_INT(pen__weights_new(weights, 5, &a, NULL), PEN_OK);
    CHECK_INT(pen__weights_new(weights + 1, 5, &b, NULL), PEN_OK);
    CHECK(pen__weights_hash(a) != pen__weights_hash(b));
    pen__weights_free(&a);
    pen__weights_free(&b);
}

TEST(what_is_no_weight_is_refused)
{
    const double wrong[][2] = {{1, -1}, {NAN, 1}, {1, INFINITY}, {0, 0}};
    static const char *const says[] = {"entry 1: expected a finite number of 0 or more, found -1",
                                       "entry 0: expected a finite", "entry 1: expected a finite",
                                       "expected at least one that is not 0"};
    for (size_t i = 0; i < PEN_LEN(wrong); i++) {
        PenError err = {0};
        PenWeights *w = NULL;
        CHECK_INT(pen__weights_new(wrong[i], 2, &w, &err), PEN_E_INVALID);
        CHECK(!w && strstr(err.message, says[i]));
    }
}

TEST(without_memory_it_says_so)
{
    static const double weights[] = {1, 2};
    for (uint64_t at = 1; at <= 2; at++) {
        PenError err = {0};
        PenWeights *w = NULL;
        fault_begin(&(FaultPlan){.at = at});
        int r = pen__weights_new(weights, 2, &w, &err);
        FaultSeen seen = fault_end();
        CHECK_INT(r, PEN_E_NO_MEMORY);
        CHECK(!w && strstr(err.message, "weights"));
        CHECK_INT(seen.memory, 0);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(entries_are_drawn_by_their_weights);
    RUN(equal_weights_draw_each_once);
    RUN(epochs_draw_others);
    RUN(a_tiny_weight_is_not_zero_and_a_huge_sum_does_not_overflow);
    RUN(what_is_no_weight_is_refused);
    RUN(entries_are_repeated);
    RUN(repeats_are_checked);
    RUN(without_memory_it_says_so);
    return TEST_END();
}
