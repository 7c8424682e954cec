/* SPDX-License-Identifier: Apache-2.0 */
#include "dsp/stream.h"

#include <stdbool.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "dsp/axis.h"
#include "dsp/dsp.h"

static const char where[] = "dsp/stream";

struct PenStream {
    PenResize what; /* of this image, and of the tables */
    PenBox needs;
    PenRowFn row;
    void *ctx;
    const PenDsp *dsp;
    PenAxis x, y;
    bool copies_x;  /* no horizontal pass */
    uint32_t taken; /* rows of the needs */
    uint32_t given; /* rows of the window */
    size_t stride;  /* of ring and out */
    uint32_t ring_rows;
    uint8_t *ring, *out;
    const uint8_t **picked; /* the rows that make an output row */
    uint8_t *memory;        /* all of the above, in one piece */
    uint64_t memory_bytes;
};

/* ---- what is needed ------------------------------------------------------------------------- */

static bool is_around(uint32_t from, uint32_t span, uint32_t size)
{
    uint64_t end = (uint64_t)from + span;
    return span && from < 8 && end <= 8 * (uint64_t)size && end + 8 > 8 * (uint64_t)size;
}

static int check_part(const PenResize *w, PenError *reterr)
{
    const PenBox *b = &w->part;
    if (!b->w && !b->h && !b->x && !b->y)
        return PEN_OK;
    if (is_around(b->x, b->w, w->src_width) && is_around(b->y, b->h, w->src_height) &&
        w->filter != PEN_FILTER_NEAREST)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, where,
                     "resize: expected a part that touches every pixel of %u x %u, and a filter "
                     "with weights, found %u x %u eighths at %u,%u and filter %d",
                     w->src_width, w->src_height, b->w, b->h, b->x, b->y, w->filter);
}

int pen__resize_check(const PenResize *w, PenError *reterr)
{
    const uint32_t most = PEN_RESIZE_SIDE;
    const PenBox *b = &w->window;
    if (!w->src_width || !w->src_height || !w->width || !w->height || w->src_width > most ||
        w->src_height > most || w->width > most || w->height > most)
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "resize: expected sizes of 1 to %u, found %u x %u to %u x %u", most,
                         w->src_width, w->src_height, w->width, w->height);
    if (!b->w || !b->h || b->x >= w->width || b->y >= w->height || b->w > w->width - b->x ||
        b->h > w->height - b->y)
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "resize: expected a window inside %u x %u, found %u x %u at %u,%u",
                         w->width, w->height, b->w, b->h, b->x, b->y);
    if (w->channels < 1 || w->channels > 4 || w->filter < PEN_FILTER_BILINEAR ||
        w->filter > PEN_FILTER_BOX)
        return pen__fail(reterr, PEN_E_INVALID, where,
                         "resize: expected 1-4 channels and filter 0-4, found %u and %d",
                         w->channels, w->filter);
    return check_part(w, reterr);
}

static PenAxisSpec x_spec(const PenResize *w)
{
    return (PenAxisSpec){.size = w->src_width,
                         .n = w->width,
                         .from = w->part.x,
                         .span = w->part.w,
                         .first = w->window.x,
                         .len = w->window.w,
                         .filter = w->filter,
                         .flip = w->flip_x != 0,
                         .inside = true,
                         .unit = w->channels};
}

/* Not flipped: rows are numbered the other way round when they are given out. */
static PenAxisSpec y_spec(const PenResize *w)
{
    return (PenAxisSpec){.size = w->src_height,
                         .n = w->height,
                         .from = w->part.y,
                         .span = w->part.h,
                         .first = w->window.y,
                         .len = w->window.h,
                         .filter = w->filter,
                         .unit = 1};
}

void pen__resize_needs(const PenResize *w, PenBox *ret)
{
    PenAxisSpec x = x_spec(w), y = y_spec(w);
    uint32_t right, bottom;
    pen__axis_needs(&x, &ret->x, &right);
    pen__axis_needs(&y, &ret->y, &bottom);
    ret->w = right - ret->x;
    ret->h = bottom - ret->y;
}

