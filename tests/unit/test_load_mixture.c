/* SPDX-License-Identifier: Apache-2.0 */
#include "load/mix/mixture.h"

#include <math.h>

#include "base/attr.h"
#include "base/rng.h"
#include "lib/fault_sys.h"
#include "load/mix/table.h"
#include "test.h"

enum { MOST = 64 };

static const uint64_t ZERO[1] = {0};

static PenMixture *make(const double *weights, uint32_t n, uint64_t seed)
{
    PenMixture *m = NULL;
    PenMixturePlan plan = {n, 1, ZERO, weights, seed};
    (void)!pen__mixture_new(&plan, &m, NULL);
    return m;
}

/* At every position each source has floor(x) or ceil(x) samples, where x is its share so far. */
static void check_table(const double *weights, uint32_t n, uint64_t key)
{
    PenMixTable t;
    uint64_t seen[MOST] = {0}, sum = 0;
    CHECK_INT(pen__mix_table_init(&t, weights, n, key, NULL), PEN_OK);
    for (uint32_t i = 0; i < n; i++) {
        sum += t.shares[i];
        CHECK((weights[i] > 0) == (t.shares[i] > 0));
    }
    CHECK_INT(sum, t.n_slots);
    bool fits = true;
    for (uint64_t p = 0; p < t.n_slots; p++) {
        PenMixSlot s = t.slots[p];
        fits = fits && s.ordinal == seen[s.source];
        seen[s.source]++;
        for (uint32_t i = 0; i < n && fits; i++) {
            uint64_t x = (p + 1) * t.shares[i];
            fits = seen[i] >= x / t.n_slots && seen[i] * t.n_slots < x + t.n_slots;
        }
    }
    CHECK(fits);
    pen__mix_table_fini(&t);
}

TEST(counts_are_within_one_of_their_share_at_every_position)
{
    double weights[MOST];
    PenRng rng = pen__rng_init(5, 0);
    for (uint64_t round = 0; round < 40; round++) {
        uint32_t n = 1 + (uint32_t)pen__rng_below(&rng, round < 20 ? 6 : MOST);
        for (uint32_t i = 0; i < n; i++) {
            double x = (double)pen__rng_below(&rng, 1000);
            weights[i] = round % 3 == 0 ? 1 + x : round % 3 == 1 ? floor(x / 200) : exp2(x / 50);
        }
        weights[pen__rng_below(&rng, n)] = 3;
        check_table(weights, n, round);
    }
}

TEST(small_ratios_are_exact_and_others_are_near)
{
    static const double exact[] = {0.1, 0.2, 0.7}, odd[] = {1, 1e-9, 3.14159265};
    PenMixTable t;
    CHECK_INT(pen__mix_table_init(&t, exact, 3, 0, NULL), PEN_OK);
    for (int i = 0; i < 3; i++)
        CHECK_INT(t.shares[i] * 10u, (uint32_t)(exact[i] * 10 + 0.5) * t.n_slots);
    pen__mix_table_fini(&t);
    CHECK_INT(pen__mix_table_init(&t, odd, 3, 0, NULL), PEN_OK);
    CHECK_INT(t.n_slots, PEN_MIX_MOST_SLOTS);
    CHECK_INT(t.shares[1], 1); /* never 0 */
    CHECK(fabs(t.shares[0] - t.n_slots / 4.14159265) <= 1);
    pen__mix_table_fini(&t);
}

/* Ranks take every n-th position: each of them gets every source, about as often as its weight
 * says. It is not exact where the period and the number of ranks have common divisors. */
TEST(ranks_do_not_fall_in_step_with_the_period)
{
    static const double weights[][4] = {{1, 1, 0, 0}, {1, 1, 1, 1}, {3, 1, 0, 0}, {5, 2, 1, 0}};
    for (size_t w = 0; w < PEN_LEN(weights); w++) {
        PenMixture *m = make(weights[w], 4, w);
        double sum = weights[w][0] + weights[w][1] + weights[w][2] + weights[w][3];
        for (uint64_t world = 1; world <= 8; world++)
            for (uint64_t rank = 0; rank < world; rank++) {
                double seen[4] = {0};
                enum { EACH = 8192 };
                for (uint64_t i = 0; i < EACH; i++)
                    seen[pen__mixture_at(m, i * world + rank).source] += 1.0 / EACH;
                for (int i = 0; i < 4; i++)
                    CHECK(fabs(seen[i] - weights[w][i] / sum) < (w < 3 ? 0.05 : 0.15));
            }
        pen__mixture_free(&m);
    }
}

