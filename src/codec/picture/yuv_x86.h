/* SPDX-License-Identifier: Apache-2.0 */
/* The formula of yuv.h on vectors of 16-bit values: mulhrs is term(). Pixels with even and with odd
 * numbers are kept apart until the end, because two of them share a sample of chroma of half width.
 * The file that includes this one has included the vectors of its tier, and says how samples of 16
 * bits are split (split_words) and how bytes get back in order (put_gray, put_some_gray). */
#ifndef PEN_CODEC_PICTURE_YUV_X86_H
#define PEN_CODEC_PICTURE_YUV_X86_H

typedef struct Factors {
    V y, rv, gu, gv, bu;
    V black, middle, most;
    __m128i luma_shift, chroma_shift;
} Factors;

PEN_INLINE Factors spread(const PenYuvFactors *f)
{
    return (Factors){
        .y = OP(set1_epi16)(f->y),
        .rv = OP(set1_epi16)(f->rv),
        .gu = OP(set1_epi16)(f->gu),
        .gv = OP(set1_epi16)(f->gv),
        .bu = OP(set1_epi16)(f->bu),
        .black = OP(set1_epi16)((int16_t)f->black),
        .middle = OP(set1_epi16)((int16_t)(1 << (f->depth - 1))),
        .most = OP(set1_epi16)((int16_t)f->most),
        .luma_shift = _mm_cvtsi32_si128(15 - f->depth),
        .chroma_shift = _mm_cvtsi32_si128(16 - f->depth),
    };
}

/* ---- samples -------------------------------------------------------------------------------- */

/* With the bounds of samples of 16 bits. */
PEN_INLINE V bound(V samples, const Factors *f, PenYuvKind kind)
{
    return kind.is_wide ? OP(min_epu16)(samples, f->most) : samples;
}

PEN_INLINE V luma(V samples, const Factors *f, PenYuvKind kind)
{
    V v = OP(sub_epi16)(bound(samples, f, kind), f->black);
    v = kind.is_wide ? OP(sll_epi16)(v, f->luma_shift) : OP(slli_epi16)(v, 7);
    return OP(add_epi16)(OP(mulhrs_epi16)(v, f->y), OP(set1_epi16)(32));
}

PEN_INLINE V chroma(V samples, const Factors *f, PenYuvKind kind)
{
    V v = OP(sub_epi16)(bound(samples, f, kind), f->middle);
    return kind.is_wide ? OP(sll_epi16)(v, f->chroma_shift) : OP(slli_epi16)(v, 8);
}

PEN_INLINE Wide all_samples(const uint8_t *p, PenYuvKind kind)
{
    return kind.is_wide ? split_words(p) : split(load(p));
}

PEN_INLINE V half_samples(const uint8_t *p, PenYuvKind kind)
{
    return kind.is_wide ? load(p) : widen(p);
}

PEN_INLINE Wide lumas(const uint8_t *p, const Factors *f, PenYuvKind kind)
{
    Wide samples = all_samples(p, kind);
    return (Wide){luma(samples.even, f, kind), luma(samples.odd, f, kind)};
}

/* ---- pixels --------------------------------------------------------------------------------- */

typedef struct Shares { /* of chroma in the three colours */
    V r, g, b;
} Shares;

PEN_INLINE Shares shares(V u_samples, V v_samples, const Factors *f, PenYuvKind kind)
{
    V u = chroma(u_samples, f, kind), v = chroma(v_samples, f, kind);
    return (Shares){
        .r = OP(mulhrs_epi16)(v, f->rv),
        .g = OP(add_epi16)(OP(mulhrs_epi16)(u, f->gu), OP(mulhrs_epi16)(v, f->gv)),
        .b = OP(mulhrs_epi16)(u, f->bu),
    };
}

/* Sums beyond 16 bits are beyond 255 too. */
PEN_INLINE V colour(Wide y, V even, V odd)
{
    even = OP(srai_epi16)(OP(adds_epi16)(y.even, even), 6);
    odd = OP(srai_epi16)(OP(adds_epi16)(y.odd, odd), 6);
    return OP(packus_epi16)(even, odd);
}

PEN_INLINE void make_gray(const PenYuvRow *row, const Factors *f, PenYuvKind kind, uint8_t *pixels)
{
    const V none = OP(set1_epi16)(0);
    V bytes = colour(lumas(row->y, f, kind), none, none);
    if (row->n >= PIXELS)
        put_gray(bytes, pixels);
    else
        put_some_gray(bytes, row->n, pixels);
}

PEN_INLINE void make_rgb(const PenYuvRow *row, const Factors *f, PenYuvKind kind, uint8_t *pixels)
{
    Wide y = lumas(row->y, f, kind);
    Shares even, odd;
    if (kind.is_half) {
        even = odd = shares(half_samples(row->u, kind), half_samples(row->v, kind), f, kind);
    } else {
        Wide u = all_samples(row->u, kind), v = all_samples(row->v, kind);
        even = shares(u.even, v.even, f, kind);
        odd = shares(u.odd, v.odd, f, kind);
    }
    V r = colour(y, even.r, odd.r), g = colour(y, even.g, odd.g), b = colour(y, even.b, odd.b);
    if (row->n >= PIXELS)
        put_pixels(r, g, b, pixels);
    else
        put_some(r, g, b, row->n, pixels);
}

/* The first pixels of a row, as many as a vector has, or all. */
PEN_INLINE void make_pixels(const PenYuvRow *row, const Factors *f, PenYuvKind kind,
                            uint8_t *pixels)
{
    if (kind.is_gray)
        make_gray(row, f, kind, pixels);
    else
        make_rgb(row, f, kind, pixels);
}

/* A row from an even column on. */
PEN_INLINE void make_even(const PenYuvRow *row, PenYuvKind kind, uint8_t *pixels)
{
    const Factors f = spread(row->factors);
    const size_t step = kind.is_gray ? PIXELS : 3 * PIXELS;
    PenYuvRow rest = *row;
    PenYuvTail tail;
    for (; rest.n >= PIXELS; pixels += step) {
        make_pixels(&rest, &f, kind, pixels);
        rest = pen__yuv_behind(&rest, kind, PIXELS);
    }
    if (!rest.n)
        return;
    pen__yuv_copy(&rest, kind, &tail);
    make_pixels(&rest, &f, kind, pixels);
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

#endif
