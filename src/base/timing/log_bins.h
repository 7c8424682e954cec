/* SPDX-License-Identifier: Apache-2.0 */
/* Bins for times, eight for each doubling of the microseconds; the first ones are one microsecond
 * wide. A time is at most an eighth below the end of its bin. */
#ifndef PEN_BASE_TIMING_LOG_BINS_H
#define PEN_BASE_TIMING_LOG_BINS_H

#include <stdint.h>

enum { PEN_LOG_BINS = 256 }; /* the last one takes all that is longer: more than 4 hours */

static inline unsigned pen__log_bin(uint64_t ns)
{
    uint64_t v = ns / 1000 + 8;
    unsigned e = 63 - (unsigned)__builtin_clzll(v) - 3;
    unsigned bin = e * 8 + (unsigned)(v >> e & 7);
    return bin < PEN_LOG_BINS ? bin : PEN_LOG_BINS - 1;
}

static inline uint64_t pen__log_bin_end_ns(unsigned bin)
{
    return (((uint64_t)(bin % 8 + 9) << bin / 8) - 8) * 1000;
}

#endif
