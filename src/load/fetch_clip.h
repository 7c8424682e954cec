/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a clip on their way: chosen from the block's index, read at once, decoded one after
 * another to their places in the batch. */
#ifndef PEN_LOAD_FETCH_CLIP_H
#define PEN_LOAD_FETCH_CLIP_H

#include "load/plan/plan.h"

typedef struct PenClipFrame { /* one that is needed */
    uint32_t number;          /* in the clip */
    uint32_t first_length;    /* of its segments, in the list of all */
    size_t at;                /* of its bytes in the data */
    uint64_t offset;          /* of its bytes in the block */
    uint8_t orientation;
    PenEncoded encoded; /* without data and lengths */
} PenClipFrame;

typedef struct PenTaskClip {
    uint64_t bytes; /* that are read */
    PenBuf data;    /* of the frames, and of what lies between them */
    PenBuf frames;  /* PenClipFrame each, by number */
    PenBuf chosen;  /* u32 each: which of these, for every frame of the result, clip by clip */
    PenBuf times;   /* i64 each, of all frames of the clip */
    PenBuf lengths; /* u32 each, of segments */
    PenBuf one;     /* the frame that is being decoded, which may change it */
    PenSamplePlan sample_plan;
} PenTaskClip;

struct PenTask;
struct PenWhere;
struct PenCore;

/* Chooses the frames, says how many bytes reading takes at most, stores the times at `out` when
 * they are asked for. */
int pen__clip_locate(const PenLoadPlan *plan, struct PenTask *task, const PenOutField *f,
                     struct PenWhere *at, uint8_t *out, PenError *reterr);
/* One read for each clip, from its first frame to its last; clips that meet share one. */
int pen__clip_read(struct PenTask *task, const PenOutField *f, const struct PenWhere *at,
                   PenError *reterr);
/* Frame `i` of those that are needed; its bytes are the clip's, and what follows them is another's.
 */
PenEncoded pen__clip_encoded(const PenTaskClip *clip, uint32_t i);
void pen__clip_trim(PenTaskClip *clip, size_t bytes);
/* decode_clip.c; without the lock. */
int pen__clip_decode(struct PenCore *c, PenDecodeContext *k, const PenOutField *f,
                     struct PenTask *t);

#endif
