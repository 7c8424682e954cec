/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/tokens.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "load/plan/shapes.h"

#define WHERE "load/tokens"

enum { MAX_BATCH = 1 << 20 };

/* ---- settings ---- */

static int check(const PenLoadPlan *p, PenError *reterr)
{
    const PenLoaderSettings *s = &p->set;
    if (p->mixture)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "tokens: a mixture of packs cannot have a token budget");
    if (s->buckets)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "tokens: expected buckets or a token budget, found both");
    if (!s->tokens || !s->lengths)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "tokens, lengths: expected both, found only %s",
                         s->tokens ? "tokens" : "lengths");
    if (s->n_lengths < 1 || s->n_lengths > PEN_MAX_LENGTHS)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "lengths: expected 1 to %d numbers, found %" PRIu32, PEN_MAX_LENGTHS,
                         s->n_lengths);
    return PEN_OK;
}

static int take_length(PenLengths *l, const PenLoaderSettings *s, uint32_t i, PenError *reterr)
{
    uint32_t length = s->lengths[i];
    if (length < 1 || length > s->tokens)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "lengths: entry %" PRIu32 ": expected 1 to %" PRIu32
                         " (tokens), found %" PRIu32,
                         i, s->tokens, length);
    if (s->tokens / length > MAX_BATCH)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "lengths: entry %" PRIu32 ": expected batches of at most %d samples, "
                         "found %" PRIu32 " tokens / %" PRIu32,
                         i, MAX_BATCH, s->tokens, length);
    l->length[i] = length;
    l->batch[i] = s->tokens / length;
    l->round += l->batch[i];
    return PEN_OK;
}

/* The lengths of the steps are part of the order, and so are the samples that all ranks together
 * have in them. */
static uint64_t hash_of(const PenLoadPlan *p)
{
    PenSha256 s;
    uint8_t sum[32], bytes[8];
    pen__sha256_init(&s);
    pen__store64(bytes, p->state.subset);
    pen__sha256_update(&s, bytes, sizeof bytes);
    for (uint32_t i = 0; i < p->lengths->n; i++) {
        pen__store64(bytes, p->lengths->length[i]);
        pen__sha256_update(&s, bytes, sizeof bytes);
        pen__store64(bytes, (uint64_t)p->lengths->batch[i] * p->set.world);
        pen__sha256_update(&s, bytes, sizeof bytes);
    }
    pen__sha256_final(&s, sum);
    return pen__load64(sum);
}

int pen__plan_tokens_take(PenLoadPlan *p, PenError *reterr)
{
    PenLoaderSettings *s = &p->set;
    if (!s->tokens && !s->lengths)
        return PEN_OK;
    int r = check(p, reterr);
    if (r < 0)
        return r;
    p->lengths = pen__zalloc(sizeof *p->lengths);
    if (!p->lengths)
        return pen__fail_memory(reterr, WHERE, "lengths");
    p->lengths->n = s->n_lengths;
    p->lengths->seed = s->seed;
    s->batch_size = 1;
    for (uint32_t i = 0; i < s->n_lengths && r == PEN_OK; i++) {
        r = take_length(p->lengths, s, i, reterr);
        s->batch_size = PEN_MAX(s->batch_size, p->lengths->batch[i]);
    }
    s->lengths = NULL;
    p->state.by_step = true;
    p->state.global_batch = p->lengths->round * s->world;
    p->state.subset = hash_of(p);
    return r;
}

/* ---- fields ---- */

static void set_batch(const PenLoadPlan *p, uint32_t shape)
{
    PenOutField *fields = p->shapes->fields[shape];
    for (uint32_t i = 0; i < p->n_fields; i++)
        if (fields[i].tensor.shape[0] == p->set.batch_size) /* of a list it is -1 */
            fields[i].tensor.shape[0] = p->lengths->batch[shape];
}

int pen__plan_tokens_fields(PenLoadPlan *p, PenError *reterr)
{
    bool is_used = false;
    for (uint32_t i = 0; i < p->n_fields; i++)
        is_used |= pen__plan_has_shapes(p, &p->fields[i]);
    if (!is_used)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "tokens: no operation of the pipeline has the length of a step; use "
                         "'patches 16'");
    int r = pen__plan_shapes_new(p, p->lengths->n, reterr);
    for (uint32_t i = 0; i < p->lengths->n && r == PEN_OK; i++)
        set_batch(p, i);
    return r;
}
