/* SPDX-License-Identifier: Apache-2.0 */
#include "dsp/dsp.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "dsp/tier.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

static const PenDsp tier_c = {
    .tier = "c",
    .across = pen__across_c,
    .down = pen__down_c,
    .store = pen__store_c,
    .planes_u8 = pen__planes_u8_c,
    .brightness = pen__brightness_c,
    .contrast = pen__contrast_c,
    .saturation = pen__saturation_c,
    .hue = pen__hue_c,
    .grey = pen__grey_c,
    .grey_sum = pen__grey_sum_c,
};

static bool has_c(void)
{
    return true;
}

#ifdef __x86_64__
static const PenDsp tier_avx2 = {
    .tier = "avx2",
    .across = pen__across_avx2,
    .down = pen__down_avx2,
    .store = pen__store_avx2,
    .planes_u8 = pen__planes_u8_avx2,
    .brightness = pen__brightness_avx2,
    .contrast = pen__contrast_avx2,
    .saturation = pen__saturation_avx2,
    .hue = pen__hue_c,
    .grey = pen__grey_avx2,
    .grey_sum = pen__grey_sum_avx2,
};

/* Not every compiler's own CPU table knows F16C. */
static bool has_avx2(void)
{
    unsigned eax, ebx, ecx, edx;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}
#endif

static const struct {
    const PenDsp *table;
    bool (*has)(void);
} tiers[] = {
    /* from the lowest */
    {&tier_c, has_c},
#ifdef __x86_64__
    {&tier_avx2, has_avx2},
#endif
};

const PenDsp *pen__dsp_tier(const char *tier)
{
    for (size_t i = 0; i < PEN_LEN(tiers); i++)
        if (strcmp(tiers[i].table->tier, tier) == 0)
            return tiers[i].has() ? tiers[i].table : NULL;
    return NULL;
}

const PenDsp *pen__dsp_choose(const char *wanted)
{
    size_t top = PEN_LEN(tiers) - 1;
    for (size_t i = 0; wanted && i < PEN_LEN(tiers); i++)
        if (strcmp(tiers[i].table->tier, wanted) == 0)
            top = i;
    while (!tiers[top].has()) /* C ends it */
        top--;
    return tiers[top].table;
}

/* Two threads may both choose; they choose the same. */
const PenDsp *pen__dsp(void)
{
    static _Atomic(const PenDsp *) chosen;
    const PenDsp *d = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!d) {
        d = pen__dsp_choose(getenv("PENSTOCK_CPU"));
        atomic_store_explicit(&chosen, d, memory_order_relaxed);
    }
    return d;
}
