/* SPDX-License-Identifier: Apache-2.0 */
/* Small images made in the process, the same for the same arguments. */
#ifndef PEN_TESTS_LIB_IMAGES_H
#define PEN_TESTS_LIB_IMAGES_H

#include "base/mem.h"

typedef struct ImageSpec {
    uint32_t width, height;
    uint32_t channels; /* 1, 3, or 4 (CMYK as JPEG, RGBA as PNG) */
    uint32_t seed;     /* of the pixels */
    uint32_t meta;     /* JPEG: seed of EXIF and a comment; 0 = none */
    int subsample;     /* JPEG: 4:2:0 */
    int progressive;
} ImageSpec;

/* Both replace what `out` holds, and abort when they cannot. */
void image_jpeg(const ImageSpec *spec, PenBuf *out);
void image_png(const ImageSpec *spec, PenBuf *out);

#endif
