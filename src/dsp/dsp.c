/* SPDX-License-Identifier: Apache-2.0 */
#include "dsp/dsp.h"

#include "base/machine/cpu.h"
#include "dsp/dsp_impl.h"

static const PenDsp tier_c = {
    .tier = "c",
    .weigh = pen__weigh_c,
    .across = pen__across_c,
    .across_two = pen__across_two_c,
    .down = pen__down_c,
    .store = pen__store_c,
    .planes_u8 = pen__planes_u8_c,
    .brightness = pen__brightness_c,
    .contrast = pen__contrast_c,
    .saturation = pen__saturation_c,
    .hue = pen__hue_c,
    .grey = pen__grey_c,
    .grey_sum = pen__grey_sum_c,
    .warp_fixed = pen__warp_fixed_c,
    .warp_bilinear = pen__warp_general,
    .lookup = pen__lookup_c,
    .count = pen__count_c,
    .extremes = pen__extremes_c,
    .fold = pen__fold_c,
    .sharpen = pen__sharpen_c,
    .widen = pen__widen_c,
    .blur_across = pen__blur_across_c,
    .blur_down = pen__blur_down_c,
    .mix = pen__mix_c,
};

#ifdef __x86_64__
static const PenDsp tier_avx2 = {
    .tier = "avx2",
    .weigh = pen__weigh_avx2,
    .across = pen__across_avx2,
    .across_two = pen__across_two_avx2,
    .down = pen__down_avx2,
    .store = pen__store_avx2,
    .planes_u8 = pen__planes_u8_avx2,
    .brightness = pen__brightness_avx2,
    .contrast = pen__contrast_avx2,
    .saturation = pen__saturation_avx2,
    .hue = pen__hue_avx2,
    .grey = pen__grey_avx2,
    .grey_sum = pen__grey_sum_avx2,
    .warp_fixed = pen__warp_fixed_avx2,
    .warp_bilinear = pen__warp_bilinear_avx2,
    .lookup = pen__lookup_avx2,
    .count = pen__count_c,
    .extremes = pen__extremes_avx2,
    .fold = pen__fold_avx2,
    .sharpen = pen__sharpen_avx2,
    .widen = pen__widen_avx2,
    .blur_across = pen__blur_across_avx2,
    .blur_down = pen__blur_down_avx2,
    .mix = pen__mix_avx2,
};

static const PenDsp tier_avx512 = {
    .tier = "avx512",
    .weigh = pen__weigh_avx512,
    .spread = pen__spread_avx512,
    .across = pen__across_avx512,
    .across_two = pen__across_two_avx512,
    .down = pen__down_avx512,
    .store = pen__store_avx2,
    .planes_u8 = pen__planes_u8_avx2,
    .brightness = pen__brightness_avx2,
    .contrast = pen__contrast_avx2,
    .saturation = pen__saturation_avx2,
    .hue = pen__hue_avx2,
    .grey = pen__grey_avx2,
    .grey_sum = pen__grey_sum_avx2,
    .warp_fixed = pen__warp_fixed_avx2,
    .warp_bilinear = pen__warp_bilinear_avx2,
    .lookup = pen__lookup_avx2,
    .count = pen__count_c,
    .extremes = pen__extremes_avx2,
    .fold = pen__fold_avx2,
    .sharpen = pen__sharpen_avx2,
    .widen = pen__widen_avx2,
    .blur_across = pen__blur_across_avx2,
    .blur_down = pen__blur_down_avx2,
    .mix = pen__mix_avx2,
};
#endif

/* By tier; NULL where a lower one serves. */
static const PenDsp *const tables[PEN_CPU_TIERS] = {
    [PEN_CPU_C] = &tier_c,
#ifdef __x86_64__
    [PEN_CPU_AVX2] = &tier_avx2,
    [PEN_CPU_AVX512] = &tier_avx512,
#endif
};

/* The best table that is not above a tier. */
static const PenDsp *table_for(int tier)
{
    while (!tables[tier]) /* C ends it */
        tier--;
    return tables[tier];
}

const PenDsp *pen__dsp_tier(const char *tier)
{
    int wanted = pen__cpu_find(tier);
    return wanted >= 0 && pen__cpu_has(wanted) ? tables[wanted] : NULL;
}

const PenDsp *pen__dsp_choose(const char *wanted)
{
    return table_for(pen__cpu_choose(wanted));
}

const PenDsp *pen__dsp(void)
{
    return table_for(pen__cpu());
}
