/* SPDX-License-Identifier: Apache-2.0 */
/* What to change, and how fast the loader would be then. */
#ifndef PEN_LOAD_DIAGNOSIS_ADVICE_H
#define PEN_LOAD_DIAGNOSIS_ADVICE_H

#include "load/diagnosis/ceilings.h"

typedef struct PenAdviceCase {
    const PenLoaderStats *stats;
    const PenRunFacts *facts;
    const PenBusy *busy;
    const PenCeilings *ceilings;
} PenAdviceCase;

/* Fills in the advices, the largest gain first. */
void pen__advice_list(const PenAdviceCase *k, PenDiagnosis *ret);

#endif
