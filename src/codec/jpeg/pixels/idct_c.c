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

#include "codec/jpeg/pixels/pixels_impl.h"

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

typedef struct Half {
    uint32_t a, b, c, d;
} Half;

INLINE Half even_part(int16_t x0, int16_t x2, int16_t x4, int16_t x6)
{
    uint32_t sum = mul((int16_t)(x0 + x4), PEN_F_ONE);
    uint32_t difference = mul((int16_t)(x0 - x4), PEN_F_ONE);
    uint32_t two = mul(x2, PEN_F_0_541) + mul(x6, PEN_F_0_541 - PEN_F_1_847);
    uint32_t three = mul(x2, PEN_F_0_541 + PEN_F_0_765) + mul(x6, PEN_F_0_541);
    return (Half){sum + three, difference + two, difference - two, sum - three};
}

INLINE Half odd_part(int16_t x1, int16_t x3, int16_t x5, int16_t x7)
{
    int16_t z3 = (int16_t)(x7 + x3), z4 = (int16_t)(x5 + x1);
    uint32_t a = mul(z3, PEN_F_1_175 - PEN_F_1_961) + mul(z4, PEN_F_1_175);
    uint32_t b = mul(z3, PEN_F_1_175) + mul(z4, PEN_F_1_175 - PEN_F_0_390);
    return (Half){
        b + mul(x1, PEN_F_1_501 - PEN_F_0_899) - mul(x7, PEN_F_0_899),
        a + mul(x3, PEN_F_3_072 - PEN_F_2_562) - mul(x5, PEN_F_2_562),
        b + mul(x5, PEN_F_2_053 - PEN_F_2_562) - mul(x3, PEN_F_2_562),
        a + mul(x7, PEN_F_0_298 - PEN_F_0_899) - mul(x1, PEN_F_0_899),
    };
}

/* Eight transforms side by side, which compilers make vectors of: x[k][i] is value k of the i-th.
 */
static void pass(const int16_t x[8][8], uint32_t ret[8][8])
{
    for (int i = 0; i < 8; i++) {
        Half even = even_part(x[0][i], x[2][i], x[4][i], x[6][i]);
        Half odd = odd_part(x[1][i], x[3][i], x[5][i], x[7][i]);
        ret[0][i] = even.a + odd.a;
        ret[1][i] = even.b + odd.b;
        ret[2][i] = even.c + odd.c;
        ret[3][i] = even.d + odd.d;
        ret[4][i] = even.d - odd.d;
        ret[5][i] = even.c - odd.c;
        ret[6][i] = even.b - odd.b;
        ret[7][i] = even.a - odd.a;
    }
}

/* Whether there is anything below the first row. */
static bool has_rows(const int16_t *block)
{
    int16_t any = 0;
    for (int i = 8; i < 64; i++)
        any |= block[i];
    return any;
}

static void idct(int16_t *block, const uint16_t *quant, uint8_t *to, size_t stride)
{
    int16_t x[8][8], between[8][8];
    uint32_t out[8][8];
    uint8_t samples[8][8];
    bool rows = has_rows(block);
    for (int i = 0; i < 64; i++)
        x[i / 8][i % 8] = (int16_t)(block[i] * quant[i]);
    memset(block, 0, 64 * sizeof *block);
    pass(x, out);
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 8; i++)
            between[i][k] = rows ? after_pass_1(out[k][i]) : (int16_t)(x[0][i] * 4);
    pass(between, out);
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 8; i++)
            samples[k][i] = (uint8_t)(clip(after_pass_2(out[k][i]), -128, 127) + 128);
    for (int y = 0; y < 8; y++)
        for (int i = 0; i < 8; i++)
            to[(size_t)y * stride + (size_t)i] = samples[i][y];
}

void pen__idct_full_c(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n, const uint16_t *quant,
                      uint8_t *plane, size_t stride)
{
    for (uint32_t i = 0; i < n; i++)
        idct(coefs + 64 * (size_t)blocks[i].from, quant, plane + blocks[i].to, stride);
}

void pen__idct_dc_c(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n, const uint16_t *quant,
                    uint8_t *plane, size_t stride)
{
    for (uint32_t i = 0; i < n; i++) {
        int16_t *block = coefs + 64 * (size_t)blocks[i].from;
        int16_t between = (int16_t)((int16_t)(block[0] * quant[0]) * 4);
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

/* ---- classes -------------------------------------------------------------------------------- */

static uint8_t class_of(int any, int far)
{
    return far ? PEN_JPEG_FULL : any ? PEN_JPEG_TOP4 : PEN_JPEG_DC;
}

void pen__classify_c(const int16_t *coefs, uint32_t n, uint8_t *ret_classes)
{
    for (uint32_t i = 0; i < n; i++, coefs += 64) {
        int16_t top[8] = {0}, any = 0, far = 0;
        for (int k = 1; k < 8; k++)
            top[k] = coefs[k];
        for (int k = 8; k < 32; k++)
            top[k % 8] |= coefs[k];
        for (int k = 32; k < 64; k++)
            far |= coefs[k];
        for (int k = 0; k < 4; k++) {
            any |= top[k];
            far |= top[k + 4];
        }
        ret_classes[i] = class_of(any, far);
    }
}

void pen__classify_zigzag_c(const int16_t *coefs, uint32_t n, uint8_t *ret_classes)
{
    for (uint32_t i = 0; i < n; i++, coefs += 64) {
        int any = 0, far = 0;
        for (int k = 1; k < 64; k++) {
            uint8_t natural = pen__jpeg_natural[k];
            *(natural < 32 && natural % 8 < 4 ? &any : &far) |= coefs[k];
        }
        ret_classes[i] = class_of(any, far);
    }
}
