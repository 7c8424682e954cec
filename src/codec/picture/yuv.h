/* SPDX-License-Identifier: Apache-2.0 */
/* YUV to RGB in integers: one row of planar samples to interleaved pixels of 8 bits, as a table of
 * kernels filled tier by tier. All tiers give the same bytes.
 *
 * The real value of a pixel is that of H.273 with samples of d bits, K_r and K_b of the matrix, and
 * K_g = 1 - K_r - K_b:
 *
 *     e_y = (Y - 16 * 2^(d-8)) / (219 * 2^(d-8))     limited range; full range: Y / (2^d - 1)
 *     e_u = (U - 2^(d-1)) / (224 * 2^(d-8))          limited range; full: (U - 2^(d-1)) / (2^d - 1)
 *     R = 255 * (e_y + 2 (1 - K_r) e_v)
 *     G = 255 * (e_y - 2 (1 - K_b) K_b / K_g e_u - 2 (1 - K_r) K_r / K_g e_v)
 *     B = 255 * (e_y + 2 (1 - K_b) e_u)
 *
 * What the kernels compute, with the factors below and term(f, x) = (f * x + 2^14) >> 15:
 *
 *     y = term(factors.y, (Y - black) * 2^(15-d)) + 32
 *     u = (U - 2^(d-1)) * 2^(16-d), and v from V alike
 *     R = clip((y + term(factors.rv, v)) >> 6)
 *     G = clip((y + term(factors.gu, u) + term(factors.gv, v)) >> 6)
 *     B = clip((y + term(factors.bu, u)) >> 6)
 *
 * Samples above 2^d - 1 count as 2^d - 1. Samples of more than 8 bits are not cut before: all their
 * bits go into the product. Before the last shift, values are in 1/64 and at most 0.05 from the
 * real ones, so that a pixel differs by at most 1 from the real value rounded to nearest. */
#ifndef PEN_CODEC_PICTURE_YUV_H
#define PEN_CODEC_PICTURE_YUV_H

#include <stdbool.h>
#include <stdint.h>

typedef struct PenYuvFactors {
    int16_t y;              /* 2^14 times the factor of luma */
    int16_t rv, gu, gv, bu; /* 2^13 times the factors of chroma */
    uint16_t black;         /* the sample of black */
    uint16_t most;          /* the largest sample: 2^d - 1 */
    uint16_t depth;         /* d */
} PenYuvFactors;

/* The factors of a matrix, a range and a depth of 8 to 12 bits, rounded to nearest. Matrices have
 * the numbers of H.273 and are taken as swscale takes them: 1 BT.709; 4 FCC; 5 and 6 BT.601, and so
 * 2 (unknown) and 3 (reserved); 7 SMPTE 240M; 9 and 10 BT.2020. False: it is none of them. */
bool pen__yuv_factors(uint32_t matrix, bool is_full, uint32_t depth, PenYuvFactors *ret);

/* `n` pixels of one row, from column x on. Nothing but their samples is read, and no alignment is
 * asked for. */
typedef struct PenYuvRow {
    const PenYuvFactors *factors;
    const uint8_t *y, *u, *v; /* the samples of column x; of chroma of half width, of x / 2 */
    uint32_t n;
    bool odd_x; /* chroma of half width, and x is odd */
} PenYuvRow;

typedef void PenYuvFn(const PenYuvRow *row, uint8_t *pixels);

typedef struct PenYuvKernels {
    const char *tier; /* "c", "avx2", "avx512", "neon" */
    /* [0]: samples of 8 bits, [1]: of 16 bits. A row to 3 * n bytes with chroma of full and of half
     * width; and luma alone to n bytes. */
    PenYuvFn *full[2], *half[2], *gray[2];
} PenYuvKernels;

/* The table for this CPU (and PENSTOCK_CPU). */
const PenYuvKernels *pen__yuv_kernels(void);
/* That of one tier, or NULL when this CPU has not got it: for tests. */
const PenYuvKernels *pen__yuv_kernels_tier(const char *tier);

#endif
