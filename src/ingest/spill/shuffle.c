/* SPDX-License-Identifier: Apache-2.0 */
/* Fisher-Yates, block by block from the last. A swap with a number in a lower block is noted for
 * that block, which makes the swaps that were noted, in their order, before its own. */
#include "base/attr.h"
#include "base/mem.h"
#include "base/rng.h"
#include "ingest/spill/buckets.h"
#include "ingest/spill/scatter.h"

#define WHERE "ingest/spill"

typedef struct Shuffle {
    const PenShuffle *what;
    PenRng rng;
    PenBuckets *swaps; /* for each block: its position, the other one, the value from there */
    uint64_t block;    /* numbers of a block */
    uint64_t first;    /* of the present one */
    uint64_t *values;  /* of the present one */
} Shuffle;

static int swap_noted(void *ctx, const PenTuple *t, PenError *reterr)
{
    Shuffle *s = ctx;
    uint64_t *here = &s->values[t->v[0] - s->first];
    uint64_t value = *here;
    *here = t->v[2];
    return s->what->each(s->what->ctx, t->v[1], value, reterr);
}

/* No later swap reaches position i. */
static int swap(Shuffle *s, uint64_t i, PenError *reterr)
{
    uint64_t k = i ? pen__rng_below(&s->rng, i + 1) : 0;
    uint64_t *here = &s->values[i - s->first];
    if (k < s->first)
        return pen__buckets_add(s->swaps, (uint32_t)(k / s->block), &(PenTuple){{k, i, *here}},
                                reterr);
    uint64_t value = s->values[k - s->first];
    s->values[k - s->first] = *here;
    *here = value;
    return s->what->each(s->what->ctx, i, value, reterr);
}

static int shuffle_block(Shuffle *s, uint32_t block, PenError *reterr)
{
    s->first = block * s->block;
    uint64_t end = PEN_MIN(s->first + s->block, s->what->n);
    for (uint64_t i = s->first; i < end; i++)
        s->values[i - s->first] = i;
    int r = pen__buckets_read(s->swaps, block, swap_noted, s, reterr);
    for (uint64_t i = end; r == PEN_OK && i-- > s->first;)
        r = swap(s, i, reterr);
    return r;
}

int pen__shuffle(const PenShuffle *what, const PenSpace *space, PenError *reterr)
{
    Shuffle s = {.what = what, .rng = pen__rng_init(what->seed, what->stream)};
    uint32_t n_blocks = pen__space_blocks(space, what->n, sizeof *s.values, &s.block);
    s.values = pen__alloc_array(s.block, sizeof *s.values);
    int r = s.values ? pen__buckets_open(space, n_blocks, &s.swaps, reterr)
                     : pen__fail_memory(reterr, WHERE, "order of the inputs");
    for (uint32_t i = n_blocks; r == PEN_OK && i-- > 0;)
        r = shuffle_block(&s, i, reterr);
    pen__buckets_close(&s.swaps);
    pen__free(s.values);
    return r;
}
