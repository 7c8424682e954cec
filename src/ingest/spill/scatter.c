/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/spill/scatter.h"

#include <string.h>

#include "base/attr.h"
#include "base/mem.h"
#include "ingest/spill/buckets.h"

#define WHERE "ingest/spill"

struct PenScatter {
    uint64_t n, block; /* places of a block */
    uint32_t words;    /* of a place */
    uint32_t n_blocks;
    uint32_t loaded;     /* blocks up to this one have been read */
    uint64_t next;       /* the place to be read next */
    PenBuckets *buckets; /* one for each block; NULL where there is one block */
    uint64_t *values;    /* of the block that is read; UINT64_MAX where there are none */
};

static void clear_block(PenScatter *s)
{
    memset(s->values, 0xff, (size_t)s->block * s->words * sizeof *s->values);
}

int pen__scatter_open(const PenSpace *space, uint64_t n, uint32_t words, PenScatter **ret,
                      PenError *reterr)
{
    PenScatter *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, "order of the inputs");
    s->n = n;
    s->words = words;
    s->n_blocks = pen__space_blocks(space, n, words * sizeof *s->values, &s->block);
    s->values = pen__alloc_array(s->block, words * sizeof *s->values);
    int r = s->values ? PEN_OK : pen__fail_memory(reterr, WHERE, "order of the inputs");
    if (r == PEN_OK && s->n_blocks > 1)
        r = pen__buckets_open(space, s->n_blocks, &s->buckets, reterr);
    if (r == PEN_OK)
        clear_block(s);
    s->loaded = s->n_blocks == 1;
    if (r < 0)
        pen__scatter_close(&s);
    *ret = s;
    return r;
}

static void put(PenScatter *s, const uint64_t v[3])
{
    memcpy(s->values + v[0] % s->block * s->words, v + 1, s->words * sizeof *v);
}

int pen__scatter_add(PenScatter *s, const PenPlaced *p, PenError *reterr)
{
    PenTuple tuple = {{p->place, p->a, p->b}};
    if (s->buckets)
        return pen__buckets_add(s->buckets, (uint32_t)(p->place / s->block), &tuple, reterr);
    put(s, tuple.v);
    return PEN_OK;
}

static int put_tuple(void *ctx, const PenTuple *t, PenError *reterr)
{
    (void)reterr;
    put(ctx, t->v);
    return PEN_OK;
}

int pen__scatter_next(PenScatter *s, PenPlaced *ret, PenError *reterr)
{
    for (; s->next < s->n; s->next++) {
        if (s->next / s->block >= s->loaded) {
            clear_block(s);
            int r = pen__buckets_read(s->buckets, s->loaded++, put_tuple, s, reterr);
            if (r < 0)
                return r;
        }
        const uint64_t *p = s->values + s->next % s->block * s->words;
        if (*p == UINT64_MAX)
            continue;
        *ret = (PenPlaced){s->next++, p[0], s->words > 1 ? p[1] : 0};
        return PEN_OK;
    }
    return PEN_END;
}

void pen__scatter_close(PenScatter **scatter)
{
    if (!*scatter)
        return;
    pen__buckets_close(&(*scatter)->buckets);
    pen__free((*scatter)->values);
    pen__free(*scatter);
    *scatter = NULL;
}