/* Places in the one piece of memory. Tables are made before there are rows, so their scratch lies
 * where the ring will be. */
typedef struct Layout {
    uint64_t y, picked, out, ring; /* the table of x is at 0, which is aligned to 64 */
    uint64_t total;
    uint64_t stride;
    uint32_t ring_rows;
} Layout;

static Layout lay_out(const PenResize *w)
{
    PenAxisSpec x = x_spec(w), y = y_spec(w);
    /* One more than an output needs: rows come in twos. */
    Layout l = {.ring_rows = pen__axis_reach(&y) + 1};
    l.stride = pen__padded((uint64_t)w->window.w * w->channels + PEN_SLACK, 64);
    l.y = pen__axis_bytes(&x);
    l.picked = l.y + pen__axis_bytes(&y);
    l.out = l.picked + pen__padded((uint64_t)l.ring_rows * sizeof(uint8_t *), 64);
    l.ring = l.out + l.stride;
    uint64_t scratch = PEN_MAX(pen__axis_scratch_bytes(&x), pen__axis_scratch_bytes(&y));
    l.total = l.ring + PEN_MAX(l.stride * l.ring_rows, scratch) + 64;
    return l;
}

uint64_t pen__resize_memory(const PenResize *what)
{
    return sizeof(PenStream) + lay_out(what).total;
}

/* ---- the stream ----------------------------------------------------------------------------- */

int pen__stream_new(PenStream **ret, PenError *reterr)
{
    PenStream *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, where, "stream");
    s->dsp = pen__dsp();
    *ret = s;
    return PEN_OK;
}

static void drop(PenStream *s)
{
    pen__free(s->memory);
    *s = (PenStream){.dsp = s->dsp};
}

void pen__stream_free(PenStream **s)
{
    if (!*s)
        return;
    pen__free((*s)->memory);
    pen__free(*s);
    *s = NULL;
}

void pen__stream_trim(PenStream *s, uint64_t bytes)
{
    if (sizeof *s + s->memory_bytes > bytes)
        drop(s);
}

/* Replaced rather than resized: nothing in it is worth copying. */
static int reserve(PenStream *s, uint64_t bytes, PenError *reterr)
{
    if (s->memory_bytes >= bytes)
        return PEN_OK;
    drop(s);
    s->memory = bytes <= SIZE_MAX ? pen__alloc((size_t)bytes) : NULL;
    if (!s->memory)
        return pen__fail_memory(reterr, where, "tables and rows");
    s->memory_bytes = bytes;
    return PEN_OK;
}

static bool same_box(const PenBox *a, const PenBox *b)
{
    return a->x == b->x && a->y == b->y && a->w == b->w && a->h == b->h;
}

static bool same(const PenResize *a, const PenResize *b)
{
    return a->src_width == b->src_width && a->src_height == b->src_height && a->width == b->width &&
           a->height == b->height && same_box(&a->window, &b->window) &&
           a->channels == b->channels && a->filter == b->filter && a->flip_x == b->flip_x &&
           a->flip_y == b->flip_y && same_box(&a->part, &b->part);
}

static void fill_tables(PenStream *s, const PenResize *what, const Layout *l)
{
    PenAxisSpec x = x_spec(what), y = y_spec(what);
    uint8_t *m = s->memory + (-(uintptr_t)s->memory & 63);
    pen__resize_needs(what, &s->needs);
    s->copies_x = !pen__axis_changes(&x) && !what->flip_x;
    if (!s->copies_x)
        pen__axis_fill(&x, s->needs.x, s->dsp, m, m + l->ring, &s->x);
    pen__axis_fill(&y, s->needs.y, s->dsp, m + l->y, m + l->ring, &s->y);
    s->picked = (const uint8_t **)(void *)(m + l->picked);
    s->out = m + l->out;
    s->ring = m + l->ring;
    s->ring_rows = l->ring_rows;
    s->stride = (size_t)l->stride;
    s->what = *what;
}

