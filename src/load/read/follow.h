/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of one sample that follow its image, or rows of another field. */
#ifndef PEN_LOAD_READ_FOLLOW_H
#define PEN_LOAD_READ_FOLLOW_H

#include "load/task.h"

/* When all values of the sample are read and the plans of its images are made. */
int pen__sample_follow(const PenLoadPlan *plan, PenTask *task, PenError *reterr);

#endif
