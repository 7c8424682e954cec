/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that make up a tier. A tier takes from the one below what it has not got. */
#ifndef PEN_DSP_DSP_IMPL_H
#define PEN_DSP_DSP_IMPL_H

#include "dsp/dsp.h"

void pen__weigh_c(const PenAxisSpec *spec, void *scratch, PenAxis *axis);
void pen__across_c(const uint8_t *src, uint8_t *dst, const PenAxis *axis, uint32_t channels);
void pen__across_two_c(const uint8_t *const src[2], uint8_t *const dst[2], const PenAxis *axis,
                       uint32_t channels);
void pen__down_c(const uint8_t *const *rows, const int16_t *weights, uint32_t n_rows,
                 uint32_t precision, uint8_t *dst, size_t n);
void pen__store_c(const PenStoreTable *table, const uint8_t *row, uint32_t n, void *dst,
                  size_t plane_stride);
void pen__planes_u8_c(const uint8_t *row, uint32_t channels, uint32_t n, uint8_t *dst,
                      size_t plane_stride);
void pen__brightness_c(uint8_t *p, size_t n, int32_t factor);
void pen__contrast_c(uint8_t *p, size_t n, int32_t factor, int32_t mean);
void pen__saturation_c(uint8_t *p, size_t n, int32_t factor);
void pen__hue_c(uint8_t *p, size_t n, int32_t shift);
void pen__grey_c(uint8_t *p, size_t n);
uint64_t pen__grey_sum_c(const uint8_t *p, size_t n);
void pen__warp_fixed_c(const PenWarpRows *r, uint8_t *dst);
/* A row of any map with any filter. */
void pen__warp_general(const PenWarpRows *r, uint8_t *dst);
void pen__lookup_c(uint8_t *p, size_t n, uint32_t channels, const uint8_t tables[][256]);
void pen__count_c(const uint8_t *p, size_t n, uint32_t channels, uint32_t counts[][256]);
void pen__extremes_c(const uint8_t *p, size_t n, uint32_t channels, uint8_t low[], uint8_t high[]);
void pen__fold_c(uint8_t *p, size_t n, uint8_t mask, uint8_t from, uint8_t flip);
void pen__widen_c(const uint8_t *p, int16_t *to, size_t n);
void pen__sharpen_c(const uint8_t *const rows[3], uint8_t *to, size_t n, uint32_t channels,
                    int32_t factor);
void pen__blur_across_c(const int16_t *row, int16_t *to, size_t n, uint32_t channels,
                        const int16_t *weights, uint32_t radius);
void pen__blur_down_c(const int16_t *const *rows, uint8_t *to, size_t n, const int16_t *weights,
                      uint32_t radius);
void pen__mix_c(const PenMix *mix, const void *a, const void *b, void *dst, size_t n);

void pen__weigh_avx2(const PenAxisSpec *spec, void *scratch, PenAxis *axis);
void pen__across_avx2(const uint8_t *src, uint8_t *dst, const PenAxis *x, uint32_t channels);
void pen__across_two_avx2(const uint8_t *const src[2], uint8_t *const dst[2], const PenAxis *x,
                          uint32_t channels);
void pen__down_avx2(const uint8_t *const *rows, const int16_t *weights, uint32_t n_rows,
                    uint32_t precision, uint8_t *dst, size_t n);
void pen__store_avx2(const PenStoreTable *table, const uint8_t *row, uint32_t n, void *dst,
                     size_t plane_stride);
void pen__planes_u8_avx2(const uint8_t *row, uint32_t channels, uint32_t n, uint8_t *dst,
                         size_t plane_stride);
void pen__brightness_avx2(uint8_t *p, size_t n, int32_t factor);
void pen__contrast_avx2(uint8_t *p, size_t n, int32_t factor, int32_t mean);
void pen__saturation_avx2(uint8_t *p, size_t n, int32_t factor);
void pen__hue_avx2(uint8_t *p, size_t n, int32_t shift);
void pen__grey_avx2(uint8_t *p, size_t n);
uint64_t pen__grey_sum_avx2(const uint8_t *p, size_t n);
void pen__warp_fixed_avx2(const PenWarpRows *r, uint8_t *dst);
void pen__warp_bilinear_avx2(const PenWarpRows *r, uint8_t *dst);
void pen__lookup_avx2(uint8_t *p, size_t n, uint32_t channels, const uint8_t tables[][256]);
void pen__extremes_avx2(const uint8_t *p, size_t n, uint32_t channels, uint8_t low[],
                        uint8_t high[]);
void pen__fold_avx2(uint8_t *p, size_t n, uint8_t mask, uint8_t from, uint8_t flip);
void pen__sharpen_avx2(const uint8_t *const rows[3], uint8_t *to, size_t n, uint32_t channels,
                       int32_t factor);
void pen__widen_avx2(const uint8_t *p, int16_t *to, size_t n);
void pen__blur_across_avx2(const int16_t *row, int16_t *to, size_t n, uint32_t channels,
                           const int16_t *weights, uint32_t radius);
void pen__blur_down_avx2(const int16_t *const *rows, uint8_t *to, size_t n, const int16_t *weights,
                         uint32_t radius);
void pen__mix_avx2(const PenMix *mix, const void *a, const void *b, void *dst, size_t n);

void pen__weigh_avx512(const PenAxisSpec *spec, void *scratch, PenAxis *axis);
void pen__spread_avx512(PenAxis *x, uint32_t channels);
void pen__across_avx512(const uint8_t *src, uint8_t *dst, const PenAxis *x, uint32_t channels);
void pen__across_two_avx512(const uint8_t *const src[2], uint8_t *const dst[2], const PenAxis *x,
                            uint32_t channels);
void pen__down_avx512(const uint8_t *const *rows, const int16_t *weights, uint32_t n_rows,
                      uint32_t precision, uint8_t *dst, size_t n);

static inline int32_t pen__factor_clip(int32_t factor)
{
    return factor < 0 ? 0 : factor > PEN_FACTOR_MAX ? PEN_FACTOR_MAX : factor;
}

static inline uint8_t pen__clip_u8(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* 1/255 as the sum of two floats. */
#define PEN_INVERSE_255 0x1.010102p-8f
#define PEN_INVERSE_255_REST (-0x1.fdfdfep-33f)

#endif
