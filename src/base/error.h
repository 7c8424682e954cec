/* SPDX-License-Identifier: Apache-2.0 */
/* Filling in a PenError. Both calls return the status, so that a failure is one line:
 *     return pen__fail(reterr, PEN_E_CORRUPT, "pack/block", "shard %s block %u: ...", ...); */
#ifndef PEN_BASE_ERROR_H
#define PEN_BASE_ERROR_H

#include <penstock/error.h>

#include "base/attr.h"

int pen__fail(PenError *reterr, int status, const char *where, const char *fmt, ...)
    PEN_PRINTF(4, 5);

/* For a failed system call: the status follows from errno, whose text is appended. */
int pen__fail_os(PenError *reterr, int os_errno, const char *where, const char *fmt, ...)
    PEN_PRINTF(4, 5);

/* Out of memory while doing what `what` says. */
int pen__fail_memory(PenError *reterr, const char *where, const char *what);

/* Puts "prefix: " before the message already there: a caller adds the name it knows. */
void pen__error_prefix(PenError *err, const char *fmt, ...) PEN_PRINTF(2, 3);

/* For a failure with this status that the caller expects: empties the error and returns 0. Anything
 * else is returned as it is. */
int pen__error_accept(int r, int status, PenError *err);

#endif
