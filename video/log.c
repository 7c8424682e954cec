/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <libavutil/log.h>

/* libavutil has one callback per process, so the thread tells whose message it is. */
static _Thread_local VideoLog *current;

/* Messages of the decoders of H.264 and HEVC, the same in FFmpeg 5.1 to 8.1. */
static bool reports_missing(const char *format)
{
    return strstr(format, "reference picture missing during reorder") ||
           strstr(format, "Missing reference picture") ||
           strstr(format, "Could not find ref with POC");
}

__attribute__((format(printf, 3, 0))) static void on_message(void *sender, int level,
                                                             const char *format, va_list values)
{
    VideoLog *log = current;
    if (!log) {
        av_log_default_callback(sender, level, format, values);
        return;
    }
    if (level > AV_LOG_ERROR)
        return;
    log->is_missing |= reports_missing(format);
    if (log->first[0])
        return;
    vsnprintf(log->first, sizeof log->first, format, values);
    for (char *p = log->first; *p; p++)
        if (*p == '\n')
            *p = 0; /* one line */
        else if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
            *p = '?'; /* bytes of the video */
}

void video_log_install(void)
{
    av_log_set_callback(on_message);
}

void video_log_begin(VideoLog *log)
{
    *log = (VideoLog){.is_missing = false};
    current = log;
}

void video_log_end(void)
{
    current = NULL;
}
