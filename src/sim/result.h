/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated job has come to. */
#ifndef PEN_SIM_RESULT_H
#define PEN_SIM_RESULT_H

#include "sim/job.h"

/* What the counts from the order have filled in is in `ret` already. */
int pen__sim_result(PenSimJob *job, PenSimResult *ret, PenError *reterr);

#endif
