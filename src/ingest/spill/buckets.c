/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/spill/buckets.h"

#include <string.h>

#include "base/attr.h"
#include "base/mem.h"

#define WHERE "ingest/spill"

enum { CHUNK_TUPLES = 2048, MOST_BLOCKS = 1 << 16 }; /* 48 KiB of a bucket are written at once */

/* Of one bucket: where its chunks lie in the file, each of CHUNK_TUPLES. */
typedef struct Bucket {
    PenBuf chunks; /* offsets u64 */
    PenBuf rest;   /* not in the file */
} Bucket;

struct PenBuckets {
    PenSpill file;
    uint32_t n;
    Bucket buckets[];
};

uint32_t pen__space_blocks(const PenSpace *space, uint64_t n, size_t each, uint64_t *ret_block)
{
    uint64_t block = PEN_MAX(space->memory / each, n / MOST_BLOCKS + 1);
    if (!space->path || n <= block)
        block = PEN_MAX(n, 1u);
    *ret_block = block;
    return n ? (uint32_t)((n - 1) / block + 1) : 1;
}

int pen__buckets_open(const PenSpace *space, uint32_t n, PenBuckets **ret, PenError *reterr)
{
    PenBuckets *b = pen__zalloc(sizeof *b + n * sizeof *b->buckets);
    if (!b)
        return pen__fail_memory(reterr, WHERE, "numbers");
    b->file.path = space->path;
    b->n = n;
    *ret = b;
    return PEN_OK;
}

int pen__buckets_add(PenBuckets *b, uint32_t bucket, const PenTuple *tuple, PenError *reterr)
{
    Bucket *k = &b->buckets[bucket];
    if (b->n > 1 && k->rest.bytes == CHUNK_TUPLES * sizeof *tuple) {
        uint64_t offset = b->file.bytes;
        int r = pen__spill_write(&b->file, k->rest.data, k->rest.bytes, reterr);
        if (r < 0)
            return r;
        if (pen__buf_add(&k->chunks, &offset, sizeof offset) < 0)
            return pen__fail_memory(reterr, WHERE, "numbers");
        k->rest.bytes = 0;
    }
    return pen__buf_add(&k->rest, tuple, sizeof *tuple) < 0
               ? pen__fail_memory(reterr, WHERE, "numbers")
               : PEN_OK;
}

static int each_of(const void *data, size_t n, PenTupleFn each, void *ctx, PenError *reterr)
{
    const PenTuple *t = data;
    int r = PEN_OK;
    for (size_t i = 0; r == PEN_OK && i < n; i++)
        r = each(ctx, &t[i], reterr);
    return r;
}

int pen__buckets_read(PenBuckets *b, uint32_t bucket, PenTupleFn each, void *ctx, PenError *reterr)
{
    const Bucket *k = &b->buckets[bucket];
    const uint64_t *offsets = (const uint64_t *)(const void *)k->chunks.data;
    size_t n = k->chunks.bytes / sizeof *offsets;
    PenTuple *chunk = n ? pen__alloc_array(CHUNK_TUPLES, sizeof *chunk) : NULL;
    int r = n && !chunk ? pen__fail_memory(reterr, WHERE, "numbers") : PEN_OK;
    for (size_t i = 0; r == PEN_OK && i < n; i++) {
        r = pen__spill_read(&b->file, chunk, CHUNK_TUPLES * sizeof *chunk, offsets[i], reterr);
        if (r == PEN_OK)
            r = each_of(chunk, CHUNK_TUPLES, each, ctx, reterr);
    }
    pen__free(chunk);
    if (r == PEN_OK)
        r = each_of(k->rest.data, k->rest.bytes / sizeof *chunk, each, ctx, reterr);
    return r;
}

void pen__buckets_close(PenBuckets **buckets)
{
    PenBuckets *b = *buckets;
    if (!b)
        return;
    for (uint32_t i = 0; i < b->n; i++) {
        pen__buf_free(&b->buckets[i].chunks);
        pen__buf_free(&b->buckets[i].rest);
    }
    pen__spill_close(&b->file);
    pen__free(b);
    *buckets = NULL;
}