int pen__stream_start(PenStream *s, const PenResize *what, PenRowFn row, void *ctx,
                      PenError *reterr)
{
    int r = pen__resize_check(what, reterr);
    if (r < 0)
        return r;
    if (!same(&s->what, what)) {
        Layout l = lay_out(what);
        r = reserve(s, l.total, reterr);
        if (r < 0)
            return r;
        fill_tables(s, what, &l);
    }
    s->row = row;
    s->ctx = ctx;
    s->taken = s->given = 0;
    return PEN_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int give(PenStream *s, const uint8_t *row, PenError *reterr)
{
    uint32_t y = s->given++;
    return s->row(s->ctx, s->what.flip_y ? s->what.window.h - 1 - y : y, row, reterr);
}

/* No vertical pass: a row is given out as often as it is asked for. */
static int take_whole(PenStream *s, uint32_t y, const uint8_t *row, PenError *reterr)
{
    int r = PEN_OK;
    if (!s->copies_x) {
        s->dsp->across(row, s->out, &s->x, s->what.channels);
        row = s->out;
    }
    while (r >= 0 && s->given < s->y.n && s->y.at[s->given] == y)
        r = give(s, row, reterr);
    return r;
}

static int give_sum(PenStream *s, PenError *reterr)
{
    uint32_t first = s->y.at[s->given], count = s->y.count[s->given];
    const int16_t *weights = s->y.weights + (size_t)s->given * s->y.taps;
    for (uint32_t i = 0; i < count; i++)
        s->picked[i] = s->ring + (first + i) % s->ring_rows * s->stride;
    s->dsp->down(s->picked, weights, count, s->y.precision, s->out,
                 (size_t)s->what.window.w * s->what.channels);
    return give(s, s->out, reterr);
}

static uint8_t *ring_row(const PenStream *s, uint32_t y)
{
    return s->ring + y % s->ring_rows * s->stride;
}

/* Row y, or this one and the next. */
static int take_part(PenStream *s, uint32_t y, const uint8_t *rows, size_t stride, uint32_t n,
                     PenError *reterr)
{
    const size_t bytes = (size_t)s->what.window.w * s->what.channels;
    const uint8_t *src[2] = {rows, rows + stride};
    uint8_t *to[2] = {ring_row(s, y), ring_row(s, y + 1)};
    int r = PEN_OK;
    if (!s->copies_x && n == 2) {
        s->dsp->across_two(src, to, &s->x, s->what.channels);
    } else if (!s->copies_x) {
        s->dsp->across(rows, to[0], &s->x, s->what.channels);
    } else {
        for (uint32_t i = 0; i < n; i++)
            memcpy(to[i], src[i], bytes);
    }
    y += n - 1;
    while (r >= 0 && s->given < s->y.n && s->y.at[s->given] + s->y.count[s->given] - 1 <= y)
        r = give_sum(s, reterr);
    return r;
}

int pen__stream_push(PenStream *s, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    int r = PEN_OK;
    if (n > s->needs.h - s->taken)
        return pen__fail(reterr, PEN_E_INVALID, where, "resize: expected %u rows, found %u more",
                         s->needs.h, n - (s->needs.h - s->taken));
    for (uint32_t i = 0, step; i < n && r >= 0; i += step, rows += step * stride) {
        uint32_t y = s->taken;
        step = s->y.precision && i + 1 < n ? 2 : 1;
        s->taken += step;
        if (s->y.precision)
            r = take_part(s, y, rows, stride, step, reterr);
        else if (s->given < s->y.n &&
                 y >= s->y.at[s->given]) /* not one that "nearest" leaves out */
            r = take_whole(s, y, rows, reterr);
    }
    return r < 0 ? r : PEN_OK;
}
