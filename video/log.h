/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of libavcodec: kept for errors, and never printed. */
#ifndef PEN_VIDEO_LOG_H
#define PEN_VIDEO_LOG_H

#include <stdbool.h>

typedef struct VideoLog {
    char first[160]; /* first line that reports an error; empty if there is none */
    bool is_missing; /* a picture that another one refers to: libavcodec makes one up, and has no
                      * other way to report it */
} VideoLog;

/* Replaces libavutil's log callback. Messages of other users of the same libavutil in this process
 * are printed as before. */
void video_log_install(void);

/* Between both calls, messages of this thread go to `log`. */
void video_log_begin(VideoLog *log);
void video_log_end(void);

#endif
