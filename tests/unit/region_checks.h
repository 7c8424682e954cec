/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes and files checked against the whole decode; for the unit tests of regions. */
#ifndef PEN_TESTS_UNIT_REGION_CHECKS_H
#define PEN_TESTS_UNIT_REGION_CHECKS_H

#include <stdio.h>

#include "codec_images.h"
#include "lib/region_help.h"
#include "test.h"

extern const PenLimits *const limits;
extern const int32_t colours[];
extern PenDecoder *decoder; /* one for all tests, so that what one leaves behind meets the next */
extern Collected found;

uint32_t dice(uint32_t below);
PenBox random_box(uint32_t width, uint32_t height);

/* All of it, single pixels and thin strips at the edges, then chance. */
PenBox nth_box(uint32_t n, uint32_t width, uint32_t height);
void check_box(const PenEncoded *e, const PenPixels *whole, PenBox box, int32_t colour);
void check_boxes(const PenEncoded *e, const PenPixels *whole, uint32_t n);
PenEncoded encoded(uint8_t *data, size_t bytes, int codec, const PenPixels *p);
void check_file(const PenBuf *b, int codec, uint32_t n_boxes);
int find_status(const PenEncoded *e, PenBox box);

#define SAMPLING(lh, lv, ch, cv) .h = lh, .v = lv, .chroma_h = ch, .chroma_v = cv

/* A tiled picture of 250 x 240, for the tests of what is wrong. */
TiledJpeg a_tiled_jpeg(void);
bool start_regions(void);
void end_regions(void);

#endif
