/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded pictures for the tests, and what they are as RGB. */
#ifndef PEN_TESTS_UNIT_PICTURE_HELP_H
#define PEN_TESTS_UNIT_PICTURE_HELP_H

#include "codec/codec.h"
#include "codec/encoded.h"
#include "codec/picture/picture.h"

enum { TEST_SAMPLES_ANY, TEST_SAMPLES_TAME };

/* A picture of this size and format with random samples: any, or those whose colours are all
 * between 0 and 255. Its planes are exactly as large as they have to be, so that the address
 * sanitizer sees every byte too many; some have their last row first. */
PenVideoPicture make_picture(PenVideoPicture format, int samples);
void free_picture(PenVideoPicture *p);

uint32_t plane_height(const PenVideoPicture *p, uint32_t plane);
size_t plane_row_bytes(const PenVideoPicture *p, uint32_t plane);
uint8_t *plane_row(const PenVideoPicture *p, uint32_t plane, uint32_t y);

PenEncoded encoded_picture(const PenVideoPicture *p);

/* All of it converted by the C kernel for chroma of full width, with chroma repeated here. */
void convert_picture(const PenVideoPicture *p, PenPixels *ret);

#endif
