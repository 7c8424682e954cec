/* SPDX-License-Identifier: Apache-2.0 */
/* A task whose bytes have been read, or whose read failed: decoded, named in its error, or
 * replaced. Called without the lock, by the thread that has the task. */
#ifndef PEN_LOAD_DECODE_RUN_H
#define PEN_LOAD_DECODE_RUN_H

#include "load/decode/image.h"
#include "load/tasks.h"

/* Changes task->status; the error of a failed one names its sample. */
void pen__task_run(PenTasks *tasks, const PenImageDecoder *decoder, PenTask *task);

#endif
