/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding files that are in no pack: one, or many by several threads. */
#include <penstock/decode.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/machine/cores.h"
#include "base/sys.h"
#include "base/team.h"
#include "base/thread.h"
#include "ops/run/decode_file.h"

#define WHERE "ops/decode"
#define TICK_NS 100000000u

enum { MOST_THREADS = 256 };

static const PenDecodeSettings DEFAULTS = {0};

void pen_decode_settings_init(PenDecodeSettings *settings)
{
    *settings = DEFAULTS;
}

static int check_settings(const PenDecodeSettings *s, PenError *reterr)
{
    if (s->mode < PEN_DECODE_RGB || s->mode > PEN_DECODE_MASK)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "mode: expected 0 to %d, found %d",
                         PEN_DECODE_MASK, (int)s->mode);
    if (s->filter < PEN_FILTER_BILINEAR || s->filter > PEN_FILTER_BOX)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "filter: expected 0 to %d, found %d",
                         PEN_FILTER_BOX, (int)s->filter);
    if (!s->width != !s->height)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "size: expected a width and a height, or neither, found %u x %u", s->width,
                         s->height);
    if (s->width > PEN_DECODE_SIDE || s->height > PEN_DECODE_SIDE)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "size: expected at most %d pixels per side, found %u x %u",
                         PEN_DECODE_SIDE, s->width, s->height);
    if (s->threads < 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "threads: expected a number, 0 or more, found %d", (int)s->threads);
    return PEN_OK;
}

static int take_settings(const PenDecodeSettings *given, PenDecodeSettings *ret, PenError *reterr)
{
    *ret = given ? *given : DEFAULTS;
    return check_settings(ret, reterr);
}

int pen_decode(PenDecodeItem *item, const PenDecodeSettings *settings, PenError *reterr)
{
    PenDecodeSettings own;
    PenDecodeContext *k = NULL;
    int r = take_settings(settings, &own, reterr);
    if (r == PEN_OK && item->pixels)
        r = pen__decode_context_new(&k, reterr);
    if (r == PEN_OK)
        r = pen__decode_file(k, item, &own, reterr);
    pen__decode_context_free(&k);
    return r;
}

/* ---- many ----------------------------------------------------------------------------------- */

typedef struct Batch {
    PenDecodeItem *items;
    size_t n;
    const PenDecodeSettings *settings;
    bool is_alone;         /* the calling thread decodes */
    uint64_t next_tick_ns; /* of the calling thread */
    atomic_size_t next, done;
    atomic_bool is_cancelled;
    pthread_mutex_t mutex; /* of both below */
    size_t first_bad;      /* n: none */
    PenError first;
} Batch;

static void show_progress(void *ctx)
{
    Batch *b = ctx;
    const PenDecodeSettings *s = b->settings;
    uint64_t now = pen__sys->now_ns();
    if (!s->progress || now < b->next_tick_ns || atomic_load(&b->is_cancelled))
        return;
    if (s->progress(s->ctx, atomic_load(&b->done), b->n))
        atomic_store(&b->is_cancelled, true);
    b->next_tick_ns = pen__deadline_after(TICK_NS);
}

static void note_bad(Batch *b, size_t i, PenError *e)
{
    pen__error_prefix(e, "image %zu", i);
    e->sample = (int64_t)i;
    if (b->items[i].error)
        *b->items[i].error = *e;
    pthread_mutex_lock(&b->mutex);
    if (i < b->first_bad) {
        b->first_bad = i;
        b->first = *e;
    }
    pthread_mutex_unlock(&b->mutex);
}

static void decode_item(Batch *b, size_t i, PenDecodeContext **k)
{
    PenError e = {0};
    PenDecodeItem *item = &b->items[i];
    int r = *k ? PEN_OK : pen__decode_context_new(k, &e);
    if (r == PEN_OK)
        r = pen__decode_file(*k, item, b->settings, &e);
    if (r < 0)
        note_bad(b, i, &e);
    item->status = r;
    atomic_fetch_add(&b->done, 1);
}

static void decode_items(void *ctx, unsigned number)
{
    Batch *b = ctx;
    PenDecodeContext *k = NULL;
    (void)number;
    while (!atomic_load(&b->is_cancelled)) {
        size_t i = atomic_fetch_add(&b->next, 1);
        if (i >= b->n)
            break;
        decode_item(b, i, &k);
        if (b->is_alone)
            show_progress(b);
    }
    pen__decode_context_free(&k);
}

static int run_batch(Batch *b, PenError *reterr)
{
    PenTeamWork work = {"pen-decode", decode_items, show_progress, b};
    size_t n = b->settings->threads ? (size_t)b->settings->threads : pen__thread_cores();
    n = PEN_MIN(PEN_MIN(n, b->n), (size_t)MOST_THREADS);
    b->is_alone = n <= 1;
    if (!b->is_alone)
        return pen__team_run(&work, (unsigned)n, reterr);
    decode_items(b, 0);
    return PEN_OK;
}

static int outcome(const Batch *b, PenError *reterr)
{
    size_t done = atomic_load(&b->done);
    if (done < b->n)
        return pen__fail(reterr, PEN_E_CANCELLED, WHERE,
                         "decoding was stopped after %zu of %zu images", done, b->n);
    if (b->first_bad == b->n)
        return PEN_OK;
    if (reterr)
        *reterr = b->first;
    return b->first.status;
}

int pen_decode_batch(PenDecodeItem *items, size_t n, const PenDecodeSettings *settings,
                     PenError *reterr)
{
    PenDecodeSettings own;
    int r = take_settings(settings, &own, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        items[i].status = PEN_E_CANCELLED;
    Batch b = {.items = items,
               .n = n,
               .settings = &own,
               .next_tick_ns = pen__deadline_after(TICK_NS),
               .first_bad = n};
    pthread_mutex_init(&b.mutex, NULL);
    r = run_batch(&b, reterr);
    pthread_mutex_destroy(&b.mutex);
    return r < 0 ? r : outcome(&b, reterr);
}
