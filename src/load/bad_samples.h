/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that were replaced in the batches that were delivered. They are counted in the order of
 * delivery, so that the limit of a pass is reached at the same batch whatever the threads did.
 *
 * Lock rule: the thread of the caller alone uses the list; it holds the lock of lock.h while it
 * changes the counters, which statistics read. */
#ifndef PEN_LOAD_BAD_SAMPLES_H
#define PEN_LOAD_BAD_SAMPLES_H

#include "load/ring.h"

typedef struct PenBadSamples {
    PenBuf list;      /* PenBadSample each; the first thousand */
    uint64_t n;       /* in all passes */
    uint64_t in_pass; /* in this one */
} PenBadSamples;

void pen__bad_samples_fini(PenBadSamples *b);
/* Adds the replacements of a full slot. PEN_E_CORRUPT: more than `limit` in this pass. */
int pen__bad_samples_add(PenBadSamples *b, PenSlot *s, uint64_t limit, PenError *reterr);
/* NULL: there are fewer. */
const PenBadSample *pen__bad_samples_at(const PenBadSamples *b, uint64_t i);

#endif
