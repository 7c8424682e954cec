/* SPDX-License-Identifier: Apache-2.0 */
/* All images and clips of a sample whose bytes have been read. Called without the lock, by the
 * thread that has the task. */
#ifndef PEN_LOAD_DECODE_SAMPLE_H
#define PEN_LOAD_DECODE_SAMPLE_H

#include "load/decode/image.h"
#include "load/task.h"

int pen__sample_decode(const PenLoadPlan *plan, const PenImageDecoder *decoder, PenTask *task);

#endif
