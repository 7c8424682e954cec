/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes decoded by two decoders, for the targets that compare them. */
#ifndef PEN_TESTS_FUZZ_REGION_ROWS_H
#define PEN_TESTS_FUZZ_REGION_ROWS_H

#include "codec/region/region.h"

extern const PenLimits region_limits;

typedef struct Rows {
    uint8_t *data; /* free() it */
    size_t row_bytes;
    uint32_t n;
} Rows;

/* A decoder for a tier, or "turbo"; NULL if this machine does not have it. */
PenDecoder *make_decoder(const char *tier);

/* All rows of a box as RGB. */
int decode_rows(PenDecoder *d, const PenEncoded *image, PenBox box, Rows *ret);
/* Of the image at 1 / 2^shrink of its size. */
int decode_shrunk(PenDecoder *d, const PenEncoded *image, PenBox box, uint32_t shrink, Rows *ret);

#endif
