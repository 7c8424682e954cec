/* SPDX-License-Identifier: Apache-2.0 */
/* Running the two programs, and reading what ffmpeg says of each frame. */
#ifndef PEN_INGEST_VIDEO_VIDEO_IMPL_H
#define PEN_INGEST_VIDEO_VIDEO_IMPL_H

#include "base/process.h"
#include "base/program/confined.h"
#include "ingest/video/video.h"

/* Demuxers that open no other files than the one they are given: playlists and the like can be made
 * to read any file, whatever their name ends in. */
#define PEN_VIDEO_FORMATS                                                                          \
    "mov,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,live_flv,asf,ogg,gif,m4v,h264,hevc,ivf,"      \
    "yuv4mpegpipe,mjpeg,mxf,nut,dv,obu,av1,rm,vc1,wtv,mpjpeg,apng,3gp,mp4"

/* ---- the programs ---------------------------------------------------------------------------- */

/* By PATH; false: there is none. */
bool pen__video_program_find(const char *name, PenConfinedProgram *ret);
/* A script would have to start other programs, which what is confined cannot. */
bool pen__video_program_is_script(const PenConfinedProgram *program);

/* ---- running --------------------------------------------------------------------------------- */

/* Fills in limits, environment and confinement of `s`, which has argv, takers and limits of output,
 * and runs it for the video `name`. A program that ended by itself is PEN_OK, whatever its code. */
int pen__video_run(const PenVideoSettings *settings, const char *name, PenProcessSettings *s,
                   PenProcessResult *ret, PenError *reterr);
/* What a code other than 0 means, with the last line that the program printed. */
int pen__video_fail_exit(const char *program, const char *name, PenProcessResult *result,
                         PenError *reterr);

/* ---- frames ---------------------------------------------------------------------------------- */

/* ffmpeg's format framecrc, line by line: size and time of every frame. */
typedef struct PenFrameLog {
    const char *name; /* of the video */
    char line[256];
    size_t line_bytes;
    uint32_t n_heads;
    uint32_t width, height; /* 0 = not known yet */
    uint64_t tb_num, tb_den;
    uint64_t frame_bytes; /* of each */
    uint64_t n;
    bool has_first;
    int64_t first, last; /* times as the log has them */
    PenBuf *times;       /* gets an int64_t for each frame */
} PenFrameLog;

int pen__frame_log_take(PenFrameLog *log, const void *data, size_t bytes, PenError *reterr);

#endif
