/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/cpuid.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __x86_64__
#include <cpuid.h>

typedef struct Leaves {
    unsigned ecx1;       /* leaf 1 */
    unsigned ebx7, ecx7; /* leaf 7 */
    unsigned ecx_extended;
    uint32_t saved; /* the registers that the system saves: XCR0 */
} Leaves;

static Leaves read_leaves(void)
{
    Leaves l = {0};
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d))
        l.ecx1 = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        l.ebx7 = b;
        l.ecx7 = c;
    }
    if (__get_cpuid(0x80000001, &a, &b, &c, &d))
        l.ecx_extended = c;
    if (l.ecx1 & bit_OSXSAVE)
        __asm__("xgetbv" : "=a"(l.saved), "=d"(d) : "c"(0));
    return l;
}

static bool all(unsigned found, unsigned wanted)
{
    return (found & wanted) == wanted;
}

static bool has_avx2(const Leaves *l)
{
    return all(l->saved, 0x6) && all(l->ecx1, bit_AVX | bit_FMA | bit_F16C) &&
           all(l->ebx7, bit_AVX2 | bit_BMI | bit_BMI2) && all(l->ecx_extended, bit_LZCNT);
}

static bool has_avx512(const Leaves *l)
{
    const unsigned ebx = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
    const unsigned ecx = bit_AVX512VBMI | bit_AVX512VBMI2 | bit_AVX512VNNI;
    return has_avx2(l) && all(l->saved, 0xe6) && all(l->ebx7, ebx) && all(l->ecx7, ecx);
}

static unsigned find_sets(void)
{
    enum { SHA = 1 << 29 }; /* gcc and clang have different names for it */
    const Leaves l = read_leaves();
    unsigned sets = 0;
    if (all(l.ecx1, bit_SSE4_2 | bit_PCLMUL))
        sets |= PEN_CPUID_CRC32;
    if (all(l.ebx7, SHA) && all(l.ecx1, bit_SSE4_1))
        sets |= PEN_CPUID_SHA;
    if (has_avx2(&l))
        sets |= PEN_CPUID_AVX2;
    if (has_avx512(&l))
        sets |= PEN_CPUID_AVX512;
    return sets;
}
#else
static unsigned find_sets(void)
{
    return 0;
}
#endif

/* Two threads may both ask the CPU; the answer is the same. */
unsigned pen__cpuid(void)
{
    static atomic_uint known; /* one more than the sets */
    unsigned sets = atomic_load_explicit(&known, memory_order_relaxed) - 1;
    if (sets == UINT_MAX) {
        sets = find_sets();
        atomic_store_explicit(&known, sets + 1, memory_order_relaxed);
    }
    return sets;
}
