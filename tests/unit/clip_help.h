/* SPDX-License-Identifier: Apache-2.0 */
/* Small packs of clips. */
#ifndef PEN_TESTS_UNIT_CLIP_HELP_H
#define PEN_TESTS_UNIT_CLIP_HELP_H

#include "load_help.h"

enum { CLIP_FRAMES = 40, CLIP_GAP_NS = 40000000 };

#define CLIP_PIPELINE "decode | clip 6 2 times=yes | random_resized_crop 16,20 | hflip | tensor u8"

typedef struct ClipSpec {
    uint32_t n;
    int mode;
    uint32_t (*frames)(uint32_t sample); /* how many it has */
    int bad_sample, bad_frame;           /* a JPEG that cannot be decoded; < 0: none */
} ClipSpec;

uint32_t clip_lengths(uint32_t sample);

/* Fields "video" and "label", the sample's number. */
PenPack *clip_pack(const char *name, const ClipSpec *spec);
PenLoaderSettings clip_settings(uint32_t batch, const char *pipeline);

#endif
