/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/pixels/pixels.h"

#include "base/machine/cpu.h"
#include "codec/jpeg/pixels/pixels_impl.h"

static const PenJpegPixels tier_c = {
    .tier = "c",
    .order = PEN_JPEG_NATURAL,
    .classify = {pen__classify_c, pen__classify_zigzag_c},
    .idct = {{pen__idct_full_c, pen__idct_full_c, pen__idct_dc_c},
             {pen__idct_full_zigzag_c, pen__idct_full_zigzag_c, pen__idct_dc_c}},
    .reduced = {{pen__idct_4_c, pen__idct_2_c, pen__idct_1_c},
                {pen__idct_4_zigzag_c, pen__idct_2_zigzag_c, pen__idct_1_c}},
    .rgb = {pen__rgb_444_c, pen__rgb_422_c, pen__rgb_440_c, pen__rgb_420_c},
    .grey_rgb = pen__grey_rgb_c,
};

#ifdef __x86_64__
static const PenJpegPixels tier_avx2 = {
    .tier = "avx2",
    .order = PEN_JPEG_NATURAL,
    .classify = {pen__classify_avx2, pen__classify_zigzag_c},
    .idct = {{pen__idct_full_avx2, pen__idct_top4_avx2, pen__idct_dc_c},
             {pen__idct_full_zigzag_c, pen__idct_full_zigzag_c, pen__idct_dc_c}},
    .reduced = {{pen__idct_4_avx2, pen__idct_2_avx2, pen__idct_1_c},
                {pen__idct_4_zigzag_avx2, pen__idct_2_zigzag_avx2, pen__idct_1_c}},
    .rgb = {pen__rgb_444_avx2, pen__rgb_422_avx2, pen__rgb_440_avx2, pen__rgb_420_avx2},
    .grey_rgb = pen__grey_rgb_avx2,
};

static const PenJpegPixels tier_avx512 = {
    .tier = "avx512",
    .order = PEN_JPEG_NATURAL,
    .classify = {pen__classify_avx512, pen__classify_zigzag_avx512},
    .idct = {{pen__idct_full_avx512, pen__idct_top4_avx512, pen__idct_dc_c},
             {pen__idct_full_zigzag_avx512, pen__idct_top4_zigzag_avx512, pen__idct_dc_c}},
    .reduced = {{pen__idct_4_avx2, pen__idct_2_avx2, pen__idct_1_c},
                {pen__idct_4_zigzag_avx2, pen__idct_2_zigzag_avx2, pen__idct_1_c}},
    .rgb = {pen__rgb_444_avx512, pen__rgb_422_avx512, pen__rgb_440_avx512, pen__rgb_420_avx512},
    .grey_rgb = pen__grey_rgb_avx512,
};
#endif

#ifdef __aarch64__
static const PenJpegPixels tier_neon = {
    .tier = "neon",
    .order = PEN_JPEG_NATURAL,
    .classify = {pen__classify_neon, pen__classify_zigzag_c},
    .idct = {{pen__idct_full_neon, pen__idct_top4_neon, pen__idct_dc_c},
             {pen__idct_full_zigzag_c, pen__idct_full_zigzag_c, pen__idct_dc_c}},
    .reduced = {{pen__idct_4_c, pen__idct_2_c, pen__idct_1_c},
                {pen__idct_4_zigzag_c, pen__idct_2_zigzag_c, pen__idct_1_c}},
    .rgb = {pen__rgb_444_neon, pen__rgb_422_neon, pen__rgb_440_neon, pen__rgb_420_neon},
    .grey_rgb = pen__grey_rgb_neon,
};
#endif

/* By tier; NULL where a lower one serves. */
static const PenJpegPixels *const tables[PEN_CPU_TIERS] = {
    [PEN_CPU_C] = &tier_c,
#ifdef __x86_64__
    [PEN_CPU_AVX2] = &tier_avx2,
    [PEN_CPU_AVX512] = &tier_avx512,
#endif
#ifdef __aarch64__
    [PEN_CPU_NEON] = &tier_neon,
#endif
};

const PenJpegPixels *pen__jpeg_pixels_tier(const char *tier)
{
    int wanted = pen__cpu_find(tier);
    return wanted >= 0 && pen__cpu_has(wanted) ? tables[wanted] : NULL;
}

const PenJpegPixels *pen__jpeg_pixels(void)
{
    int tier = pen__cpu();
    while (!tables[tier]) /* C ends it */
        tier--;
    return tables[tier];
}
