/* SPDX-License-Identifier: Apache-2.0 */
/* Small packs with all that a pipeline can use of a sample: an image, a label, a caption, boxes,
 * their classes, tokens that some samples lack, and points. */
#ifndef PEN_TESTS_LIB_ROWS_PACK_H
#define PEN_TESTS_LIB_ROWS_PACK_H

#include <penstock/penstock.h>

enum { ROWS_SAMPLES = 12 };

/* Uses all fields but the points: several views, one with repeat, and rows that follow one of
 * them. */
#define ROWS_PIPELINE                                                                              \
    "image: decode | random_resized_crop 24 | hflip; small = image: decode | "                     \
    "random_resized_crop 8 scale=0.1,0.5 | repeat 3; any = image: decode | random_crop 20,40 | "   \
    "resize min_side=7,8 max_side=20; label: tensor; caption: text 64; id: key 16; boxes: boxes "  \
    "of=image kept=yes; classes: keep boxes; tokens: ragged 8 pad=-1"

/* With small blocks and shards. Failures are returned, for tests that make them. */
int rows_pack_write(const char *dir, PenError *reterr);

#endif
