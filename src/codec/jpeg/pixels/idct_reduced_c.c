/* SPDX-License-Identifier: Apache-2.0 */
/* The inverse DCT to 4 x 4, 2 x 2 or 1 x 1 samples: those of libjpeg's jidctred.c, for images that
 * are decoded at 1/2, 1/4 or 1/8 of their size.
 *
 * Values that overflow are treated as by the vector versions of libjpeg-turbo for x86-64 (see
 * idct_c.c), which has none for 1 x 1: that takes ten bits of the value as the index of a table. */
#include "codec/jpeg/pixels/idct_reduced.h"

INLINE int32_t clip(int32_t v, int32_t low, int32_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Sums keep 32 bits: unsigned, as in C the others must not overflow. */
INLINE uint32_t mul(int32_t a, int32_t b)
{
    return (uint32_t)(a * b);
}

INLINE int32_t descale(uint32_t sum, int shift)
{
    return (int32_t)(sum + (1u << (shift - 1))) >> shift;
}

INLINE uint8_t sample(int32_t v)
{
    return (uint8_t)(clip(v, -128, 127) + 128);
}

/* ---- 4 x 4 ---------------------------------------------------------------------------------- */

/* Four outputs of one line; value 4 has no part in them. */
INLINE void line_of_4(const int16_t x[8], uint32_t ret[4])
{
    uint32_t zero = mul(x[0], 1 << 14);
    uint32_t even = mul(x[2], PEN_F_1_847) - mul(x[6], PEN_F_0_765);
    uint32_t outer =
        mul(x[1], PEN_F_2_562) + mul(x[3], PEN_F_0_899) - mul(x[5], F_0_601) - mul(x[7], F_0_509);
    uint32_t inner =
        mul(x[1], F_1_061) - mul(x[3], F_2_172) + mul(x[5], F_1_451) - mul(x[7], F_0_211);
    ret[0] = zero + even + outer;
    ret[1] = zero - even + inner;
    ret[2] = zero - even - inner;
    ret[3] = zero + even - outer;
}

/* Is there anything below the first row that counts? */
INLINE bool has_rows_of_4(const int16_t *block)
{
    int16_t any = 0;
    for (int i = 8; i < 32; i++)
        any |= block[i];
    for (int i = 40; i < 64; i++)
        any |= block[i];
    return any;
}

INLINE void idct_4(const int16_t *block, const uint16_t *quant, uint8_t *to, size_t stride)
{
    int16_t x[64], between[4][8];
    bool rows = has_rows_of_4(block);
    for (int i = 0; i < 64; i++)
        x[i] = (int16_t)(block[i] * quant[i]);
    for (int i = 0; i < 8; i++) {
        int16_t column[8];
        uint32_t out[4];
        for (int k = 0; k < 8; k++)
            column[k] = x[8 * k + i];
        line_of_4(column, out);
        for (int k = 0; k < 4; k++) /* without rows the low 16 bits are kept instead */
            between[k][i] = (int16_t)(rows ? clip(descale(out[k], 12), INT16_MIN, INT16_MAX)
                                           : (int16_t)(x[i] * 4));
    }
    for (size_t y = 0; y < 4; y++) {
        uint32_t out[4];
        line_of_4(between[y], out);
        for (size_t k = 0; k < 4; k++)
            to[y * stride + k] = sample(descale(out[k], 19));
    }
}

/* ---- 2 x 2 ---------------------------------------------------------------------------------- */

/* What odd values add to the first output, and take from the second. */
INLINE uint32_t odd_of_2(int32_t x1, int32_t x3, int32_t x5, int32_t x7)
{
    return mul(x1, F_3_624) - mul(x3, F_1_272) + mul(x5, F_0_850) - mul(x7, F_0_720);
}

INLINE void idct_2(const int16_t *block, const uint16_t *quant, uint8_t *to, size_t stride)
{
    int16_t x[64];
    int32_t between[2][8];
    for (int i = 0; i < 64; i++)
        x[i] = (int16_t)(block[i] * quant[i]);
    for (int i = 0; i < 8; i++) {
        uint32_t zero = mul(x[i], 1 << 15),
                 odd = odd_of_2(x[8 + i], x[24 + i], x[40 + i], x[56 + i]);
        between[0][i] = descale(zero + odd, 13);
        between[1][i] = descale(zero - odd, 13);
    }
    for (size_t y = 0; y < 2; y++) {
        int32_t *b = between[y];
        for (int i = 1; i < 8; i++)
            b[i] = clip(b[i], INT16_MIN, INT16_MAX);
        uint32_t zero = (uint32_t)b[0] << 15, odd = odd_of_2(b[1], b[3], b[5], b[7]);
        to[y * stride] = sample(descale(zero + odd, 20));
        to[y * stride + 1] = sample(descale(zero - odd, 20));
    }
}

/* ---- 1 x 1 ---------------------------------------------------------------------------------- */

INLINE uint8_t idct_1(int32_t dc, int32_t quant)
{
    int32_t v = (dc * quant + 4) >> 3 & 1023;
    return sample(v < 512 ? v : v - 1024);
}

/* ---- blocks --------------------------------------------------------------------------------- */

#define REDUCED(name, size, zigzag)                                                                \
    void name(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n, const uint16_t *quant,       \
              uint8_t *plane, size_t stride)                                                       \
    {                                                                                              \
        for (uint32_t i = 0; i < n; i++) {                                                         \
            int16_t *block = coefs + 64 * (size_t)blocks[i].from, sorted[64];                      \
            if (zigzag)                                                                            \
                sort(block, sorted);                                                               \
            idct_##size(zigzag ? sorted : block, quant, plane + blocks[i].to, stride);             \
            memset(block, 0, 64 * sizeof *block);                                                  \
        }                                                                                          \
    }

REDUCED(pen__idct_4_c, 4, false)
REDUCED(pen__idct_2_c, 2, false)
REDUCED(pen__idct_4_zigzag_c, 4, true)
REDUCED(pen__idct_2_zigzag_c, 2, true)

/* The first coefficient is the first in both orders. */
void pen__idct_1_c(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n, const uint16_t *quant,
                   uint8_t *plane, size_t stride)
{
    (void)stride;
    for (uint32_t i = 0; i < n; i++) {
        int16_t *block = coefs + 64 * (size_t)blocks[i].from;
        plane[blocks[i].to] = idct_1(block[0], (int16_t)quant[0]);
        memset(block, 0, 64 * sizeof *block);
    }
}
