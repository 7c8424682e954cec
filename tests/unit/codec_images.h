/* SPDX-License-Identifier: Apache-2.0 */
/* Test images, made with the libraries directly so that they do not depend on the code under test.
 */
#ifndef PEN_TESTS_UNIT_CODEC_IMAGES_H
#define PEN_TESTS_UNIT_CODEC_IMAGES_H

#include <stdbool.h>

#include "codec/codec.h"
#include "lib/tiled_jpeg.h"

typedef struct JpegSpec {
    uint32_t width, height;
    int channels; /* 1, 3 or 4 (CMYK); 0 is 3 */
    int quality;  /* 0 is 85 */
    int h, v;     /* sampling of luma; 0 is 1 */
    int chroma_h, chroma_v;
    bool progressive, arithmetic, optimal;
    bool rgb; /* 3 channels stored as they are */
    bool ycck;
    uint32_t restart_interval;
    int orientation; /* with EXIF when not 0 */
    bool separate;   /* one scan for each component */
} JpegSpec;

/* A picture with edges, slopes and noise, the same for the same arguments. */
void make_pixels(uint32_t width, uint32_t height, uint32_t channels, uint32_t seed, PenPixels *ret);

/* Replaces what `out` holds. Aborts when it cannot. */
void make_jpeg(const JpegSpec *spec, PenBuf *out);

/* An "Exif" APP1 segment with an orientation, whole; returns its length. */
size_t make_exif(int orientation, bool big_endian, uint8_t out[64]);

/* What libjpeg makes of it: islow, fancy upsampling; CMYK as it is stored. Returns the number of
 * warnings, -1 when it fails. */
int reference_decode(const uint8_t *data, size_t bytes, PenPixels *ret);
/* The same with this scale_denom. */
int reference_shrink(const uint8_t *data, size_t bytes, unsigned denominator, PenPixels *ret);

/* Offset of the n-th marker with this code, counting from 0; 0 when there is none. */
size_t find_marker_offset(const uint8_t *data, size_t bytes, uint8_t code, int n);

/* A file, whole; false when it cannot be read. */
bool read_whole_file(const char *path, PenBuf *out);

#endif
