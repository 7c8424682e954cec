/* SPDX-License-Identifier: Apache-2.0 */
/* The inverse DCT of libjpeg's "islow", one block at a time: the reference of all tiers.
 *
 * For what an encoder writes, all versions of it in libjpeg-turbo agree. Coefficients that no image
 * has (a sample far outside of 0-255) overflow, and there each version does something of its own;
 * here is done what the one does that decodes on this kind of machine, as both decoders have to
 * give the same pixels for every file.
 *
 * In all vector versions (x86-64: SSE2 and AVX2, which agree; aarch64: NEON):
 *   - a coefficient times its quantisation value keeps the low 16 bits, where the portable C
 *     version keeps all;
 *   - the sums of two inputs of a pass (0 + 4, 0 - 4, 7 + 3, 5 + 1) keep 16 bits, sums of products
 *     32 bits, where C has 64;
 *   - samples are clipped to 0-255, where C takes ten bits of the value as the index of a table.
 * x86-64 between the passes: values are clipped to 16 bits, except in a block with nothing but its
 * first row: there the first pass is a shift by two that keeps the low 16 bits. After the second
 * pass the rounding may overflow 32 bits.
 * aarch64 between the passes: the low 16 bits are kept, always. Rounding never overflows.
 * On other machines (libjpeg-turbo without vectors) the results of overflow are those of x86-64. */
#include <string.h>

#include "codec/pixels_tier.h"

