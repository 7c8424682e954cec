/* SPDX-License-Identifier: Apache-2.0 */
/* What this CPU can do, in tiers: families of kernels (pixels, resampling, entropy coding) have a
 * table for some of the tiers and take the best that is not above pen__cpu(). PENSTOCK_CPU names
 * the highest tier to use.
 *
 *     c         any machine
 *     avx2      AVX2, FMA, F16C, BMI, BMI2, LZCNT: Haswell, Zen
 *     avx512    the above and AVX-512 F, BW, CD, DQ, VL, VBMI, VBMI2, VNNI: Ice Lake, Zen 4
 *     neon      aarch64
 *
 * src/base/meson.build has the compiler flags for the files of a tier. */
#ifndef PEN_BASE_MACHINE_CPU_H
#define PEN_BASE_MACHINE_CPU_H

#include <stdbool.h>

/* From the lowest. */
enum { PEN_CPU_C, PEN_CPU_AVX2, PEN_CPU_AVX512, PEN_CPU_NEON, PEN_CPU_TIERS };

bool pen__cpu_has(int tier);
const char *pen__cpu_name(int tier);
/* The tier of that name; -1 for a word that is none, and for NULL. */
int pen__cpu_find(const char *name);

/* What PENSTOCK_CPU=wanted gives: that tier, or the best one below it that this CPU has; without
 * one (NULL, empty, a word that is no tier) the best there is. */
int pen__cpu_choose(const char *wanted);
/* The same for the environment as it was at the first call. */
int pen__cpu(void);

#endif
