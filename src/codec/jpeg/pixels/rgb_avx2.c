/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/pixels/vectors_avx2.h"

/* Needs the vectors. */
#include "codec/jpeg/pixels/rgb_x86.h"

void pen__rgb_444_avx2(const PenJpegRow *row, uint8_t *rgb)
{
    row_444(row, rgb);
}

void pen__rgb_440_avx2(const PenJpegRow *row, uint8_t *rgb)
{
    row_440(row, rgb);
}

void pen__rgb_422_avx2(const PenJpegRow *row, uint8_t *rgb)
{
    if (row->plain)
        pen__rgb_422_c(row, rgb);
    else
        halved(row, PEN_JPEG_422, rgb);
}

void pen__rgb_420_avx2(const PenJpegRow *row, uint8_t *rgb)
{
    if (row->plain)
        pen__rgb_420_c(row, rgb);
    else
        halved(row, PEN_JPEG_420, rgb);
}

void pen__grey_rgb_avx2(const uint8_t *y, uint32_t n, uint8_t *rgb)
{
    const V first = both(SHUFFLE(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5));
    const V second = both(SHUFFLE(5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10));
    const V last = both(SHUFFLE(10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15));
    for (; n >= PIXELS; n -= PIXELS, y += PIXELS, rgb += 3 * PIXELS) {
        V v = load(y);
        put_thirds(_mm256_shuffle_epi8(v, first), _mm256_shuffle_epi8(v, second),
                   _mm256_shuffle_epi8(v, last), rgb);
    }
    pen__grey_rgb_c(y, n, rgb);
}
