/* SPDX-License-Identifier: Apache-2.0 */
/* One block at a time, with the overflows that idct_c.c names for aarch64. */
#include <arm_neon.h>

#include "codec/jpeg/pixels/pixels_impl.h"

/* Even and odd parts of a pass for four columns. With `four`, values 4 to 7 are zero. */
typedef struct Half {
    int32x4_t even[4], odd[4];
} Half;

INLINE void even_part(const int16x4_t x[8], bool four, int32x4_t ret[4])
{
    int16x4_t sum = four ? x[0] : vadd_s16(x[0], x[4]);
    int16x4_t difference = four ? x[0] : vsub_s16(x[0], x[4]);
    int32x4_t zero = vshll_n_s16(sum, 13), one = vshll_n_s16(difference, 13);
    int32x4_t two = vmull_n_s16(x[2], PEN_F_0_541);
    int32x4_t three = vmull_n_s16(x[2], PEN_F_0_541 + PEN_F_0_765);
    if (!four) {
        two = vmlal_n_s16(two, x[6], PEN_F_0_541 - PEN_F_1_847);
        three = vmlal_n_s16(three, x[6], PEN_F_0_541);
    }
    ret[0] = vaddq_s32(zero, three);
    ret[1] = vaddq_s32(one, two);
    ret[2] = vsubq_s32(one, two);
    ret[3] = vsubq_s32(zero, three);
}

INLINE void odd_part(const int16x4_t x[8], bool four, int32x4_t ret[4])
{
    int16x4_t z3 = four ? x[3] : vadd_s16(x[7], x[3]);
    int16x4_t z4 = four ? x[1] : vadd_s16(x[5], x[1]);
    int32x4_t a = vmull_n_s16(z3, PEN_F_1_175 - PEN_F_1_961);
    int32x4_t b = vmull_n_s16(z3, PEN_F_1_175);
    a = vmlal_n_s16(a, z4, PEN_F_1_175);
    b = vmlal_n_s16(b, z4, PEN_F_1_175 - PEN_F_0_390);
    ret[0] = vmlal_n_s16(b, x[1], PEN_F_1_501 - PEN_F_0_899);
    ret[1] = vmlal_n_s16(a, x[3], PEN_F_3_072 - PEN_F_2_562);
    ret[2] = vmlsl_n_s16(b, x[3], PEN_F_2_562);
    ret[3] = vmlsl_n_s16(a, x[1], PEN_F_0_899);
    if (four)
        return;
    ret[0] = vmlsl_n_s16(ret[0], x[7], PEN_F_0_899);
    ret[1] = vmlsl_n_s16(ret[1], x[5], PEN_F_2_562);
    ret[2] = vmlal_n_s16(ret[2], x[5], PEN_F_2_053 - PEN_F_2_562);
    ret[3] = vmlal_n_s16(ret[3], x[7], PEN_F_0_298 - PEN_F_0_899);
}

INLINE Half half_pass(const int16x8_t x[8], bool high, bool four)
{
    int16x4_t v[8];
    Half h;
    for (int i = 0; i < (four ? 4 : 8); i++)
        v[i] = high ? vget_high_s16(x[i]) : vget_low_s16(x[i]);
    even_part(v, four, h.even);
    odd_part(v, four, h.odd);
    return h;
}

INLINE void after_pass_1(const Half *h, int16x4_t ret[8])
{
    for (int i = 0; i < 4; i++) {
        ret[i] = vrshrn_n_s32(vaddq_s32(h->even[i], h->odd[i]), PEN_PASS_1_SHIFT);
        ret[7 - i] = vrshrn_n_s32(vsubq_s32(h->even[i], h->odd[i]), PEN_PASS_1_SHIFT);
    }
}

/* The upper 16 bits; the rest of the shift comes with the rounding to bytes. */
INLINE void after_pass_2(const Half *h, int16x4_t ret[8])
{
    for (int i = 0; i < 4; i++) {
        ret[i] = vaddhn_s32(h->even[i], h->odd[i]);
        ret[7 - i] = vsubhn_s32(h->even[i], h->odd[i]);
    }
}

INLINE void first_pass(int16x8_t x[8], bool four)
{
    int16x4_t low[8], high[8];
    Half h = half_pass(x, false, four);
    after_pass_1(&h, low);
    for (int i = 0; i < 8; i++)
        high[i] = vdup_n_s16(0);
    if (!four) {
        h = half_pass(x, true, four);
        after_pass_1(&h, high);
    }
    for (int i = 0; i < 8; i++)
        x[i] = vcombine_s16(low[i], high[i]);
}

