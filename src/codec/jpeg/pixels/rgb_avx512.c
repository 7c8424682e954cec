/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/pixels/vectors_avx512.h"

/* Needs the vectors. */
#include "codec/jpeg/pixels/rgb_x86.h"

void pen__rgb_444_avx512(const PenJpegRow *row, uint8_t *rgb)
{
    row_444(row, rgb);
}

void pen__rgb_440_avx512(const PenJpegRow *row, uint8_t *rgb)
{
    row_440(row, rgb);
}

void pen__rgb_422_avx512(const PenJpegRow *row, uint8_t *rgb)
{
    if (row->plain)
        pen__rgb_422_c(row, rgb);
    else
        halved(row, PEN_JPEG_422, rgb);
}

void pen__rgb_420_avx512(const PenJpegRow *row, uint8_t *rgb)
{
    if (row->plain)
        pen__rgb_420_c(row, rgb);
    else
        halved(row, PEN_JPEG_420, rgb);
}

#define PIXEL(i, vector) (((i) + 64 * (vector)) / 3)

static const uint8_t repeated[3][64]
    __attribute__((aligned(64))) = {ALL(PIXEL, 0), ALL(PIXEL, 1), ALL(PIXEL, 2)};

void pen__grey_rgb_avx512(const uint8_t *y, uint32_t n, uint8_t *rgb)
{
    for (uint32_t k = 0; k < n; k += PIXELS) {
        V v = load(y + k), out[3];
        for (int i = 0; i < 3; i++)
            out[i] = _mm512_permutexvar_epi8(_mm512_load_si512(repeated[i]), v);
        if (n - k >= PIXELS)
            put_vectors(out, rgb + 3 * (size_t)k);
        else
            put_bytes(out, 3 * (int64_t)(n - k), rgb + 3 * (size_t)k);
    }
}
