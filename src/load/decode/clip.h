/* SPDX-License-Identifier: Apache-2.0 */
/* All frames of a clip by one thread, each straight to its place in the batch. Called without the
 * lock, by the thread that has the task. */
#ifndef PEN_LOAD_DECODE_CLIP_H
#define PEN_LOAD_DECODE_CLIP_H

#include "load/decode/image.h"
#include "load/task.h"

int pen__clip_decode(const PenLoadPlan *plan, const PenImageDecoder *decoder, const PenOutField *f,
                     PenTask *task);

#endif
