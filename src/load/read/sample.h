/* SPDX-License-Identifier: Apache-2.0 */
/* From a sample's number to its bytes. The index of the block tells where they lie and how large
 * the image is, the random draws tell which rows are needed, and only those are read. Called
 * without the lock, by the thread that has the task. */
#ifndef PEN_LOAD_READ_SAMPLE_H
#define PEN_LOAD_READ_SAMPLE_H

#include "load/read/location.h"
#include "load/task.h"

/* Finds the sample, makes its sample plans, and stores its numbers in the batch. */
int pen__sample_locate(const PenLoadPlan *plan, PenTask *task, PenLocation *ret, PenError *reterr);
/* Reads what the sample plans need. If a checksum does not match, it reads once more before it
 * reports damage. */
int pen__sample_read(const PenLoadPlan *plan, PenTask *task, const PenLocation *at,
                     PenError *reterr);

#endif
