/* SPDX-License-Identifier: Apache-2.0 */
/* How fast each stage could be if it was the only one: as the counters show it; reading as it was
 * measured. */
#ifndef PEN_LOAD_DIAGNOSIS_CEILINGS_H
#define PEN_LOAD_DIAGNOSIS_CEILINGS_H

#include "load/diagnosis/busy.h"
#include "tools.h"

/* In samples per second; 0 = not known, or no work. */
typedef struct PenCeilings {
    double stage[PEN_LOAD_STAGE_COUNT];
    double read_cold;
    double supply;   /* fetch or read, as the loader does it */
    double cpu;      /* of the decoding threads together */
    double consumer; /* the caller, if it never waited */
} PenCeilings;

/* `measured` may be NULL. */
PenCeilings pen__ceilings_of(const PenBusy *b, const PenMeasured *measured);
/* Do more reading threads read more? Half of them were measured, too; 0 = that is not known. */
double pen__ceilings_scaling(const PenMeasured *measured);
/* Twice as many threads that bring less than this do not help. */
#define PEN_SCALES 1.3
/* Lists them, with their ratio to that of the bottleneck. */
void pen__ceilings_list(const PenCeilings *c, const PenBusy *b, PenDiagnosis *ret);

#endif
