/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that decode boxes of photographs by the own decoder share. */
#ifndef PEN_BENCH_REGIONS_H
#define PEN_BENCH_REGIONS_H

#include "../tests/lib/region_help.h"
#include "photos.h"

enum { CHUNK = 48 }; /* photographs that one way decodes before the next one does */

static inline int count_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n,
                             PenError *reterr)
{
    (void)rows, (void)stride, (void)reterr;
    *(uint32_t *)ctx += n;
    return PEN_OK;
}

/* Errors end the program: these are good files. */
static inline void decode_box(PenDecoder *d, const PenEncoded *image, PenBox box)
{
    uint32_t rows = 0;
    PenError err = {0};
    PenRegion r = {.box = box,
                   .colour = PEN_COLOUR_RGB,
                   .limits = &pen__limits_default,
                   .rows = count_rows,
                   .ctx = &rows};
    if (pen__region_decode(d, image, &r, &err) != PEN_OK || rows != box.h)
        die(err.message);
}

#endif
