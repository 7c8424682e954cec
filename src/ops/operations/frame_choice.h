/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames of a clip: by number, by time, or a list. A function of its arguments and draws. */
#ifndef PEN_OPS_OPERATIONS_FRAME_CHOICE_H
#define PEN_OPS_OPERATIONS_FRAME_CHOICE_H

#include "base/error.h"
#include "ops/language/value.h"
#include "ops/operations/draw.h"

enum { PEN_CLIP_MAX_FRAMES = 4096, PEN_CLIP_MAX_N = 64 };
enum { PEN_OFFSET_RANDOM = 0, PEN_OFFSET_CENTER = 1, PEN_OFFSET_GIVEN = 2, PEN_OFFSET_FRAME = 3 };
enum { PEN_PAD_LAST = 0, PEN_PAD_LOOP = 1, PEN_PAD_NONE = 2 };

typedef struct PenClipRule {
    uint32_t frames; /* of each clip */
    uint32_t n;      /* clips */
    uint32_t stride; /* from one frame to the next */
    int32_t offset;  /* PEN_OFFSET_*: where it begins */
    double at;   /* a frame, or, by time, seconds from the first frame; when given. From the frame
                  * that the sample is: frames outside of the clip are its first or last one */
    int32_t pad; /* PEN_PAD_*: instead of frames behind the last */
    /* By time: a frame every `seconds` / `parts` seconds. seconds = 0: by number. */
    double seconds, parts;
    uint32_t n_indices; /* a list, instead of all that */
    uint32_t indices[PEN_MAX_NUMBERS];
} PenClipRule;

typedef struct PenClipFrames { /* what there is to choose from */
    uint32_t n;
    const int64_t *times_ns; /* of each; looked at when the rule goes by time */
    uint32_t frame;          /* that the sample is */
} PenClipFrames;

/* Frame or row k of those around a frame: below 0, or not below the number of frames, where the
 * sample has none. */
int64_t pen__window_place(uint32_t frame, int64_t at, uint32_t stride, uint32_t k);
/* Gives rule->n * rule->frames numbers below frames->n, clip by clip. Fails for a clip without
 * frames, one that is too short when the rule says so, and times that do not rise when it goes by
 * them. */
int pen__clip_choose(const PenClipRule *rule, const PenClipFrames *frames, PenDraw *draw,
                     uint32_t *ret, PenError *reterr);

#endif
