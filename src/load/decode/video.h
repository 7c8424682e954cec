/* SPDX-License-Identifier: Apache-2.0 */
/* A clip that is stored as a video: its packets are decoded once, and every picture goes to all
 * views that show it. Called without the lock, by the thread that has the task. */
#ifndef PEN_LOAD_DECODE_VIDEO_H
#define PEN_LOAD_DECODE_VIDEO_H

#include "load/decode/image.h"
#include "load/task.h"

/* One frame of one view. */
typedef struct PenShownFrame {
    const PenEncoded *image; /* a picture, valid during the call */
    const PenSamplePlan *sample_plan;
    uint32_t view, frame; /* its first place in the view */
    const uint32_t *same; /* of all frames of the view: which of the clip's frames they are */
} PenShownFrame;

/* What it returns other than PEN_OK stops, and is returned. */
typedef int (*PenShownFn)(void *ctx, const PenShownFrame *shown, PenError *reterr);

/* Calls `show` for each frame of each view, but for repeats, in the order in which they are
 * decoded. */
int pen__clip_play(PenFrameDecoder *decoder, const PenOutField *f, const PenTask *task,
                   PenShownFn show, void *ctx, PenError *reterr);

/* All frames, each to its places in the batch. */
int pen__clip_video_decode(const PenImageDecoder *decoder, const PenOutField *f, PenTask *task);

#endif
