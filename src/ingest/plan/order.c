/* SPDX-License-Identifier: Apache-2.0 */
/* Which inputs are taken, and in which order. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "ingest/plan/plan_impl.h"

#define WHERE "ingest/plan"

/* ---- keys ------------------------------------------------------------------------------------ */

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

static bool same_key(const PenInputs *in, uint64_t a, uint64_t b)
{
    PenInput p, q;
    pen__inputs_get(in, a, &p);
    pen__inputs_get(in, b, &q);
    return p.key_bytes == q.key_bytes && memcmp(p.key, q.key, p.key_bytes) == 0;
}

static int fail_twice(const PenInputs *in, uint64_t a, uint64_t b, PenError *reterr)
{
    char first[200], second[200];
    PenInput p;
    pen__inputs_name(in, a, first, sizeof first);
    pen__inputs_name(in, b, second, sizeof second);
    pen__inputs_get(in, a, &p);
    return pen__fail(reterr, PEN_E_EXISTS, WHERE,
                     "expected unique keys, found %.*s twice: %s (input %" PRIu64
                     ") and %s (input %" PRIu64 ")",
                     (int)PEN_MIN(p.key_bytes, 60u), (const char *)p.key, first, a, second, b);
}

int pen__order_check_keys(const PenInputs *in, PenError *reterr)
{
    Hashed *list = pen__alloc_array(in->n, sizeof *list);
    if (!list)
        return pen__fail_memory(reterr, WHERE, "list of keys");
    for (uint64_t i = 0; i < in->n; i++) {
        PenInput input;
        uint8_t hash[32];
        pen__inputs_get(in, i, &input);
        pen__sha256(input.key, input.key_bytes, hash);
        list[i] = (Hashed){pen__load64(hash), i};
    }
    if (in->n)
        qsort(list, (size_t)in->n, sizeof *list, by_hash);
    int r = PEN_OK;
    for (uint64_t i = 0; r == PEN_OK && i < in->n; i++)
        for (uint64_t k = i + 1; r == PEN_OK && k < in->n && list[k].hash == list[i].hash; k++)
            if (same_key(in, list[i].input, list[k].input))
                r = fail_twice(in, list[i].input, list[k].input, reterr);
    pen__free(list);
    return r;
}

/* ---- order ----------------------------------------------------------------------------------- */

static void shuffle(uint64_t *order, uint64_t n, uint64_t seed)
{
    PenRng rng = pen__rng_init(seed, PEN_ORDER_STREAM);
    for (uint64_t i = n; i-- > 1;) {
        uint64_t k = pen__rng_below(&rng, i + 1);
        uint64_t swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
}

/* ceil(fraction * n), without taking one more where the product is off by a rounding error. */
static uint64_t share(double fraction, uint64_t n)
{
    double x = fraction * (double)n - 1e-6;
    uint64_t k = x > 0 ? (uint64_t)x : 0;
    k += (double)k < x;
    return n && !k ? 1 : PEN_MIN(k, n);
}

/* Keeps, in the order they have, the first ones of each label. */
static int keep_fraction(const PenInputs *in, double fraction, uint64_t *order, uint64_t *n,
                         PenError *reterr)
{
    uint32_t n_groups = in->labels.n ? in->labels.n : 1;
    uint64_t *quota = pen__alloc_array(n_groups, sizeof *quota);
    if (!quota)
        return pen__fail_memory(reterr, WHERE, "list of classes");
    memset(quota, 0, n_groups * sizeof *quota);
    for (uint64_t i = 0; i < in->n; i++)
        quota[in->labels.n ? in->items[i].label : 0]++;
    for (uint32_t i = 0; i < n_groups; i++)
        quota[i] = share(fraction, quota[i]);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < *n; i++) {
        uint64_t *left = &quota[in->labels.n ? in->items[order[i]].label : 0];
        if (*left) {
            (*left)--;
            order[kept++] = order[i];
        }
    }
    *n = kept;
    pen__free(quota);
    return PEN_OK;
}

static int by_number(const void *a, const void *b)
{
    uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return (p > q) - (p < q);
}

static int drop_known(const PenInputs *in, const PenPlanRequest *request, uint64_t *order,
                      uint64_t *n, PenError *reterr)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < *n; i++) {
        PenInput input;
        pen__inputs_get(in, order[i], &input);
        int r = request->known(request->known_ctx, input.key, input.key_bytes, reterr);
        if (r < 0)
            return r;
        if (r == PEN_OK)
            order[kept++] = order[i];
    }
    *n = kept;
    return PEN_OK;
}

int pen__order_make(const PenInputs *in, const PenPlanRequest *request, uint64_t **ret_order,
                    uint64_t *ret_n, uint64_t *ret_n_known, PenError *reterr)
{
    const PenIngestSettings *s = request->settings;
    uint64_t n = in->n;
    uint64_t *order = pen__alloc_array(n, sizeof *order);
    if (!order)
        return pen__fail_memory(reterr, WHERE, "order of the inputs");
    for (uint64_t i = 0; i < n; i++)
        order[i] = i;
    shuffle(order, n, s->seed);
    int r = s->fraction < 1 ? keep_fraction(in, s->fraction, order, &n, reterr) : PEN_OK;
    /* What is read where it lies is fastest in the order in which it lies. */
    bool by_source = s->order == PEN_PACK_SOURCE || (s->in_place && in->kind == PEN_ROOT_TAR);
    if (r == PEN_OK && by_source && n)
        qsort(order, (size_t)n, sizeof *order, by_number);
    uint64_t chosen = n;
    if (r == PEN_OK && request->known)
        r = drop_known(in, request, order, &n, reterr);
    if (r < 0) {
        pen__free(order);
        return r;
    }
    *ret_order = order;
    *ret_n = n;
    *ret_n_known = chosen - n;
    return PEN_OK;
}
