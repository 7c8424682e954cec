/* SPDX-License-Identifier: Apache-2.0 */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>

int video_fail(PenError *reterr, int status, const char *format, ...)
{
    if (!reterr)
        return status;
    *reterr = (PenError){.status = status, .sample = -1};
    snprintf(reterr->where, sizeof reterr->where, "video/plugin");
    va_list values;
    va_start(values, format);
    vsnprintf(reterr->message, sizeof reterr->message, format, values);
    va_end(values);
    return status;
}
