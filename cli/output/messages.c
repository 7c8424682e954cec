/* SPDX-License-Identifier: Apache-2.0 */
#include "output/messages.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "output/terminal.h"
#include "output/text.h"

static void put_line(const char *message, const char *where, const char *colour)
{
    int coloured = colour && cli_terminal_has_colour(stderr);
    fprintf(stderr, "%spenstock:%s ", coloured ? colour : "", coloured ? CLI_COLOUR_NONE : "");
    cli_text_print(stderr, message, strlen(message));
    if (where)
        fprintf(stderr, " (%s)", where);
    fputc('\n', stderr);
}

void cli_print_message(const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    put_line(message, NULL, strncmp(message, "warning: ", 9) == 0 ? CLI_COLOUR_YELLOW : NULL);
}

void cli_print_error(const PenError *error)
{
    /* The part of the library helps only if the fault may be in the data or in penstock. */
    int inside = error->status == PEN_E_CORRUPT || error->status == PEN_E_DECODE;
    const char *message = error->message[0] ? error->message : pen_strerror(error->status);
    put_line(message, inside && error->where[0] ? error->where : NULL, CLI_COLOUR_RED);
}

static void CLI_PRINTF(4, 0)
    fill(PenError *e, int status, int os_errno, const char *format, va_list args)
{
    *e = (PenError){.status = status, .os_errno = os_errno, .sample = -1, .where = "cli"};
    vsnprintf(e->message, sizeof e->message, format, args);
}

int cli_fail(PenError *reterr, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (reterr)
        fill(reterr, status, 0, format, args);
    va_end(args);
    return status;
}

static int status_of_errno(int os_errno)
{
    switch (os_errno) {
    case ENOENT:
        return PEN_E_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return PEN_E_ACCESS;
    case EEXIST:
        return PEN_E_EXISTS;
    case ENOMEM:
        return PEN_E_NO_MEMORY;
    default:
        return PEN_E_IO;
    }
}

int cli_fail_os(PenError *reterr, int os_errno, const char *format, ...)
{
    int status = status_of_errno(os_errno);
    if (!reterr)
        return status;
    va_list args;
    va_start(args, format);
    fill(reterr, status, os_errno, format, args);
    va_end(args);
    size_t used = strlen(reterr->message);
    snprintf(reterr->message + used, sizeof reterr->message - used, ": %s",
             os_errno == EFBIG ? CLI_TOO_LARGE : strerror(os_errno));
    return status;
}

int cli_fail_memory(PenError *reterr)
{
    return cli_fail(reterr, PEN_E_NO_MEMORY, "out of memory");
}