TEST(seeds_order_sources_differently)
{
    static const double weights[] = {1, 1, 1};
    PenMixture *a = make(weights, 3, 1), *b = make(weights, 3, 2), *c = make(weights, 3, 1);
    int others = 0, wrong = 0;
    for (uint64_t p = 0; p < 3000; p++) {
        others += pen__mixture_at(a, p).source != pen__mixture_at(b, p).source;
        wrong += pen__mixture_at(a, p).source != pen__mixture_at(c, p).source;
    }
    CHECK(others > 1500 && !wrong);
    CHECK(pen__mixture_hash(a) == pen__mixture_hash(b)); /* the seed is in the state by itself */
    pen__mixture_free(&a);
    pen__mixture_free(&b);
    pen__mixture_free(&c);
}

/* Through several stages: positions, counts and their inverse agree with counting. */
TEST(stages_go_on_with_the_counts)
{
    static const double weights[] = {1, 1, 0, 0, 1, 3, 2, 5, 7};
    static const uint64_t starts[] = {0, 1001, 40000};
    PenMixturePlan plan = {3, 3, starts, weights, 9};
    PenMixture *m = NULL;
    uint64_t seen[3] = {0}, counts[3];
    int wrong = 0;
    CHECK_INT(pen__mixture_new(&plan, &m, NULL), PEN_OK);
    for (uint64_t p = 0; p < 60000; p++) {
        PenMixed at = pen__mixture_at(m, p);
        wrong += at.before != seen[at.source];
        if (p % 977 == 0) {
            wrong += pen__mixture_find(m, at.source, at.before) != p;
            pen__mixture_counts(m, p, counts);
            wrong += memcmp(counts, seen, sizeof seen) != 0;
        }
        seen[at.source]++;
    }
    CHECK_INT(wrong, 0);
    pen__mixture_free(&m);
}

TEST(what_never_comes_has_no_position)
{
    static const double weights[] = {1, 1, 1, 0};
    static const uint64_t starts[] = {0, 100};
    PenMixturePlan plan = {2, 2, starts, weights, 0};
    PenMixture *m = NULL;
    CHECK_INT(pen__mixture_new(&plan, &m, NULL), PEN_OK);
    CHECK(pen__mixture_find(m, 1, 49) < 100);
    CHECK(pen__mixture_find(m, 1, 50) == PEN_MIX_MOST_POSITIONS);
    CHECK(pen__mixture_find(m, 0, UINT64_MAX) == PEN_MIX_MOST_POSITIONS);
    CHECK_INT(pen__mixture_find(m, 0, 60), 110);
    pen__mixture_free(&m);
}

TEST(what_is_no_weight_is_refused)
{
    const double wrong[][2] = {{1, -1}, {NAN, 1}, {1, INFINITY}, {0, 0}};
    static const char *const says[] = {
        "weight of source 1: expected a finite number of 0 or more, found -1", "source 0: expected",
        "source 1: expected", "expected at least one weight that is not 0"};
    for (size_t i = 0; i < PEN_LEN(wrong); i++) {
        PenError err = {0};
        PenMixture *m = NULL;
        PenMixturePlan plan = {2, 1, ZERO, wrong[i], 0};
        CHECK_INT(pen__mixture_new(&plan, &m, &err), PEN_E_INVALID);
        CHECK(!m && strstr(err.message, says[i]));
    }
}

TEST(without_memory_it_says_so)
{
    static const double weights[] = {1, 2, 2, 1};
    static const uint64_t starts[] = {0, 100};
    PenMixturePlan plan = {2, 2, starts, weights, 0};
    for (uint64_t at = 1; at <= 14; at++) {
        PenError err = {0};
        PenMixture *m = NULL;
        fault_begin(&(FaultPlan){.at = at});
        int r = pen__mixture_new(&plan, &m, &err);
        FaultSeen seen = fault_end();
        CHECK_INT(r, PEN_E_NO_MEMORY);
        CHECK(!m && strstr(err.message, "mixture"));
        CHECK_INT(seen.memory, 0);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(counts_are_within_one_of_their_share_at_every_position);
    RUN(small_ratios_are_exact_and_others_are_near);
    RUN(ranks_do_not_fall_in_step_with_the_period);
    RUN(seeds_order_sources_differently);
    RUN(stages_go_on_with_the_counts);
    RUN(what_never_comes_has_no_position);
    RUN(what_is_no_weight_is_refused);
    RUN(without_memory_it_says_so);
    return TEST_END();
}
