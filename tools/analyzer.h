/* SPDX-License-Identifier: Apache-2.0 */
/* Put before every file that clang-tidy reads, to tell the analyzer what it cannot see across
 * files: the calls that report a failure return a negative status. */
#ifndef PEN_TOOLS_ANALYZER_H
#define PEN_TOOLS_ANALYZER_H

#include "base/error.h"

static inline int pen__negative(int status)
{
    if (status >= 0)
        __builtin_unreachable();
    return status;
}

#define pen__fail(...) pen__negative((pen__fail)(__VA_ARGS__))
#define pen__fail_os(...) pen__negative((pen__fail_os)(__VA_ARGS__))
#define pen__fail_memory(...) pen__negative((pen__fail_memory)(__VA_ARGS__))

#endif
