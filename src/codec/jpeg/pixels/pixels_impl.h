/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the tiers share. */
#ifndef PEN_CODEC_JPEG_PIXELS_PIXELS_IMPL_H
#define PEN_CODEC_JPEG_PIXELS_PIXELS_IMPL_H

#include "codec/jpeg/pixels/pixels.h"

#define INLINE static inline __attribute__((always_inline))

/* 13 bits behind the point, as in libjpeg's islow. Names are the cosines of jidctint.c. */
enum {
    PEN_F_0_298 = 2446,
    PEN_F_0_390 = 3196,
    PEN_F_0_541 = 4433,
    PEN_F_0_765 = 6270,
    PEN_F_0_899 = 7373,
    PEN_F_1_175 = 9633,
    PEN_F_1_501 = 12299,
    PEN_F_1_847 = 15137,
    PEN_F_1_961 = 16069,
    PEN_F_2_053 = 16819,
    PEN_F_2_562 = 20995,
    PEN_F_3_072 = 25172,
    PEN_F_ONE = 8192,
    PEN_PASS_1_SHIFT = 11, /* leaves two bits behind the point */
    PEN_PASS_2_SHIFT = 18,
};

typedef void PenIdctFn(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                       const uint16_t *quant, uint8_t *plane, size_t stride);
typedef void PenClassifyFn(const int16_t *coefs, uint32_t n, uint8_t *ret_classes);
typedef void PenRgbFn(const PenJpegRow *row, uint8_t *rgb);
typedef void PenGreyFn(const uint8_t *y, uint32_t n, uint8_t *rgb);

PenIdctFn pen__idct_full_c, pen__idct_full_zigzag_c, pen__idct_dc_c;
PenIdctFn pen__idct_4_c, pen__idct_2_c, pen__idct_1_c, pen__idct_4_zigzag_c, pen__idct_2_zigzag_c;
PenClassifyFn pen__classify_c, pen__classify_zigzag_c;
PenRgbFn pen__rgb_444_c, pen__rgb_422_c, pen__rgb_440_c, pen__rgb_420_c;
PenGreyFn pen__grey_rgb_c;

PenIdctFn pen__idct_full_avx2, pen__idct_top4_avx2;
PenIdctFn pen__idct_4_avx2, pen__idct_2_avx2, pen__idct_4_zigzag_avx2, pen__idct_2_zigzag_avx2;
PenClassifyFn pen__classify_avx2;
PenRgbFn pen__rgb_444_avx2, pen__rgb_422_avx2, pen__rgb_440_avx2, pen__rgb_420_avx2;
PenGreyFn pen__grey_rgb_avx2;

PenIdctFn pen__idct_full_avx512, pen__idct_top4_avx512, pen__idct_full_zigzag_avx512,
    pen__idct_top4_zigzag_avx512;
PenClassifyFn pen__classify_avx512, pen__classify_zigzag_avx512;
PenRgbFn pen__rgb_444_avx512, pen__rgb_422_avx512, pen__rgb_440_avx512, pen__rgb_420_avx512;
PenGreyFn pen__grey_rgb_avx512;

PenIdctFn pen__idct_full_neon, pen__idct_top4_neon;
PenClassifyFn pen__classify_neon;
PenRgbFn pen__rgb_444_neon, pen__rgb_422_neon, pen__rgb_440_neon, pen__rgb_420_neon;
PenGreyFn pen__grey_rgb_neon;

/* One pixel of a row, the k-th: the definition of what the kernels of rows give, and what they use
 * at the ends of the image. */
void pen__rgb_pixel(const PenJpegRow *row, int sampling, uint32_t k, uint8_t *rgb);

#endif
