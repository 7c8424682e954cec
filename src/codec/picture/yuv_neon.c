/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen pixels at a time, even and odd ones apart until the end; vqrdmulh is term() of yuv.h. */
#include <arm_neon.h>

#include "codec/picture/yuv_impl.h"

enum { PIXELS = 16 };

typedef struct Wide {
    int16x8_t even, odd;
} Wide;

typedef struct Factors {
    const PenYuvFactors *f;
    int16x8_t black, middle, luma_shift, chroma_shift;
    uint16x8_t most;
} Factors;

PEN_INLINE Factors spread(const PenYuvFactors *f)
{
    return (Factors){
        .f = f,
        .black = vdupq_n_s16((int16_t)f->black),
        .middle = vdupq_n_s16((int16_t)(1 << (f->depth - 1))),
        .luma_shift = vdupq_n_s16((int16_t)(15 - f->depth)),
        .chroma_shift = vdupq_n_s16((int16_t)(16 - f->depth)),
        .most = vdupq_n_u16(f->most),
    };
}

/* ---- samples -------------------------------------------------------------------------------- */

PEN_INLINE int16x8_t widen(uint8x8_t bytes)
{
    return vreinterpretq_s16_u16(vmovl_u8(bytes));
}

PEN_INLINE int16x8_t bound(uint16x8_t words, const Factors *f)
{
    return vreinterpretq_s16_u16(vminq_u16(words, f->most));
}

PEN_INLINE Wide all_samples(const uint8_t *p, const Factors *f, PenYuvKind kind)
{
    if (kind.is_wide) {
        uint16x8x2_t words = vld2q_u16((const uint16_t *)(const void *)p);
        return (Wide){bound(words.val[0], f), bound(words.val[1], f)};
    }
    uint8x8x2_t bytes = vld2_u8(p);
    return (Wide){widen(bytes.val[0]), widen(bytes.val[1])};
}

PEN_INLINE int16x8_t half_samples(const uint8_t *p, const Factors *f, PenYuvKind kind)
{
    return kind.is_wide ? bound(vreinterpretq_u16_u8(vld1q_u8(p)), f) : widen(vld1_u8(p));
}

PEN_INLINE int16x8_t luma(int16x8_t samples, const Factors *f)
{
    int16x8_t v = vshlq_s16(vsubq_s16(samples, f->black), f->luma_shift);
    return vaddq_s16(vqrdmulhq_n_s16(v, f->f->y), vdupq_n_s16(32));
}

PEN_INLINE int16x8_t chroma(int16x8_t samples, const Factors *f)
{
    return vshlq_s16(vsubq_s16(samples, f->middle), f->chroma_shift);
}

PEN_INLINE Wide lumas(const uint8_t *p, const Factors *f, PenYuvKind kind)
{
    Wide samples = all_samples(p, f, kind);
    return (Wide){luma(samples.even, f), luma(samples.odd, f)};
}

/* ---- pixels --------------------------------------------------------------------------------- */

typedef struct Shares { /* of chroma in the three colours */
    int16x8_t r, g, b;
} Shares;

PEN_INLINE Shares shares(int16x8_t u_samples, int16x8_t v_samples, const Factors *f)
{
    int16x8_t u = chroma(u_samples, f), v = chroma(v_samples, f);
    return (Shares){
        .r = vqrdmulhq_n_s16(v, f->f->rv),
        .g = vaddq_s16(vqrdmulhq_n_s16(u, f->f->gu), vqrdmulhq_n_s16(v, f->f->gv)),
        .b = vqrdmulhq_n_s16(u, f->f->bu),
    };
}

/* Sums beyond 16 bits are beyond 255 too. */
PEN_INLINE uint8x16_t colour(Wide y, int16x8_t even, int16x8_t odd)
{
    uint8x8_t a = vqshrun_n_s16(vqaddq_s16(y.even, even), 6);
    uint8x8_t b = vqshrun_n_s16(vqaddq_s16(y.odd, odd), 6);
    return vcombine_u8(vzip1_u8(a, b), vzip2_u8(a, b));
}

PEN_INLINE uint8x16_t make_gray(const PenYuvRow *row, const Factors *f, PenYuvKind kind)
{
    const int16x8_t none = vdupq_n_s16(0);
    return colour(lumas(row->y, f, kind), none, none);
}

PEN_INLINE uint8x16x3_t make_rgb(const PenYuvRow *row, const Factors *f, PenYuvKind kind)
{
    Wide y = lumas(row->y, f, kind);
    Shares even, odd;
    if (kind.is_half) {
        even = odd = shares(half_samples(row->u, f, kind), half_samples(row->v, f, kind), f);
    } else {
        Wide u = all_samples(row->u, f, kind), v = all_samples(row->v, f, kind);
        even = shares(u.even, v.even, f);
        odd = shares(u.odd, v.odd, f);
    }
    return (uint8x16x3_t){
        {colour(y, even.r, odd.r), colour(y, even.g, odd.g), colour(y, even.b, odd.b)}};
}

/* PIXELS pixels, wherever the row ends. */
PEN_INLINE void make_pixels(const PenYuvRow *row, const Factors *f, PenYuvKind kind,
                            uint8_t *pixels)
{
    if (kind.is_gray)
        vst1q_u8(pixels, make_gray(row, f, kind));
    else
        vst3q_u8(pixels, make_rgb(row, f, kind));
}

/* A row from an even column on. */
PEN_INLINE void make_even(const PenYuvRow *row, PenYuvKind kind, uint8_t *pixels)
{
    const Factors f = spread(row->factors);
    const size_t channels = kind.is_gray ? 1 : 3;
    PenYuvRow rest = *row;
    PenYuvTail tail;
    uint8_t last[3 * PIXELS];
    for (; rest.n >= PIXELS; pixels += channels * PIXELS) {
        make_pixels(&rest, &f, kind, pixels);
        rest = pen__yuv_behind(&rest, kind, PIXELS);
    }
    if (!rest.n)
        return;
    pen__yuv_copy(&rest, kind, &tail);
    make_pixels(&rest, &f, kind, last);
    memcpy(pixels, last, channels * rest.n);
}

PEN_INLINE void make_row(const PenYuvRow *row, PenYuvKind kind, uint8_t *pixels)
{
    if (!kind.is_half || !row->odd_x) {
        make_even(row, kind, pixels);
        return;
    }
    PenYuvRow first = *row, rest = pen__yuv_behind(row, kind, 1);
    first.n = 1;
    (kind.is_wide ? pen__yuv_half_16_c : pen__yuv_half_8_c)(&first, pixels);
    make_even(&rest, kind, pixels + 3);
}

PEN_YUV_TIER(neon, make_row)
