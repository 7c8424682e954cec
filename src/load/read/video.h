/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a clip that is stored as a video: the packets that decoding them takes. Called by
 * clip.c, which has chosen the frames. */
#ifndef PEN_LOAD_READ_VIDEO_H
#define PEN_LOAD_READ_VIDEO_H

#include "load/read/location.h"
#include "load/task.h"

/* Lists packets and ranges for the clip's frames, sets the times of these, makes the plans of all
 * views, and adds the memory that reading and decoding take to *at. */
int pen__clip_video_locate(const PenLoadPlan *plan, PenTask *task, const PenOutField *f,
                           const PenVideoTable *video, PenLocation *at, PenError *reterr);
int pen__clip_video_read(PenTask *task, const PenOutField *f, const PenLocation *at,
                         PenError *reterr);

#endif
