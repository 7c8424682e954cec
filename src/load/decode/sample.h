/* SPDX-License-Identifier: Apache-2.0 */
/* All images and clips of a sample whose bytes have been read. Called without the lock, by the
 * thread that has the task. */
#ifndef PEN_LOAD_DECODE_SAMPLE_H
#define PEN_LOAD_DECODE_SAMPLE_H

#include "load/decode/image.h"
#include "load/tasks.h"

/* If parts of files turn out not to be enough, it reads the complete ones. */
int pen__sample_decode(PenTasks *tasks, const PenImageDecoder *decoder, PenTask *task);

#endif
