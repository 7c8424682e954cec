/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/picture/yuv.h"

#include "base/machine/cpu.h"
#include "codec/picture/yuv_impl.h"

/* ---- factors -------------------------------------------------------------------------------- */

enum { WEIGHT_ONE = 10000 };

typedef struct Weights { /* of red and blue in luma, in 1/WEIGHT_ONE */
    int16_t red, blue;
} Weights;

static const Weights weights[] = {
    [1] = {2126, 722},                                          /* BT.709 */
    [2] = {2990, 1140}, [3] = {2990, 1140}, [4] = {3000, 1100}, /* FCC */
    [5] = {2990, 1140}, [6] = {2990, 1140},                     /* BT.601 */
    [7] = {2120, 870},                                          /* SMPTE 240M */
    [9] = {2627, 593},  [10] = {2627, 593},                     /* BT.2020 */
};

/* a / b for b > 0, halves away from zero. */
static int16_t rounded(int64_t a, int64_t b)
{
    return (int16_t)((a < 0 ? a - b / 2 : a + b / 2) / b);
}

bool pen__yuv_factors(uint32_t matrix, bool is_full, uint32_t depth, PenYuvFactors *ret)
{
    if (matrix >= PEN_LEN(weights) || !weights[matrix].red)
        return false;
    const Weights *w = &weights[matrix];
    const int64_t one = WEIGHT_ONE, red = w->red, blue = w->blue, green = one - red - blue;
    const uint32_t shift = depth - 8;
    /* How many of 255 * 2^(d-8) parts one unit of luma, and of chroma, has. */
    const int64_t most = (1 << depth) - 1, all = 255 << shift;
    const int64_t luma = is_full ? most : 219 << shift, chroma = is_full ? most : 224 << shift;
    const int64_t c = (2 * all) << 13;
    *ret = (PenYuvFactors){
        .y = rounded(all << 14, luma),
        .rv = rounded(c * (one - red), one * chroma),
        .gu = rounded(-c * (one - blue) * blue, one * green * chroma),
        .gv = rounded(-c * (one - red) * red, one * green * chroma),
        .bu = rounded(c * (one - blue), one * chroma),
        .black = (uint16_t)(is_full ? 0 : 16 << shift),
        .most = (uint16_t)most,
        .depth = (uint16_t)depth,
    };
    return true;
}

/* ---- tiers ---------------------------------------------------------------------------------- */

#define TABLE(name)                                                                                \
    {                                                                                              \
        .tier = #name, .full = {pen__yuv_full_8_##name, pen__yuv_full_16_##name},                  \
        .half = {pen__yuv_half_8_##name, pen__yuv_half_16_##name},                                 \
        .gray = {pen__yuv_gray_8_##name, pen__yuv_gray_16_##name},                                 \
    }

static const PenYuvKernels tier_c = TABLE(c);
#ifdef __x86_64__
static const PenYuvKernels tier_avx2 = TABLE(avx2), tier_avx512 = TABLE(avx512);
#endif
#ifdef __aarch64__
static const PenYuvKernels tier_neon = TABLE(neon);
#endif

/* By tier; NULL where a lower one serves. */
static const PenYuvKernels *const tables[PEN_CPU_TIERS] = {
    [PEN_CPU_C] = &tier_c,
#ifdef __x86_64__
    [PEN_CPU_AVX2] = &tier_avx2,
    [PEN_CPU_AVX512] = &tier_avx512,
#endif
#ifdef __aarch64__
    [PEN_CPU_NEON] = &tier_neon,
#endif
};

const PenYuvKernels *pen__yuv_kernels_tier(const char *tier)
{
    int wanted = pen__cpu_find(tier);
    return wanted >= 0 && pen__cpu_has(wanted) ? tables[wanted] : NULL;
}

const PenYuvKernels *pen__yuv_kernels(void)
{
    int tier = pen__cpu();
    while (!tables[tier]) /* C ends it */
        tier--;
    return tables[tier];
}
