/* SPDX-License-Identifier: Apache-2.0 */
/* No two inputs may have the same key. Their hashes go to buckets by their highest bits, and each
 * bucket is sorted in memory. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "ingest/plan/plan_impl.h"
#include "ingest/spill/buckets.h"

#define WHERE "ingest/plan"

typedef struct Hashed {
    uint64_t hash;
    uint64_t input;
} Hashed;

static int by_hash(const void *a, const void *b)
{
    const Hashed *p = a, *q = b;
    if (p->hash != q->hash)
        return p->hash < q->hash ? -1 : 1;
    return (p->input > q->input) - (p->input < q->input);
}

/* A copy of the input with this number, in `bytes`. */
static int find_input(const PenInputs *in, uint64_t number, PenBuf *bytes, PenInput *ret,
                      PenError *reterr)
{
    PenInputWalk walk;
    int r = pen__inputs_start(in, "check", &walk, reterr);
    do {
        if (r == PEN_OK)
            r = pen__inputs_next(&walk, ret, reterr);
    } while (r == PEN_OK && ret->number < number);
    if (r < 0)
        return r;
    if (pen__buf_reserve(bytes, pen__input_bytes(ret)) < 0)
        return pen__fail_memory(reterr, WHERE, "list of keys");
    pen__input_store(bytes->data, ret);
    pen__input_load(bytes->data, ret);
    return PEN_OK;
}

/* Two inputs whose keys have the same hash. */
static int compare(const PenInputs *in, uint64_t a, uint64_t b, PenError *reterr)
{
    PenBuf first_bytes = {0}, second_bytes = {0};
    PenInput p, q;
    char first[200], second[200];
    int r = find_input(in, a, &first_bytes, &p, reterr);
    if (r == PEN_OK)
        r = find_input(in, b, &second_bytes, &q, reterr);
    if (r == PEN_OK && p.key_bytes == q.key_bytes && memcmp(p.key, q.key, p.key_bytes) == 0) {
        pen__input_name(in, &p, first, sizeof first);
        pen__input_name(in, &q, second, sizeof second);
        r = pen__fail(reterr, PEN_E_EXISTS, WHERE,
                      "expected unique keys, found %.*s twice: %s (input %" PRIu64
                      ") and %s (input %" PRIu64 ")",
                      (int)PEN_MIN(p.key_bytes, 60u), (const char *)p.key, first, a, second, b);
    }
    pen__buf_free(&first_bytes);
    pen__buf_free(&second_bytes);
    return r;
}

static int collect(void *ctx, const PenTuple *t, PenError *reterr)
{
    return pen__buf_add(ctx, &(Hashed){t->v[0], t->v[1]}, sizeof(Hashed)) < 0
               ? pen__fail_memory(reterr, WHERE, "list of keys")
               : PEN_OK;
}

static int check_bucket(const PenInputs *in, PenBuckets *buckets, uint32_t bucket, PenBuf *list,
                        PenError *reterr)
{
    int r = pen__buckets_read(buckets, bucket, collect, list, reterr);
    Hashed *h = (Hashed *)(void *)list->data;
    uint64_t n = list->bytes / sizeof *h;
    if (r == PEN_OK && n)
        qsort(h, (size_t)n, sizeof *h, by_hash);
    for (uint64_t i = 0; r == PEN_OK && i < n; i++)
        for (uint64_t k = i + 1; r == PEN_OK && k < n && h[k].hash == h[i].hash; k++)
            r = compare(in, h[i].input, h[k].input, reterr);
    list->bytes = 0;
    return r;
}

/* `list` gets the hashes when there is one bucket. */
static int hash_keys(const PenInputs *in, PenBuckets *buckets, uint32_t n_buckets, PenBuf *list,
                     PenError *reterr)
{
    PenInputWalk walk;
    PenInput input;
    int r = pen__inputs_start(in, "check", &walk, reterr);
    while (r == PEN_OK && (r = pen__inputs_next(&walk, &input, reterr)) == PEN_OK) {
        uint8_t hash[32];
        pen__sha256(input.key, input.key_bytes, hash);
        uint64_t h = pen__load64(hash);
        PenTuple tuple = {{h, input.number, 0}};
        uint32_t bucket = (uint32_t)((h >> 32) * n_buckets >> 32);
        r = n_buckets > 1 ? pen__buckets_add(buckets, bucket, &tuple, reterr)
                          : collect(list, &tuple, reterr);
    }
    return r == PEN_END ? PEN_OK : r;
}

int pen__order_check_keys(const PenInputs *in, PenError *reterr)
{
    PenBuckets *buckets = NULL;
    PenBuf list = {0};
    uint64_t block;
    uint32_t n = pen__space_blocks(&in->space, in->n, sizeof(Hashed), &block);
    int r = pen__buf_reserve(&list, (size_t)block * sizeof(Hashed)) < 0
                ? pen__fail_memory(reterr, WHERE, "list of keys")
                : pen__buckets_open(&in->space, n, &buckets, reterr);
    if (r == PEN_OK)
        r = hash_keys(in, buckets, n, &list, reterr);
    for (uint32_t i = 0; r == PEN_OK && i < n; i++)
        r = check_bucket(in, buckets, i, &list, reterr);
    pen__buckets_close(&buckets);
    pen__buf_free(&list);
    return r;
}