const uint8_t pen__jpeg_natural[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

static int32_t clip(int32_t v, int32_t low, int32_t high)
{
    return v < low ? low : v > high ? high : v;
}

#ifdef __aarch64__
static int16_t after_pass_1(uint32_t sum)
{
    return (int16_t)((sum + (1u << (PEN_PASS_1_SHIFT - 1))) >> PEN_PASS_1_SHIFT);
}

static int32_t after_pass_2(uint32_t sum)
{
    return (((int32_t)sum >> 16) + 2) >> (PEN_PASS_2_SHIFT - 16);
}
#else
static int16_t after_pass_1(uint32_t sum)
{
    int32_t v = (int32_t)(sum + (1u << (PEN_PASS_1_SHIFT - 1))) >> PEN_PASS_1_SHIFT;
    return (int16_t)clip(v, INT16_MIN, INT16_MAX);
}

static int32_t after_pass_2(uint32_t sum)
{
    return (int32_t)(sum + (1u << (PEN_PASS_2_SHIFT - 1))) >> PEN_PASS_2_SHIFT;
}
#endif

/* Sums keep 32 bits: unsigned, as in C the others must not overflow. */
static uint32_t mul(int32_t a, int32_t b)
{
    return (uint32_t)(a * b);
}

static void even_part(const int16_t in[8], uint32_t ret[4])
{
    uint32_t sum = mul((int16_t)(in[0] + in[4]), PEN_F_ONE);
    uint32_t difference = mul((int16_t)(in[0] - in[4]), PEN_F_ONE);
    uint32_t two = mul(in[2], PEN_F_0_541) + mul(in[6], PEN_F_0_541 - PEN_F_1_847);
    uint32_t three = mul(in[2], PEN_F_0_541 + PEN_F_0_765) + mul(in[6], PEN_F_0_541);
    ret[0] = sum + three;
    ret[1] = difference + two;
    ret[2] = difference - two;
    ret[3] = sum - three;
}

static void odd_part(const int16_t in[8], uint32_t ret[4])
{
    int16_t z3 = (int16_t)(in[7] + in[3]), z4 = (int16_t)(in[5] + in[1]);
    uint32_t a = mul(z3, PEN_F_1_175 - PEN_F_1_961) + mul(z4, PEN_F_1_175);
    uint32_t b = mul(z3, PEN_F_1_175) + mul(z4, PEN_F_1_175 - PEN_F_0_390);
    ret[0] = b + mul(in[1], PEN_F_1_501 - PEN_F_0_899) - mul(in[7], PEN_F_0_899);
    ret[1] = a + mul(in[3], PEN_F_3_072 - PEN_F_2_562) - mul(in[5], PEN_F_2_562);
    ret[2] = b + mul(in[5], PEN_F_2_053 - PEN_F_2_562) - mul(in[3], PEN_F_2_562);
    ret[3] = a + mul(in[7], PEN_F_0_298 - PEN_F_0_899) - mul(in[1], PEN_F_0_899);
}

static void pass(const int16_t in[8], uint32_t ret[8])
{
    uint32_t even[4], odd[4];
    even_part(in, even);
    odd_part(in, odd);
    for (int i = 0; i < 4; i++) {
        ret[i] = even[i] + odd[i];
        ret[7 - i] = even[i] - odd[i];
    }
}

/* Whether there is anything below the first row. */
static bool has_rows(const int16_t *block)
{
    int any = 0;
    for (int i = 8; i < 64; i++)
        any |= block[i];
    return any;
}

/* `side`: 8, or 4 when only the top left quarter is not zero. */
static inline __attribute__((always_inline)) void first_pass(const int16_t *block,
                                                             const uint16_t *quant, int side,
                                                             int16_t between[8][8])
{
    bool rows = has_rows(block);
    for (int x = 0; x < side; x++) {
        int16_t in[8] = {0};
        uint32_t out[8];
        for (int y = 0; y < side; y++)
            in[y] = (int16_t)(block[y * 8 + x] * quant[y * 8 + x]);
        pass(in, out);
        for (int y = 0; y < 8; y++)
            between[y][x] = rows ? after_pass_1(out[y]) : (int16_t)(in[0] * 4);
    }
}

static inline __attribute__((always_inline)) void idct(int16_t *block, const uint16_t *quant,
                                                       int side, uint8_t *to, size_t stride)
{
    int16_t between[8][8] = {{0}};
    first_pass(block, quant, side, between);
    for (int y = 0; y < 8; y++, to += stride) {
        uint32_t out[8];
        pass(between[y], out);
        for (int x = 0; x < 8; x++)
            to[x] = (uint8_t)(clip(after_pass_2(out[x]), -128, 127) + 128);
    }
    memset(block, 0, 64 * sizeof *block);
}

void pen__idct_full_c(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n, const uint16_t *quant,
                      uint8_t *plane, size_t stride)
{
    for (uint32_t i = 0; i < n; i++)
        idct(coefs + 64 * (size_t)blocks[i].from, quant, 8, plane + blocks[i].to, stride);
}

void pen__idct_top4_c(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n, const uint16_t *quant,
                      uint8_t *plane, size_t stride)
{
    for (uint32_t i = 0; i < n; i++)
        idct(coefs + 64 * (size_t)blocks[i].from, quant, 4, plane + blocks[i].to, stride);
}

void pen__idct_dc_c(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n, const uint16_t *quant,
                    uint8_t *plane, size_t stride)
{
    for (uint32_t i = 0; i < n; i++) {
        int16_t *block = coefs + 64 * (size_t)blocks[i].from;
        int16_t between = (int16_t)(block[0] * quant[0] * 4);
        uint8_t *to = plane + blocks[i].to;
        uint8_t sample = (uint8_t)(clip((between + 16) >> 5, -128, 127) + 128);
        block[0] = 0;
        for (int y = 0; y < 8; y++)
            memset(to + (size_t)y * stride, sample, 8);
    }
}

/* ---- the other order ------------------------------------------------------------------------ */

static void to_natural(int16_t *block)
{
    int16_t zigzag[64];
    memcpy(zigzag, block, sizeof zigzag);
    for (int i = 0; i < 64; i++)
        block[pen__jpeg_natural[i]] = zigzag[i];
}

void pen__idct_full_zigzag_c(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                             const uint16_t *quant, uint8_t *plane, size_t stride)
{
    for (uint32_t i = 0; i < n; i++)
        to_natural(coefs + 64 * (size_t)blocks[i].from);
    pen__idct_full_c(coefs, blocks, n, quant, plane, stride);
}

void pen__idct_top4_zigzag_c(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                             const uint16_t *quant, uint8_t *plane, size_t stride)
{
    for (uint32_t i = 0; i < n; i++)
        to_natural(coefs + 64 * (size_t)blocks[i].from);
    pen__idct_top4_c(coefs, blocks, n, quant, plane, stride);
}

/* ---- classes -------------------------------------------------------------------------------- */

static bool in_top4(int natural)
{
    return natural < 32 && natural % 8 < 4;
}

static uint8_t class_of(int any, int far)
{
    return far ? PEN_JPEG_FULL : any ? PEN_JPEG_TOP4 : PEN_JPEG_DC;
}

void pen__classify_c(const int16_t *coefs, uint32_t n, uint8_t *ret_classes)
{
    for (uint32_t i = 0; i < n; i++, coefs += 64) {
        int any = 0, far = 0;
        for (int k = 1; k < 64; k++)
            *(in_top4(k) ? &any : &far) |= coefs[k];
        ret_classes[i] = class_of(any, far);
    }
}

void pen__classify_zigzag_c(const int16_t *coefs, uint32_t n, uint8_t *ret_classes)
{
    for (uint32_t i = 0; i < n; i++, coefs += 64) {
        int any = 0, far = 0;
        for (int k = 1; k < 64; k++)
            *(in_top4(pen__jpeg_natural[k]) ? &any : &far) |= coefs[k];
        ret_classes[i] = class_of(any, far);
    }
}
