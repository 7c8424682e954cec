/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg_pixels.h"

#include "base/attr.h"
#include "base/cpu.h"
#include "codec/pixels_tier.h"

static const PenJpegPixels tier_c = {
    .tier = "c",
    .order = PEN_JPEG_NATURAL,
    .classify = {pen__classify_c, pen__classify_zigzag_c},
    .idct = {{pen__idct_full_c, pen__idct_top4_c, pen__idct_dc_c},
             {pen__idct_full_zigzag_c, pen__idct_top4_zigzag_c, pen__idct_dc_c}},
    .rgb = {pen__rgb_444_c, pen__rgb_422_c, pen__rgb_440_c, pen__rgb_420_c},
    .grey_rgb = pen__grey_rgb_c,
};

static const struct {
    int tier;
    const PenJpegPixels *table;
} tables[] = {
    /* from the lowest */
    {PEN_CPU_C, &tier_c},
};

const PenJpegPixels *pen__jpeg_pixels_tier(const char *tier)
{
    int wanted = pen__cpu_find(tier);
    for (size_t i = 0; i < PEN_LEN(tables); i++)
        if (tables[i].tier == wanted)
            return pen__cpu_has(wanted) ? tables[i].table : NULL;
    return NULL;
}

const PenJpegPixels *pen__jpeg_pixels(void)
{
    size_t i = PEN_LEN(tables) - 1;
    int tier = pen__cpu();
    while (tables[i].tier > tier) /* C ends it */
        i--;
    return tables[i].table;
}
