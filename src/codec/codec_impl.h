/* SPDX-License-Identifier: Apache-2.0 */
/* What the formats give to codec.c, and what they share. */
#ifndef PEN_CODEC_CODEC_IMPL_H
#define PEN_CODEC_CODEC_IMPL_H

#include "codec/codec.h"

typedef struct PenCodecOps {
    int codec;
    const char *name, *suffix;
    int (*probe)(const uint8_t *data, size_t bytes, const PenLimits *limits, PenImageInfo *ret,
                 PenError *reterr);
    int (*check)(const uint8_t *data, size_t bytes, const PenLimits *limits, PenError *reterr);
    int (*decode)(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                  PenError *reterr);
    int (*mask)(const uint8_t *data, size_t bytes, const PenLimits *limits, PenPixels *ret,
                PenError *reterr);
} PenCodecOps;

extern const PenCodecOps pen__jpeg_ops, pen__png_ops, pen__webp_ops;

/* PEN_E_DECODE for an empty image, PEN_E_LIMIT for one of too many pixels. */
int pen__limits_check(const PenLimits *limits, uint64_t width, uint64_t height, const char *part,
                      PenError *reterr);

/* Every scan of a JPEG is a walk over all its blocks, however few its bytes: from a third of the
 * pixels allowed on, fewer and fewer scans are. */
static inline uint32_t pen__limits_scans(const PenLimits *limits, uint64_t pixels)
{
    uint64_t most = limits->max_pixels / 3 * limits->max_scans / (pixels ? pixels : 1);
    return most < limits->max_scans ? (uint32_t)most : limits->max_scans;
}

/* Room for an image that passed pen__limits_check, with PEN_SLACK cleared bytes behind it. */
int pen__pixels_alloc(const PenLimits *limits, uint32_t width, uint32_t height, uint32_t channels,
                      const char *part, PenPixels *ret, PenError *reterr);

#endif
