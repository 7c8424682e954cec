/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of videos share: frames that are kept, programs that stand for ffmpeg. */
#ifndef PEN_TESTS_UNIT_VIDEO_HELP_H
#define PEN_TESTS_UNIT_VIDEO_HELP_H

#include "ingest/plan/plan.h"
#include "ingest/prepare/prepare.h"
#include "ingest/video/video_impl.h"
#include "pack_help.h"

typedef struct Got {
    int r;
    PenError err;
    uint32_t width, height;
    uint64_t n;
    PenBuf pixels, times;
} Got;

int keep_frame(void *ctx, const PenPixels *p, PenError *reterr);
void read_video(Got *got, const char *path, double fps, uint64_t start, uint64_t end);
int64_t time_of(const Got *got, uint64_t frame);
void free_got(Got *got);

/* Runs a command of the shell for at most a minute: its exit code, or -1. */
int run_shell(const char *command);
/* The same of a command that has to succeed. */
__attribute__((format(printf, 1, 2))) void shell(const char *fmt, ...);
/* Does the ffmpeg here have this encoder? */
bool can_encode(const char *codec);

/* From here on `name` is found in the test's folder first, and is this script. */
void stub(const char *name, const char *script);

#endif
