/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 16 bits, rounded to nearest, ties to even. */
#ifndef PEN_DSP_HALF_H
#define PEN_DSP_HALF_H

#include <string.h>

#include "base/bytes.h"

static inline uint32_t pen__float_bits(float v)
{
    return pen__load32(&v);
}

/* To nearest, ties to even: the part below the last bit kept decides. */
static inline uint32_t pen__shift_rounded(uint32_t v, uint32_t by)
{
    uint32_t kept = v >> by, below = v & ((1u << by) - 1), half = 1u << (by - 1);
    return kept + (below > half || (below == half && (kept & 1)));
}

static inline uint16_t pen__to_bf16(float value)
{
    uint32_t v = pen__float_bits(value);
    if ((v & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(v >> 16 | 0x40); /* not a number: it must not round to infinity */
    return (uint16_t)pen__shift_rounded(v, 16);
}

static inline uint16_t pen__to_f16(float value)
{
    uint32_t v = pen__float_bits(value), sign = v >> 16 & 0x8000, x = v & 0x7fffffff;
    if (x > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (x >> 13 & 0x3ff));
    if (x >= 0x47800000) /* 65,536; what lies between the largest and it rounds by itself */
        return (uint16_t)(sign | 0x7c00);
    if (x >= 0x38800000) /* 2^-14, the smallest normal one */
        return (uint16_t)(sign | pen__shift_rounded(x - ((127u - 15u) << 23), 13));
    uint32_t exponent = x >> 23;
    if (exponent < 127 - 25)
        return (uint16_t)sign;
    return (uint16_t)(sign | pen__shift_rounded((x & 0x7fffff) | 0x800000, 126 - exponent));
}

static inline float pen__bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float pen__from_bf16(uint16_t x)
{
    return pen__bits_float((uint32_t)x << 16);
}

static inline float pen__from_f16(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31, rest = x & 0x3ff;
    if (exponent == 31) /* infinite, or not a number, which becomes quiet */
        return pen__bits_float(sign | 0x7f800000 | rest << 13 | (rest ? 0x400000 : 0));
    if (exponent == 0) { /* a multiple of 2^-24 */
        float value = (float)rest * 0x1p-24f;
        return pen__bits_float(sign | pen__float_bits(value));
    }
    return pen__bits_float(sign | (exponent + 127 - 15) << 23 | rest << 13);
}

#endif
