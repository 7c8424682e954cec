/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *pen_strerror(int status)
{
    switch (status) {
#define XX(name, value, text)                                                                      \
    case PEN_##name:                                                                               \
        return text;
        PEN_STATUS_MAP(XX)
#undef XX
    default:
        return "unknown status";
    }
}

PEN_PRINTF(5, 0)
static void fill(PenError *e, int status, int os_errno, const char *where, const char *fmt,
                 va_list args)
{
    e->status = status;
    e->os_errno = os_errno;
    e->sample = -1;
    snprintf(e->where, sizeof e->where, "%s", where);
    vsnprintf(e->message, sizeof e->message, fmt, args);
}

int pen__fail(PenError *reterr, int status, const char *where, const char *fmt, ...)
{
    if (!reterr)
        return status;
    va_list args;
    va_start(args, fmt);
    fill(reterr, status, 0, where, fmt, args);
    va_end(args);
    return status;
}

static int status_of_errno(int os_errno)
{
    switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
        return PEN_E_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return PEN_E_ACCESS;
    case ENOMEM:
        return PEN_E_NO_MEMORY;
    case EEXIST:
        return PEN_E_EXISTS;
    case EWOULDBLOCK:
        return PEN_E_BUSY;
    case ENAMETOOLONG:
    case EINVAL:
        return PEN_E_INVALID;
    default:
        return PEN_E_IO;
    }
}

int pen__fail_os(PenError *reterr, int os_errno, const char *where, const char *fmt, ...)
{
    int status = status_of_errno(os_errno);
    if (!reterr)
        return status;
    va_list args;
    va_start(args, fmt);
    fill(reterr, status, os_errno, where, fmt, args);
    va_end(args);
    char why[96];
    /* The GNU form returns the text; it may or may not use the buffer. */
    const char *text = strerror_r(os_errno, why, sizeof why);
    if (os_errno == EFBIG)
        text = "File too large: over the limit of this process (ulimit -f) or of the file system";
    size_t used = strlen(reterr->message);
    snprintf(reterr->message + used, sizeof reterr->message - used, ": %s", text);
    return status;
}

int pen__fail_memory(PenError *reterr, const char *where, const char *what)
{
    return pen__fail(reterr, PEN_E_NO_MEMORY, where, "%s: out of memory", what);
}

void pen__error_prefix(PenError *err, const char *fmt, ...)
{
    if (!err)
        return;
    char old[sizeof err->message];
    memcpy(old, err->message, sizeof old);
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ": %.*s", (int)sizeof old - 1, old);
}

int pen__error_accept(int r, int status, PenError *err)
{
    if (r != status)
        return r;
    if (err)
        *err = (PenError){0};
    return 0;
}
