/* SPDX-License-Identifier: Apache-2.0 */
/* Upsampling and colour on vectors of 16-bit values. Pixels with even and with odd numbers are kept
 * apart until the end: chroma of half width comes that way, and splitting bytes so is cheap. The
 * file that includes this one has included the vectors of its tier (vectors_avx2.h, ...). */
#ifndef PEN_CODEC_JPEG_PIXELS_RGB_X86_H
#define PEN_CODEC_JPEG_PIXELS_RGB_X86_H

INLINE V times_3(V v)
{
    return OP(add_epi16)(v, OP(add_epi16)(v, v));
}

/* ---- colour --------------------------------------------------------------------------------- */

/* The factors of libjpeg have 16 bits behind the point; these, with 15, give the same for all of
 * the 256 (green: 65,536) values of chroma. */
INLINE V red(V y, V cr)
{
    V part = OP(mulhrs_epi16)(cr, OP(set1_epi16)(13173)); /* 1.402 = 1 + 0.402 */
    return OP(add_epi16)(OP(add_epi16)(y, cr), part);
}

INLINE V blue(V y, V cb)
{
    V part = OP(mulhrs_epi16)(cb, OP(set1_epi16)(-7471)); /* 1.772 = 2 - 0.228 */
    return OP(add_epi16)(OP(add_epi16)(y, part), OP(add_epi16)(cb, cb));
}

INLINE V green_part(V pairs)
{
    const V factors = OP(set1_epi32)((int)((uint32_t)(uint16_t)-23401 << 16 | (uint16_t)-11277));
    V sum = OP(add_epi32)(OP(madd_epi16)(pairs, factors), OP(set1_epi32)(1 << 14));
    return OP(srai_epi32)(sum, 15);
}

INLINE V green(V y, V cb, V cr)
{
    V low = green_part(OP(unpacklo_epi16)(cb, cr)), high = green_part(OP(unpackhi_epi16)(cb, cr));
    return OP(add_epi16)(y, OP(packs_epi32)(low, high));
}

/* ---- chroma, less 128, of the pixels from k on ---------------------------------------------- */

/* (sum + bias) >> shift - 128 */
INLINE V settle(V sum, int bias, uint8_t shift)
{
    V v = OP(add_epi16)(sum, OP(set1_epi16)((int16_t)(bias - (128 << shift))));
    return OP(srai_epi16)(v, shift);
}

INLINE Wide chroma_444(const uint8_t *c)
{
    Wide w = split(load(c));
    return (Wide){settle(w.even, 0, 0), settle(w.odd, 0, 0)};
}

INLINE Wide chroma_440(const uint8_t *near, const uint8_t *far, int bias)
{
    Wide a = split(load(near)), b = split(load(far));
    return (Wide){settle(OP(add_epi16)(times_3(a.even), b.even), bias, 2),
                  settle(OP(add_epi16)(times_3(a.odd), b.odd), bias, 2)};
}

INLINE Wide chroma_422(const uint8_t *c)
{
    V middle = times_3(widen(c));
    return (Wide){settle(OP(add_epi16)(middle, widen(c - 1)), 1, 2),
                  settle(OP(add_epi16)(middle, widen(c + 1)), 2, 2)};
}

/* From sums of the near row (three times) and the far row. */
INLINE Wide chroma_420(const uint16_t *sums)
{
    V middle = times_3(OP(loadu_si)((const V *)sums));
    return (Wide){settle(OP(add_epi16)(middle, OP(loadu_si)((const V *)(sums - 1))), 8, 4),
                  settle(OP(add_epi16)(middle, OP(loadu_si)((const V *)(sums + 1))), 7, 4)};
}

/* ---- rows ----------------------------------------------------------------------------------- */

enum { PART = 512 }; /* pixels of a row whose sums are on the stack at once */

typedef struct Sums {
    uint16_t at[PIXELS / 2 + PART / 2 + PIXELS]; /* the first is [PIXELS / 2] */
} Sums;

