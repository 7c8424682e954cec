/* SPDX-License-Identifier: Apache-2.0 */
/* Putting rows of pixels into a sample's place in the batch. */
#ifndef PEN_OPS_RUN_RESULT_H
#define PEN_OPS_RUN_RESULT_H

#include "ops/run/program_impl.h"

/* Row `y` of the result, all of its width; PEN_SLACK readable bytes follow. */
void pen__result_row(const PenProgram *p, const PenSamplePlan *sample_plan, void *dst, uint32_t y,
                     const uint8_t *row);
/* Behind the last row: the boxes of random_erasing behind normalize, and what pads patches. */
void pen__result_finish(const PenProgram *p, void *dst, const PenSamplePlan *sample_plan);

#endif
