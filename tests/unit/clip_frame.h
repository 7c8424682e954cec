/* SPDX-License-Identifier: Apache-2.0 */
/* A frame of a clip as a picture of its own, made by the pipeline of an image. */
#ifndef PEN_TESTS_UNIT_CLIP_FRAME_H
#define PEN_TESTS_UNIT_CLIP_FRAME_H

#include <penstock/pack.h>

typedef struct FrameCook FrameCook;

FrameCook *frame_cook_new(const char *pipeline); /* NULL when it cannot be made */
void frame_cook_free(FrameCook **cook);
/* Frame `frame` of the pack's first field, with the draws of epoch 0. `out` is as large as the
 * pipeline says. */
int frame_cook(FrameCook *cook, PenPack *pack, uint64_t sample, uint32_t frame, uint64_t seed,
               uint8_t *out);

#endif
