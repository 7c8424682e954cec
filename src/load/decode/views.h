/* SPDX-License-Identifier: Apache-2.0 */
/* Several views of one stored image: its header is parsed once. If their regions overlap, or if a
 * region costs as much as the entire image, the box around them is decoded once, and each view
 * takes its pixels from there. They are the same either way. Called without the lock, by the thread
 * that has the task. */
#ifndef PEN_LOAD_DECODE_VIEWS_H
#define PEN_LOAD_DECODE_VIEWS_H

#include "load/decode/image.h"
#include "load/task.h"

/* All f->n_views of them, each to its place in the batch; or, to measure it, all to `out`. As
 * pen__image_decoder_run. */
int pen__views_decode(const PenLoadPlan *plan, const PenImageDecoder *decoder, const PenOutField *f,
                      const PenTask *task, uint8_t *out, PenError *reterr);

#endif
