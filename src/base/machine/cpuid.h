/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets of an x86-64 CPU. The library asks the CPU itself, because not every
 * compiler's runtime has the table that __builtin_cpu_supports reads. */
#ifndef PEN_BASE_MACHINE_CPUID_H
#define PEN_BASE_MACHINE_CPUID_H

enum {
    PEN_CPUID_CRC32 = 1,  /* SSE4.2 and PCLMULQDQ */
    PEN_CPUID_SHA = 2,    /* SHA and SSE4.1 */
    PEN_CPUID_AVX2 = 4,   /* the avx2 tier of base/machine/cpu.h */
    PEN_CPUID_AVX512 = 8, /* the avx512 tier */
};

/* All sets that the CPU has and the system supports; none on other architectures. CPUID is slow in
 * virtual machines, so only the first call executes it. */
unsigned pen__cpuid(void);

#endif
