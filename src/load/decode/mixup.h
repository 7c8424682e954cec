/* SPDX-License-Identifier: Apache-2.0 */
/* mixup and cutmix of a batch. Samples are mixed in pairs, each with the other, in place. The draws
 * depend on the seed, the epoch and the position of the batch or the sample over all ranks. */
#ifndef PEN_LOAD_DECODE_MIXUP_H
#define PEN_LOAD_DECODE_MIXUP_H

#include "load/ring.h"

/* Mixes an image field of a slot all of whose samples are done, and the targets that follow it.
 * Called without the lock. */
void pen__mixup_run(const PenLoadPlan *plan, PenSlot *s, uint32_t field);

#endif
