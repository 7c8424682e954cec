/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cpu.h"

#include <stdatomic.h>
#include <string.h>

#include "base/sys.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

static const char *const names[PEN_CPU_TIERS] = {"c", "avx2", "avx512", "neon"};

#ifdef __x86_64__
/* Not every compiler's own CPU table knows F16C and LZCNT. That the system keeps the registers is
 * part of what the table says of AVX. */
static bool has_avx2(void)
{
    unsigned eax, ebx, ecx, edx;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) &&
           __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && (ecx & bit_LZCNT);
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vnni");
}
#endif

bool pen__cpu_has(int tier)
{
    switch (tier) {
    case PEN_CPU_C:
        return true;
#ifdef __x86_64__
    case PEN_CPU_AVX2:
        return has_avx2();
    case PEN_CPU_AVX512:
        return has_avx512();
#endif
#ifdef __aarch64__
    case PEN_CPU_NEON:
        return true;
#endif
    default:
        return false;
    }
}

const char *pen__cpu_name(int tier)
{
    return names[tier];
}

int pen__cpu_find(const char *name)
{
    for (int i = 0; name && i < PEN_CPU_TIERS; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

int pen__cpu_choose(const char *wanted)
{
    int tier = pen__cpu_find(wanted);
    if (tier < 0)
        tier = PEN_CPU_TIERS - 1;
    while (!pen__cpu_has(tier)) /* C ends it */
        tier--;
    return tier;
}

/* Two threads may both choose; they choose the same. */
int pen__cpu(void)
{
    static atomic_int chosen; /* one more than the tier */
    int tier = atomic_load_explicit(&chosen, memory_order_relaxed) - 1;
    if (tier < 0) {
        tier = pen__cpu_choose(pen__sys->environment("PENSTOCK_CPU"));
        atomic_store_explicit(&chosen, tier + 1, memory_order_relaxed);
    }
    return tier;
}
