/* SPDX-License-Identifier: Apache-2.0 */
/* Tuples of numbers in buckets, of which one at a time is read. With one bucket all of them stay in
 * memory, with more they go to a temporary file. */
#ifndef PEN_INGEST_SPILL_BUCKETS_H
#define PEN_INGEST_SPILL_BUCKETS_H

#include "ingest/spill/spill.h"

enum { PEN_TUPLE_WORDS = 3 };

typedef struct PenTuple {
    uint64_t v[PEN_TUPLE_WORDS];
} PenTuple;

typedef struct PenBuckets PenBuckets;
typedef int (*PenTupleFn)(void *ctx, const PenTuple *tuple, PenError *reterr);

int pen__buckets_open(const PenSpace *space, uint32_t n, PenBuckets **ret, PenError *reterr);
int pen__buckets_add(PenBuckets *b, uint32_t bucket, const PenTuple *tuple, PenError *reterr);
/* In the order in which they were added. Stops when `each` returns an error. */
int pen__buckets_read(PenBuckets *b, uint32_t bucket, PenTupleFn each, void *ctx, PenError *reterr);
void pen__buckets_close(PenBuckets **b); /* accepts NULL */

/* Into how many blocks of at most *ret_block numbers [0, n) is divided, so that a block of items of
 * `each` bytes fits in the memory. */
uint32_t pen__space_blocks(const PenSpace *space, uint64_t n, size_t each, uint64_t *ret_block);

#endif
