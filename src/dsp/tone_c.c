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

void pen__count_c(const uint8_t *p, size_t n, uint32_t channels, uint32_t counts[][256])
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < channels; c++)
            counts[c][*p++]++;
}
