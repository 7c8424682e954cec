/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts more than fits in memory: sorted runs in a temporary file, which are merged when they are
 * read. What fits in memory stays there. */
#ifndef PEN_INGEST_SPILL_SORTER_H
#define PEN_INGEST_SPILL_SORTER_H

#include "ingest/spill/spill.h"

typedef struct PenSorter PenSorter;

typedef struct PenSorted {
    const uint8_t *key, *data;
    uint32_t key_bytes, data_bytes;
} PenSorted;

int pen__sorter_open(const PenSpace *space, PenSorter **ret, PenError *reterr);
/* Room for a key and the data behind it, to be filled before the next call. Keys are compared byte
 * by byte; of the same keys the one that was added first comes first. */
int pen__sorter_add(PenSorter *s, uint32_t key_bytes, uint32_t data_bytes, uint8_t **ret,
                    PenError *reterr);
/* Begins to read, from the first. Nothing is added any more, but it may be read again. */
int pen__sorter_start(PenSorter *s, PenError *reterr);
/* PEN_END behind the last one. What it returns lives until the next call. */
int pen__sorter_next(PenSorter *s, PenSorted *ret, PenError *reterr);
void pen__sorter_close(PenSorter **s); /* accepts NULL */

#endif
