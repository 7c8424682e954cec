/* SPDX-License-Identifier: Apache-2.0 */
/* Videos, through the programs ffmpeg and ffprobe: a process for each video, which hands over
 * pixels and times by pipes. It is bounded in time, memory and output, reads files alone, and is
 * confined (base/spawn/confine.h): what is in a video is as hostile as what is in any other
 * input. */
#ifndef PEN_INGEST_VIDEO_VIDEO_H
#define PEN_INGEST_VIDEO_VIDEO_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/mem.h"
#include "codec/codec.h"

typedef struct PenVideoSettings {
    double fps;                /* frames to take a second; 0 = all */
    uint32_t seconds;          /* what one video may take, of time and of the processor */
    const atomic_bool *cancel; /* ends it: PEN_E_CANCELLED; may be NULL */
} PenVideoSettings;

/* Part of a video, in nanoseconds from its start. */
typedef struct PenVideoPart {
    const char *path;
    uint64_t start, end; /* PEN_NO_END = to its end */
} PenVideoPart;

/* Gets the pixels of the next frame, RGB, which stay the caller's; < 0 ends the reading. */
typedef int (*PenVideoFn)(void *ctx, const PenPixels *pixels, PenError *reterr);

/* All frames, in the order of their times; *times gets an int64_t for each, nanoseconds from the
 * first. Frames are turned as the video says they are to be shown. What is wrong with the video is
 * PEN_E_DECODE or PEN_E_LIMIT. PEN_E_IO: the program could not be run, or something else ended it;
 * another try may go well. */
int pen__video_read(const PenVideoSettings *settings, const PenVideoPart *part, PenVideoFn frame,
                    void *ctx, PenBuf *times, PenError *reterr);

typedef struct PenVideoInfo {
    uint32_t width, height;
    double fps, seconds; /* 0 = not known */
} PenVideoInfo;

/* What its header says, by ffprobe. Errors as above. */
int pen__video_probe(const PenVideoSettings *settings, const char *path, PenVideoInfo *ret,
                     PenError *reterr);

/* PEN_E_NOT_FOUND when one of the programs is not there. */
int pen__video_check_programs(const PenVideoSettings *settings, PenError *reterr);

#endif
