/* SPDX-License-Identifier: Apache-2.0 */
/* Values of any length in a batch, and samples that are mixed. While a slot is filled, every sample
 * has its own place, as in a tensor, so that no thread waits for another; when all are there,
 * values move together, and samples are mixed. */
#ifndef PEN_LOAD_DECODE_LISTS_H
#define PEN_LOAD_DECODE_LISTS_H

#include "load/ring.h"

/* The lists and mixed fields of a slot all of whose samples are done, by the thread that has the
 * last one. Lengths become offsets. Called without the lock. */
void pen__lists_join(const PenLoadPlan *plan, PenSlot *s);

#endif