/* For n pixels, with one column more to either side. */
INLINE void add_rows(const uint8_t *near, const uint8_t *far, uint32_t n, Sums *ret)
{
    for (uint32_t i = 0; i < (n + 1) / 2 + 2; i += PIXELS / 2) {
        V sum = OP(add_epi16)(times_3(widen(near + i - 1)), widen(far + i - 1));
        OP(storeu_si)((V *)(ret->at + PIXELS / 2 - 1 + i), sum);
    }
}

/* What is packed has in every 128 bits the bytes of eight even pixels, then those of eight odd. */
INLINE void put_chunk(const uint8_t *bytes, Wide cb, Wide cr, uint32_t left, uint8_t *rgb)
{
    Wide y = split(load(bytes));
    V r = OP(packus_epi16)(red(y.even, cr.even), red(y.odd, cr.odd));
    V g = OP(packus_epi16)(green(y.even, cb.even, cr.even), green(y.odd, cb.odd, cr.odd));
    V b = OP(packus_epi16)(blue(y.even, cb.even), blue(y.odd, cb.odd));
    if (left >= PIXELS)
        put_pixels(r, g, b, rgb);
    else
        put_some(r, g, b, left, rgb);
}

INLINE void row_444(const PenJpegRow *r, uint8_t *rgb)
{
    for (uint32_t k = 0; k < r->n; k += PIXELS)
        put_chunk(r->y + k, chroma_444(r->cb + k), chroma_444(r->cr + k), r->n - k,
                  rgb + 3 * (size_t)k);
}

INLINE void row_440(const PenJpegRow *r, uint8_t *rgb)
{
    int bias = r->odd_y ? 2 : 1;
    for (uint32_t k = 0; k < r->n; k += PIXELS)
        put_chunk(r->y + k, chroma_440(r->cb + k, r->cb_far + k, bias),
                  chroma_440(r->cr + k, r->cr_far + k, bias), r->n - k, rgb + 3 * (size_t)k);
}

INLINE void row_422(const PenJpegRow *r, uint8_t *rgb)
{
    for (uint32_t k = 0; k < r->n; k += PIXELS)
        put_chunk(r->y + k, chroma_422(r->cb + k / 2), chroma_422(r->cr + k / 2), r->n - k,
                  rgb + 3 * (size_t)k);
}

INLINE void row_420(const PenJpegRow *r, uint8_t *rgb)
{
    __attribute__((uninitialized)) Sums cb, cr;
    for (uint32_t start = 0; start < r->n; start += PART) {
        uint32_t n = r->n - start < PART ? r->n - start : PART, first = start / 2;
        add_rows(r->cb + first, r->cb_far + first, n, &cb);
        add_rows(r->cr + first, r->cr_far + first, n, &cr);
        for (uint32_t k = 0; k < n; k += PIXELS)
            put_chunk(r->y + start + k, chroma_420(cb.at + PIXELS / 2 + k / 2),
                      chroma_420(cr.at + PIXELS / 2 + k / 2), n - k, rgb + 3 * (size_t)(start + k));
    }
}

/* Chroma of half width: rows from an even column on, which take what lies beyond the ends of the
 * image for samples; then the pixels at the ends once more. */
INLINE void halved(const PenJpegRow *row, int sampling, uint8_t *rgb)
{
    PenJpegRow r = *row;
    if (row->odd_x) {
        pen__rgb_pixel(row, sampling, 0, rgb);
        r.y++, r.cb++, r.cr++, r.n--;
        if (sampling == PEN_JPEG_420)
            r.cb_far++, r.cr_far++;
    }
    if (sampling == PEN_JPEG_420)
        row_420(&r, rgb + 3 * row->odd_x);
    else
        row_422(&r, rgb + 3 * row->odd_x);
    if (row->first)
        pen__rgb_pixel(row, sampling, 0, rgb);
    if (row->last)
        pen__rgb_pixel(row, sampling, row->n - 1, rgb + 3 * ((size_t)row->n - 1));
}

#endif
