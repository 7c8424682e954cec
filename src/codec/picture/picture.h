/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded pictures of videos: planes of YUV samples, as a decoder plug-in leaves them in memory.
 * PenEncoded.picture passes one to pen__region_rows (codec/region/region.h), which delivers rows of
 * RGB pixels. Chroma of half size is repeated, as swscale's converter does that does not scale. */
#ifndef PEN_CODEC_PICTURE_PICTURE_H
#define PEN_CODEC_PICTURE_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/video.h>

#include "base/error.h"
#include "codec/picture/yuv.h"

static inline uint32_t pen__chroma_side(uint32_t side, uint32_t shift)
{
    return (uint32_t)(((uint64_t)side + (1u << shift) - 1) >> shift);
}

/* PEN_E_UNSUPPORTED for a depth, a chroma format or a matrix that cannot be converted: depths are
 * 8, 10 and 12; chroma is of full or half width and height, or there is none; a range that is not
 * known is limited. PEN_E_DECODE for a picture that contradicts itself. Only the samples of the
 * picture are read then, none between its rows. */
int pen__picture_check(const PenVideoPicture *p, PenError *reterr);

/* Of a picture that passed the check. */
PenYuvFactors pen__picture_factors(const PenVideoPicture *p);

#endif
