/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/run/decode_context.h"

#include <stdbool.h>
#include <string.h>

static const char where[] = "ops/sample_plan";

static void drop(PenScratch *s)
{
    pen__free_large(s->data, s->bytes);
    *s = (PenScratch){.data = NULL};
}

int pen__scratch_hold(PenScratch *s, uint64_t bytes, PenError *reterr)
{
    if (s->bytes >= bytes)
        return PEN_OK;
    drop(s);
    *s = (PenScratch){.data = bytes < SIZE_MAX - PEN_SLACK ? pen__alloc(bytes + PEN_SLACK) : NULL};
    if (!s->data)
        return pen__fail_memory(reterr, where, "pixels between two steps");
    memset(s->data + bytes, 0, PEN_SLACK);
    s->bytes = bytes;
    return PEN_OK;
}

static void drop_all(PenDecodeContext *k)
{
    drop(&k->images[0]);
    drop(&k->images[1]);
    drop(&k->upright);
    drop(&k->row);
    drop(&k->blend);
    drop(&k->filter);
    for (uint32_t i = 0; i < PEN_LEN(k->parts); i++)
        pen__decode_context_free(&k->parts[i]);
}

static int new_context(bool is_part, PenDecodeContext **ret, PenError *reterr)
{
    PenDecodeContext *k = pen__zalloc(sizeof *k);
    if (!k)
        return pen__fail_memory(reterr, where, "a context");
    int r = is_part ? PEN_OK : pen__decoder_new(&k->decoder, reterr);
    if (r == PEN_OK)
        r = pen__stream_new(&k->stream, reterr);
    if (r < 0) {
        pen__decode_context_free(&k);
        return r;
    }
    *ret = k;
    return PEN_OK;
}

int pen__decode_context_new(PenDecodeContext **ret, PenError *reterr)
{
    return new_context(false, ret, reterr);
}

int pen__decode_context_part(PenDecodeContext *k, uint32_t i, PenDecodeContext **ret,
                             PenError *reterr)
{
    int r = k->parts[i] ? PEN_OK : new_context(true, &k->parts[i], reterr);
    if (r < 0)
        return r;
    k->parts[i]->clock = k->clock;
    *ret = k->parts[i];
    return PEN_OK;
}

void pen__decode_context_free(PenDecodeContext **k)
{
    if (!k || !*k)
        return;
    pen__decoder_free(&(*k)->decoder);
    pen__stream_free(&(*k)->stream);
    drop_all(*k);
    pen__free(*k);
    *k = NULL;
}

void pen__decode_context_time(PenDecodeContext *k, PenStageClock *clock)
{
    k->clock = clock;
}

static uint64_t held(const PenDecodeContext *k)
{
    return (uint64_t)k->images[0].bytes + k->images[1].bytes + k->upright.bytes + k->row.bytes +
           k->blend.bytes + k->filter.bytes;
}

/* What is held for plans that run together is of many sizes, and not kept. */
void pen__decode_context_trim(PenDecodeContext *k, uint64_t bytes)
{
    if (k->parts[0] || held(k) > bytes / 2)
        drop_all(k);
    pen__stream_trim(k->stream, bytes - held(k));
}
