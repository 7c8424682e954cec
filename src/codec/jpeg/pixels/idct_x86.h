/* SPDX-License-Identifier: Apache-2.0 */
/* The inverse DCT of idct_c.c on vectors of 16-bit values, one block in every 128 bits. The
 * file that includes this one says what a vector is: V, and OP(name) for its instructions. Shifts
 * are uint8_t as some instructions take int, others unsigned. */
#ifndef PEN_CODEC_JPEG_PIXELS_IDCT_X86_H
#define PEN_CODEC_JPEG_PIXELS_IDCT_X86_H

/* For pairs of 16-bit values: low * `low` + high * `high`. */
INLINE V weights(int low, int high)
{
    return OP(set1_epi32)((int)((uint32_t)(uint16_t)high << 16 | (uint16_t)low));
}

INLINE V dot(V pairs, int low, int high)
{
    return OP(madd_epi16)(pairs, weights(low, high));
}

/* The last step of a pass for half of the columns: even and odd parts to eight values. */
INLINE void join(const V even[4], const V odd[4], uint8_t shift, V ret[8])
{
    for (int i = 0; i < 4; i++) {
        ret[i] = OP(srai_epi32)(OP(add_epi32)(even[i], odd[i]), shift);
        ret[7 - i] = OP(srai_epi32)(OP(sub_epi32)(even[i], odd[i]), shift);
    }
}

/* What one half of the columns needs, as pairs. */
typedef struct Pairs {
    V sum, difference; /* of 0 and 4, each with an 8 that becomes the rounding */
    V x26, x71, x53;
    V z34; /* 7 + 3, 5 + 1 */
} Pairs;

INLINE void half_pass(const Pairs *p, uint8_t shift, V ret[8])
{
    enum { EIGHTH = 8 };
    int rounding = (1 << (shift - 1)) / EIGHTH;
    V sum = dot(p->sum, PEN_F_ONE, rounding);
    V difference = dot(p->difference, PEN_F_ONE, rounding);
    V two = dot(p->x26, PEN_F_0_541, PEN_F_0_541 - PEN_F_1_847);
    V three = dot(p->x26, PEN_F_0_541 + PEN_F_0_765, PEN_F_0_541);
    V even[4] = {OP(add_epi32)(sum, three), OP(add_epi32)(difference, two),
                 OP(sub_epi32)(difference, two), OP(sub_epi32)(sum, three)};
    V a = dot(p->z34, PEN_F_1_175 - PEN_F_1_961, PEN_F_1_175);
    V b = dot(p->z34, PEN_F_1_175, PEN_F_1_175 - PEN_F_0_390);
    V odd[4] = {
        OP(add_epi32)(b, dot(p->x71, -PEN_F_0_899, PEN_F_1_501 - PEN_F_0_899)),
        OP(add_epi32)(a, dot(p->x53, -PEN_F_2_562, PEN_F_3_072 - PEN_F_2_562)),
        OP(add_epi32)(b, dot(p->x53, PEN_F_2_053 - PEN_F_2_562, -PEN_F_2_562)),
        OP(add_epi32)(a, dot(p->x71, PEN_F_0_298 - PEN_F_0_899, -PEN_F_0_899)),
    };
    join(even, odd, shift, ret);
}

/* x[i]: row i in the first pass, column i in the second. */
INLINE void full_pass(V x[8], uint8_t shift)
{
    V eight = OP(set1_epi16)(8), low[8], high[8];
    V sum = OP(add_epi16)(x[0], x[4]), difference = OP(sub_epi16)(x[0], x[4]);
    V z3 = OP(add_epi16)(x[7], x[3]), z4 = OP(add_epi16)(x[5], x[1]);
    Pairs l = {OP(unpacklo_epi16)(sum, eight), OP(unpacklo_epi16)(difference, eight),
               OP(unpacklo_epi16)(x[2], x[6]), OP(unpacklo_epi16)(x[7], x[1]),
               OP(unpacklo_epi16)(x[5], x[3]), OP(unpacklo_epi16)(z3, z4)};
    Pairs h = {OP(unpackhi_epi16)(sum, eight), OP(unpackhi_epi16)(difference, eight),
               OP(unpackhi_epi16)(x[2], x[6]), OP(unpackhi_epi16)(x[7], x[1]),
               OP(unpackhi_epi16)(x[5], x[3]), OP(unpackhi_epi16)(z3, z4)};
    half_pass(&l, shift, low);
    half_pass(&h, shift, high);
    for (int i = 0; i < 8; i++)
        x[i] = OP(packs_epi32)(low[i], high[i]);
}

