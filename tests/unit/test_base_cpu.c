/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cpu.h"

#include <stdlib.h>

#include "test.h"

TEST(names)
{
    for (int i = 0; i < PEN_CPU_TIERS; i++)
        CHECK_INT(pen__cpu_find(pen__cpu_name(i)), i);
    CHECK_STR(pen__cpu_name(PEN_CPU_C), "c");
    CHECK_STR(pen__cpu_name(PEN_CPU_AVX512), "avx512");
    CHECK_INT(pen__cpu_find("sse"), -1);
    CHECK_INT(pen__cpu_find(""), -1);
    CHECK_INT(pen__cpu_find("avx"), -1);
    CHECK_INT(pen__cpu_find("avx5122"), -1);
    CHECK_INT(pen__cpu_find(NULL), -1);
}

TEST(tiers_of_a_machine)
{
    CHECK(pen__cpu_has(PEN_CPU_C));
    CHECK(!pen__cpu_has(-1));
    CHECK(!pen__cpu_has(PEN_CPU_TIERS));
    CHECK(!pen__cpu_has(PEN_CPU_NEON) || !pen__cpu_has(PEN_CPU_AVX2));
    CHECK(!pen__cpu_has(PEN_CPU_AVX512) || pen__cpu_has(PEN_CPU_AVX2));
#ifdef __x86_64__
    CHECK_INT(pen__cpu_has(PEN_CPU_AVX512), pen__cpu_has(PEN_CPU_AVX2) &&
                                                __builtin_cpu_supports("avx512vbmi2") &&
                                                __builtin_cpu_supports("avx512vnni"));
#endif
}

TEST(choice_is_cut)
{
    int best = pen__cpu_choose(NULL);
    CHECK(pen__cpu_has(best));
    for (int i = best + 1; i < PEN_CPU_TIERS; i++)
        CHECK(!pen__cpu_has(i));
    CHECK_INT(pen__cpu_choose(""), best);
    CHECK_INT(pen__cpu_choose("avx1024"), best);
    CHECK_INT(pen__cpu_choose("c"), PEN_CPU_C);
    for (int i = 0; i < PEN_CPU_TIERS; i++) {
        int tier = pen__cpu_choose(pen__cpu_name(i));
        CHECK(pen__cpu_has(tier));
        CHECK(tier <= i);
        for (int between = tier + 1; between <= i; between++)
            CHECK(!pen__cpu_has(between));
    }
}

/* Runs first: the environment is looked at once. */
TEST(environment_is_read_once)
{
    setenv("PENSTOCK_CPU", "c", 1);
    CHECK_INT(pen__cpu(), PEN_CPU_C);
    unsetenv("PENSTOCK_CPU");
    CHECK_INT(pen__cpu(), PEN_CPU_C);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(environment_is_read_once);
    RUN(names);
    RUN(tiers_of_a_machine);
    RUN(choice_is_cut);
    return TEST_END();
}
