/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels, as a table of function pointers filled tier by tier: C first, then what this CPU
 * has (base/machine/cpu.h). All tiers give the same bytes.
 *
 * Caveats. PEN_SLACK bytes behind the end of every row that a kernel reads may be read; across and
 * down also write into that many behind their result. The others write their result alone. */
#ifndef PEN_DSP_DSP_H
#define PEN_DSP_DSP_H

#include <stddef.h>
#include <stdint.h>

typedef struct PenAxis PenAxis; /* of dsp/axis.h */
typedef struct PenAxisSpec PenAxisSpec;
typedef struct PenWarpRows PenWarpRows; /* of dsp/warp.h */

/* f16, bf16 and f32 are what a table of 256 values for each channel says. */
typedef struct PenStoreTable {
    uint32_t channels;
    uint32_t element_bytes; /* 1, 2, 4 */
    int32_t dtype;          /* PEN_U8, PEN_F16, PEN_BF16, PEN_F32 */
    int32_t by_steps;       /* 1: the steps below give the very values of the tables */
    float f32[4][256];
    uint16_t u16[4][256]; /* f16 or bf16 */
    /* t = fma(x, 1/255, x * rest of 1/255) - mean; value = fma(t, inverse, t * rest) */
    float mean[4], inverse[4], rest[4];
    /* the same for interleaved values: value i has those of channel i % channels */
    float means[24], inverses[24], rests[24];
} PenStoreTable;

/* The value of x is ((x / 255) - mean) / std in single precision, rounded once more (to nearest,
 * ties to even) for f16 and bf16; without mean and std (both NULL) it is x / 255. PEN_U8 (which
 * takes neither) stays as it is. */
void pen__store_table_init(PenStoreTable *t, int dtype, uint32_t channels, const float *mean,
                           const float *std);

typedef struct PenMix {
    int32_t dtype; /* PEN_U8, PEN_F16, PEN_BF16, PEN_F32 */
    float weights[2];
} PenMix;

typedef struct PenDsp {
    const char *tier; /* "c", "avx2", "avx512" */
    /* Of a table: entries, taps, precision and weights; then the form that `across` of this tier
     * likes better, where it has one (NULL: it has not). pen__axis_fill calls both. */
    void (*weigh)(const PenAxisSpec *spec, void *scratch, PenAxis *axis);
    void (*spread)(PenAxis *axis, uint32_t channels);
    /* Resampling of one row of axis->n pixels, of two such rows, and of n_rows rows to one of n
     * bytes. */
    void (*across)(const uint8_t *src, uint8_t *dst, const PenAxis *axis, uint32_t channels);
    void (*across_two)(const uint8_t *const src[2], uint8_t *const dst[2], const PenAxis *axis,
                       uint32_t channels);
    void (*down)(const uint8_t *const *rows, const int16_t *weights, uint32_t n_rows,
                 uint32_t precision, uint8_t *dst, size_t n);
    /* One row of `n` pixels, interleaved, to dst: interleaved again (plane_stride 0), or each
     * channel in a plane of its own, plane_stride elements apart. */
    void (*store)(const PenStoreTable *table, const uint8_t *row, uint32_t n, void *dst,
                  size_t plane_stride);
    void (*planes_u8)(const uint8_t *row, uint32_t channels, uint32_t n, uint8_t *dst,
                      size_t plane_stride);
    /* Colour, in place, on n pixels of RGB. Factors are 16.16 fixed point, and count as 0 below it
     * and as PEN_FACTOR_MAX above that. `mean` is 0-255. */
    void (*brightness)(uint8_t *p, size_t n, int32_t factor);
    void (*contrast)(uint8_t *p, size_t n, int32_t factor, int32_t mean);
    void (*saturation)(uint8_t *p, size_t n, int32_t factor);
    void (*hue)(uint8_t *p, size_t n, int32_t shift); /* 0-255 */
    void (*grey)(uint8_t *p, size_t n);
    uint64_t (*grey_sum)(const uint8_t *p, size_t n);
    /* One row: nearest pixels of an affine map in fixed point, and bilinear ones of any map. */
    void (*warp_fixed)(const PenWarpRows *rows, uint8_t *dst);
    void (*warp_bilinear)(const PenWarpRows *rows, uint8_t *dst);
    /* Tables of 256 values, one for each of 1 or 3 channels, on n pixels in place; how often each
     * channel has each value is added to *counts. */
    void (*lookup)(uint8_t *p, size_t n, uint32_t channels, const uint8_t tables[][256]);
    void (*count)(const uint8_t *p, size_t n, uint32_t channels, uint32_t counts[][256]);
    /* The least and the largest value of each channel; of no pixels 255 and 0. */
    void (*extremes)(const uint8_t *p, size_t n, uint32_t channels, uint8_t low[], uint8_t high[]);
    /* n bytes: v = p & mask, and from the value `from` on v ^ flip. */
    void (*fold)(uint8_t *p, size_t n, uint8_t mask, uint8_t from, uint8_t flip);
    /* A row of n bytes but for its first and last pixel: `factor` of the way from the mean of the
     * pixels around (the one in the middle counts 5 times) to the pixel. `to` may be `here`. */
    void (*sharpen)(const uint8_t *const rows[3], uint8_t *to, size_t n, uint32_t channels,
                    int32_t factor);
    /* Symmetric kernels: weights[0] of the value in the middle, weights[k] of both that lie k
     * pixels (of `channels` values) or rows away, all of 1.15 fixed point with a sum of 1. Values
     * before and between the two have PEN_BLUR_BITS more than pixels. Across, *row begins `radius`
     * pixels before the first of n values; rows are numbered from -radius. */
    void (*widen)(const uint8_t *p, int16_t *to, size_t n);
    void (*blur_across)(const int16_t *row, int16_t *to, size_t n, uint32_t channels,
                        const int16_t *weights, uint32_t radius);
    void (*blur_down)(const int16_t *const *rows, uint8_t *to, size_t n, const int16_t *weights,
                      uint32_t radius);
    /* n elements of dst = weights[0] * a + weights[1] * b, computed in single precision without
     * fused multiply-add and rounded to nearest (u8: halves up). The three do not overlap. */
    void (*mix)(const PenMix *mix, const void *a, const void *b, void *dst, size_t n);
} PenDsp;

enum { PEN_FACTOR_MAX = 100 << 16, PEN_BLUR_BITS = 6 };

/* The table for this CPU (and PENSTOCK_CPU). */
const PenDsp *pen__dsp(void);
/* The table of one tier, or NULL when this CPU has not got it: for tests. */
const PenDsp *pen__dsp_tier(const char *tier);
/* What PENSTOCK_CPU=wanted gives: that tier, or the best one below it; without one (NULL, empty, a
 * word that is no tier) the best there is. */
const PenDsp *pen__dsp_choose(const char *wanted);

#endif
