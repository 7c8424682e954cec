/* SPDX-License-Identifier: Apache-2.0 */
/* How fast threads copy memory: what a byte costs that is read and not decoded. */
#ifndef PEN_LOAD_MEASURE_COPIES_H
#define PEN_LOAD_MEASURE_COPIES_H

#include <stdint.h>

#include <penstock/error.h>

/* Bytes per second of all threads together. It takes `seconds`, and at most an eighth of
 * `memory_bytes`. */
int pen__copies_measure(uint32_t threads, uint64_t memory_bytes, double seconds, double *ret,
                        PenError *reterr);

#endif
