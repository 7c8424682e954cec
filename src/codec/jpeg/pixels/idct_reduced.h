/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of the reduced inverse DCT share. */
#ifndef PEN_CODEC_JPEG_PIXELS_IDCT_REDUCED_H
#define PEN_CODEC_JPEG_PIXELS_IDCT_REDUCED_H

#include <string.h>

#include "codec/jpeg/pixels/pixels_impl.h"

/* 13 bits behind the point. */
enum {
    F_0_211 = 1730,
    F_0_509 = 4176,
    F_0_601 = 4926,
    F_0_720 = 5906,
    F_0_850 = 6967,
    F_1_061 = 8697,
    F_1_272 = 10426,
    F_1_451 = 11893,
    F_2_172 = 17799,
    F_3_624 = 29692
};

/* A block in natural order. */
INLINE void sort(const int16_t *block, int16_t *ret)
{
    for (int i = 0; i < 64; i++)
        ret[pen__jpeg_natural[i]] = block[i];
}

#endif
