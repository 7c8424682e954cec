/* SPDX-License-Identifier: Apache-2.0 */
#include "base/attr.h"
#include "base/mem.h"
#include "base/rng.h"
#include "lib/fault_sys.h"
#include "load/epoch/ordinals.h"
#include "test.h"

TEST(a_list_without_repeats_has_none)
{
    static const uint64_t list[] = {63, 64, 0, 127, 128, 5};
    uint32_t *found = (uint32_t *)(uintptr_t)1;
    CHECK_INT(pen__ordinals_new(list, PEN_LEN(list), 129, &found, NULL), PEN_OK);
    CHECK(!found);
}

/* Against a search through all entries before. */
TEST(an_ordinal_counts_the_same_sample_before)
{
    enum { N = 2000, SAMPLES = 700 };
    static uint64_t list[N];
    PenRng rng = pen__rng_init(1, 0);
    uint32_t *found = NULL;
    for (size_t i = 0; i < N; i++)
        list[i] = pen__rng_below(&rng, SAMPLES);
    CHECK_INT(pen__ordinals_new(list, N, SAMPLES, &found, NULL), PEN_OK);
    CHECK(found);
    for (size_t i = 0; i < N; i++) {
        uint32_t before = 0;
        for (size_t k = 0; k < i; k++)
            before += list[k] == list[i];
        CHECK_INT(found[i], before);
    }
    pen__free(found);
}

TEST(without_memory_it_says_so)
{
    static const uint64_t list[] = {1, 1, 1};
    for (uint64_t at = 1; at <= 4; at++) { /* as many as it takes in all */
        PenError err = {0};
        uint32_t *found = NULL;
        fault_begin(&(FaultPlan){.at = at});
        int r = pen__ordinals_new(list, PEN_LEN(list), 2, &found, &err);
        FaultSeen seen = fault_end();
        CHECK_INT(r, PEN_E_NO_MEMORY);
        CHECK(!found && strstr(err.message, "repeats in the subset"));
        CHECK_INT(seen.memory, 0);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(a_list_without_repeats_has_none);
    RUN(an_ordinal_counts_the_same_sample_before);
    RUN(without_memory_it_says_so);
    return TEST_END();
}
