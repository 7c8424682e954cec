/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a field. */
#ifndef PEN_LOAD_PLAN_PROGRAM_H
#define PEN_LOAD_PLAN_PROGRAM_H

#include "load/plan/plan.h"

/* What programs know of a field of the pack. */
void pen__plan_describe(const PenField *f, PenFieldKind *ret);
/* With the size of a bucket, or the length of a step, if there are any. */
int pen__plan_program(const PenLoadPlan *p, uint32_t shape, const PenSpecField *spec,
                      const PenFieldKind *kind, PenProgram **ret, PenError *reterr);
/* The tensor of a batch, from that of a sample. */
void pen__plan_set_tensor(const PenLoadPlan *p, PenOutField *f, const PenTensor *one);

#endif
