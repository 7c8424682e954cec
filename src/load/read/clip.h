/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a clip: chosen from the index of its block, then read together. Called without the
 * lock, by the thread that has the task. */
#ifndef PEN_LOAD_READ_CLIP_H
#define PEN_LOAD_READ_CLIP_H

#include "load/read/location.h"
#include "load/task.h"

/* Chooses the frames, adds the bytes that reading them takes to *at, and stores their times in the
 * batch when they are wanted. */
int pen__clip_locate(const PenLoadPlan *plan, PenTask *task, const PenOutField *f, PenLocation *at,
                     PenError *reterr);
/* One read for each clip, from its first frame to its last; clips that overlap share one. Of a
 * video, one for each range of packets. */
int pen__clip_read(PenTask *task, const PenOutField *f, const PenLocation *at, PenError *reterr);

#endif
