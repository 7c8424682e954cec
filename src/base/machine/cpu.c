/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cpu.h"

#include <stdatomic.h>
#include <string.h>

#include "base/machine/cpuid.h"
#include "base/sys.h"

static const char *const names[PEN_CPU_TIERS] = {"c", "avx2", "avx512", "neon"};

bool pen__cpu_has(int tier)
{
    switch (tier) {
    case PEN_CPU_C:
        return true;
    case PEN_CPU_AVX2:
        return pen__cpuid() & PEN_CPUID_AVX2;
    case PEN_CPU_AVX512:
        return pen__cpuid() & PEN_CPUID_AVX512;
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
