/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to values one by one. */
#include "base/attr.h"
#include "dsp/dsp_impl.h"

void pen__lookup_c(uint8_t *p, size_t n, uint32_t channels, const uint8_t tables[][256])
{
    if (channels == 1) {
        for (size_t i = 0; i < n; i++)
            p[i] = tables[0][p[i]];
        return;
    }
    for (size_t i = 0; i < n; i++, p += 3) {
        p[0] = tables[0][p[0]];
        p[1] = tables[1][p[1]];
        p[2] = tables[2][p[2]];
    }
}

/* Pixels with the same value follow each other: two sets of counts take turns, so that a count is
 * written before it is read again. */
void pen__count_c(const uint8_t *p, size_t n, uint32_t channels, uint32_t counts[][256])
{
    uint32_t others[3][256] = {{0}};
    size_t bytes = n * channels, i = 0;
    for (; channels == 3 && i + 6 <= bytes; i += 6)
        for (uint32_t c = 0; c < 3; c++) {
            counts[c][p[i + c]]++;
            others[c][p[i + 3 + c]]++;
        }
    for (; channels == 1 && i + 4 <= bytes; i += 4) {
        counts[0][p[i]]++;
        others[0][p[i + 1]]++;
        others[1][p[i + 2]]++;
        others[2][p[i + 3]]++;
    }
    for (; i < bytes; i++)
        counts[i % channels][p[i]]++;
    for (uint32_t c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++)
            counts[channels == 3 ? c : 0][v] += others[c][v];
}

void pen__fold_c(uint8_t *p, size_t n, uint8_t mask, uint8_t from, uint8_t flip)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t v = p[i] & mask;
        p[i] = v >= from ? v ^ flip : v;
    }
}

void pen__extremes_c(const uint8_t *p, size_t n, uint32_t channels, uint8_t low[], uint8_t high[])
{
    for (uint32_t c = 0; c < channels; c++) {
        low[c] = 255;
        high[c] = 0;
    }
    for (size_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < channels; c++, p++) {
            low[c] = PEN_MIN(low[c], *p);
            high[c] = PEN_MAX(high[c], *p);
        }
}