INLINE int16x8_t first_64(int16x8_t a, int16x8_t b)
{
    return vreinterpretq_s16_s64(vtrn1q_s64(vreinterpretq_s64_s16(a), vreinterpretq_s64_s16(b)));
}

INLINE int16x8_t second_64(int16x8_t a, int16x8_t b)
{
    return vreinterpretq_s16_s64(vtrn2q_s64(vreinterpretq_s64_s16(a), vreinterpretq_s64_s16(b)));
}

INLINE int16x8_t first_32(int16x8_t a, int16x8_t b)
{
    return vreinterpretq_s16_s32(vtrn1q_s32(vreinterpretq_s32_s16(a), vreinterpretq_s32_s16(b)));
}

INLINE int16x8_t second_32(int16x8_t a, int16x8_t b)
{
    return vreinterpretq_s16_s32(vtrn2q_s32(vreinterpretq_s32_s16(a), vreinterpretq_s32_s16(b)));
}

INLINE void transpose(int16x8_t x[8])
{
    int16x8_t a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = vtrn1q_s16(x[i], x[i + 1]);
        a[i + 1] = vtrn2q_s16(x[i], x[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            b[i + j] = first_32(a[i + j], a[i + j + 2]);
            b[i + j + 2] = second_32(a[i + j], a[i + j + 2]);
        }
    for (int i = 0; i < 4; i++) {
        x[i] = first_64(b[i], b[i + 4]);
        x[i + 4] = second_64(b[i], b[i + 4]);
    }
}

/* Columns to rows of samples. */
INLINE void finish(int16x8_t x[8], uint8_t *to, size_t stride)
{
    transpose(x);
    for (size_t i = 0; i < 8; i++) {
        int8x8_t row = vqrshrn_n_s16(x[i], PEN_PASS_2_SHIFT - 16);
        vst1_u8(to + i * stride, vadd_u8(vreinterpret_u8_s8(row), vdup_n_u8(128)));
    }
}

INLINE void idct(int16_t *block, const uint16_t *quant, bool four, uint8_t *to, size_t stride)
{
    int16x8_t x[8];
    int16x4_t low[8], high[8];
    for (int i = 0; i < (four ? 4 : 8); i++) {
        x[i] = vmulq_s16(vld1q_s16(block + 8 * i), vreinterpretq_s16_u16(vld1q_u16(quant + 8 * i)));
        vst1q_s16(block + 8 * i, vdupq_n_s16(0));
    }
    first_pass(x, four);
    transpose(x);
    Half h = half_pass(x, false, four);
    after_pass_2(&h, low);
    h = half_pass(x, true, four);
    after_pass_2(&h, high);
    for (int i = 0; i < 8; i++)
        x[i] = vcombine_s16(low[i], high[i]);
    finish(x, to, stride);
}

void pen__idct_full_neon(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                         const uint16_t *quant, uint8_t *plane, size_t stride)
{
    for (uint32_t i = 0; i < n; i++)
        idct(coefs + 64 * (size_t)blocks[i].from, quant, false, plane + blocks[i].to, stride);
}

void pen__idct_top4_neon(int16_t *coefs, const PenJpegBlock *blocks, uint32_t n,
                         const uint16_t *quant, uint8_t *plane, size_t stride)
{
    for (uint32_t i = 0; i < n; i++)
        idct(coefs + 64 * (size_t)blocks[i].from, quant, true, plane + blocks[i].to, stride);
}

void pen__classify_neon(const int16_t *coefs, uint32_t n, uint8_t *ret_classes)
{
    for (uint32_t i = 0; i < n; i++, coefs += 64) {
        int16x8_t top = vsetq_lane_s16(0, vld1q_s16(coefs), 0), bottom = vld1q_s16(coefs + 32);
        for (int row = 1; row < 4; row++) {
            top = vorrq_s16(top, vld1q_s16(coefs + 8 * row));
            bottom = vorrq_s16(bottom, vld1q_s16(coefs + 32 + 8 * row));
        }
        int16x8_t right = vcombine_s16(vdup_n_s16(0), vget_high_s16(top));
        bool any = vmaxvq_u16(vreinterpretq_u16_s16(vorrq_s16(top, bottom)));
        bool far = vmaxvq_u16(vreinterpretq_u16_s16(vorrq_s16(right, bottom)));
        ret_classes[i] = (uint8_t)(!any + !far);
    }
}
