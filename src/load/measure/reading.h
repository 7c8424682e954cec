/* SPDX-License-Identifier: Apache-2.0 */
/* How fast samples are read, by a loader that does not decode them: with its threads, its requests
 * at a time and its memory. */
#ifndef PEN_LOAD_MEASURE_READING_H
#define PEN_LOAD_MEASURE_READING_H

#include "load/plan/plan.h"

/* In samples per second; 0 = it cannot be measured. */
typedef struct PenReadingRates {
    double warm; /* remote: from the store or the cache; local: from the page cache */
    double cold; /* local: not in the page cache */
    double half; /* with half of the threads that read: of `cold`, or of `warm` if remote */
} PenReadingRates;

/* Takes about `seconds` for each rate, or as long as a batch takes. */
int pen__reading_measure(const PenLoadPlan *plan, double seconds, PenReadingRates *ret,
                         PenError *reterr);

#endif
