/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the plug-in. */
#ifndef PEN_VIDEO_FAIL_H
#define PEN_VIDEO_FAIL_H

#include <penstock/error.h>

/* Fills the error, which may be NULL, and returns the status. */
int video_fail(PenError *reterr, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