/* The same when 4 to 7 are zero; no sum of two can overflow then. */
INLINE void half_pass_4(V x02, V x13, uint8_t shift, V ret[8])
{
    V rounding = OP(set1_epi32)(1 << (shift - 1));
    V even[4] = {dot(x02, PEN_F_ONE, PEN_F_0_541 + PEN_F_0_765), dot(x02, PEN_F_ONE, PEN_F_0_541),
                 dot(x02, PEN_F_ONE, -PEN_F_0_541),
                 dot(x02, PEN_F_ONE, -PEN_F_0_541 - PEN_F_0_765)};
    V odd[4] = {
        dot(x13, PEN_F_1_175 - PEN_F_0_390 + PEN_F_1_501 - PEN_F_0_899, PEN_F_1_175),
        dot(x13, PEN_F_1_175, PEN_F_3_072 - PEN_F_2_562 + PEN_F_1_175 - PEN_F_1_961),
        dot(x13, PEN_F_1_175 - PEN_F_0_390, PEN_F_1_175 - PEN_F_2_562),
        dot(x13, PEN_F_1_175 - PEN_F_0_899, PEN_F_1_175 - PEN_F_1_961),
    };
    for (int i = 0; i < 4; i++)
        even[i] = OP(add_epi32)(even[i], rounding);
    join(even, odd, shift, ret);
}

INLINE void transpose(V x[8])
{
    V a[8], b[8];
    for (int i = 0; i < 4; i++) {
        a[2 * i] = OP(unpacklo_epi16)(x[2 * i], x[2 * i + 1]);
        a[2 * i + 1] = OP(unpackhi_epi16)(x[2 * i], x[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            b[i + 2 * j] = OP(unpacklo_epi32)(a[i + j], a[i + j + 2]);
            b[i + 2 * j + 1] = OP(unpackhi_epi32)(a[i + j], a[i + j + 2]);
        }
    for (int i = 0; i < 4; i++) {
        x[2 * i] = OP(unpacklo_epi64)(b[i], b[i + 4]);
        x[2 * i + 1] = OP(unpackhi_epi64)(b[i], b[i + 4]);
    }
}

/* Columns of samples to bytes, in pairs of rows: 0 and 1, 2 and 3, ... */
INLINE void finish(const V x[8], V ret[4])
{
    V c[4], a[4], b[4];
    for (int i = 0; i < 4; i++)
        c[i] = OP(add_epi8)(OP(packs_epi16)(x[i], x[i + 4]), OP(set1_epi8)(-128));
    for (int i = 0; i < 2; i++) {
        a[2 * i] = OP(unpacklo_epi8)(c[2 * i], c[2 * i + 1]);
        a[2 * i + 1] = OP(unpackhi_epi8)(c[2 * i], c[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        b[2 * i] = OP(unpacklo_epi16)(a[i], a[i + 2]);
        b[2 * i + 1] = OP(unpackhi_epi16)(a[i], a[i + 2]);
    }
    for (int i = 0; i < 2; i++) {
        ret[2 * i] = OP(unpacklo_epi32)(b[i], b[i + 2]);
        ret[2 * i + 1] = OP(unpackhi_epi32)(b[i], b[i + 2]);
    }
}

/* From dequantised rows to pairs of rows of samples. */
INLINE void full_idct(V x[8], V ret[4])
{
    full_pass(x, PEN_PASS_1_SHIFT);
    transpose(x);
    full_pass(x, PEN_PASS_2_SHIFT);
    finish(x, ret);
}

/* Of the four rows only the four columns at the left count. */
INLINE void top4_idct(const V rows[4], V ret[4])
{
    V low[8], high[8], p[4], a[4], x[8];
    half_pass_4(OP(unpacklo_epi16)(rows[0], rows[2]), OP(unpacklo_epi16)(rows[1], rows[3]),
                PEN_PASS_1_SHIFT, low);
    for (int i = 0; i < 4; i++) /* rows i and i + 4 */
        p[i] = OP(packs_epi32)(low[i], low[i + 4]);
    for (int i = 0; i < 2; i++) {
        a[2 * i] = OP(unpacklo_epi16)(p[2 * i], p[2 * i + 1]);
        a[2 * i + 1] = OP(unpackhi_epi16)(p[2 * i], p[2 * i + 1]);
    }
    V b0 = OP(unpacklo_epi32)(a[0], a[2]), b1 = OP(unpackhi_epi32)(a[0], a[2]);
    V b2 = OP(unpacklo_epi32)(a[1], a[3]), b3 = OP(unpackhi_epi32)(a[1], a[3]);
    V c0 = OP(unpacklo_epi64)(b0, b2), c1 = OP(unpackhi_epi64)(b0, b2);
    V c2 = OP(unpacklo_epi64)(b1, b3), c3 = OP(unpackhi_epi64)(b1, b3);
    half_pass_4(OP(unpacklo_epi16)(c0, c2), OP(unpacklo_epi16)(c1, c3), PEN_PASS_2_SHIFT, low);
    half_pass_4(OP(unpackhi_epi16)(c0, c2), OP(unpackhi_epi16)(c1, c3), PEN_PASS_2_SHIFT, high);
    for (int i = 0; i < 8; i++)
        x[i] = OP(packs_epi32)(low[i], high[i]);
    finish(x, ret);
}

/* Whether 4 times a value of the first row needs more than 16 bits. Only then does it matter that
 * a block without other rows goes another way (idct_c.c). */
INLINE V beyond(V first_row)
{
    return OP(and_si)(OP(add_epi16)(first_row, OP(set1_epi16)(0x2000)),
                      OP(set1_epi16)((int16_t)0xc000));
}

#endif
