/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cpuid.h"

#include "test.h"

/* The compiler's own table is the reference. It lacks F16C, LZCNT and SHA. */
TEST(sets_agree_with_the_compiler)
{
    const unsigned sets = pen__cpuid();
    CHECK_INT(pen__cpuid(), sets);
    CHECK(!(sets & PEN_CPUID_AVX512) || (sets & PEN_CPUID_AVX2));
#ifdef __x86_64__
    bool crc32 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                  __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vnni");
    CHECK_INT(!!(sets & PEN_CPUID_CRC32), crc32);
    CHECK(!(sets & PEN_CPUID_SHA) || __builtin_cpu_supports("sse4.1"));
    CHECK_INT(!!(sets & PEN_CPUID_AVX2), avx2); /* every CPU with AVX2 has F16C and LZCNT */
    CHECK_INT(!!(sets & PEN_CPUID_AVX512), avx512);
#else
    CHECK_INT(sets, 0);
#endif
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(sets_agree_with_the_compiler);
    return TEST_END();
}
