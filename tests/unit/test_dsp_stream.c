/* SPDX-License-Identifier: Apache-2.0 */
/* What torch gives is compared in test_dsp_resample.c, whole images; here it is the stream that is
 * compared with whole images, and with the definition of the filters. */
#include "dsp/stream.h"

#include <math.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/mem.h"
#include "base/sys.h"
#include "dsp/axis.h"
#include "dsp/dsp.h"
#include "dsp/resample.h"
#include "test.h"

static uint32_t seed = 1;

static uint32_t chance(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)seed * below >> 32);
}

static uint8_t *noise(size_t n)
{
    uint8_t *p = malloc(n + PEN_SLACK);
    if (!p)
        abort();
    for (size_t i = 0; i < n + PEN_SLACK; i++)
        p[i] = (uint8_t)chance(256);
    return p;
}

/* ---- running a stream ----------------------------------------------------------------------- */

typedef struct Sink {
    uint8_t *data;
    size_t row_bytes;
    uint32_t rows, h;
    bool flipped, ordered; /* rows came from the top (bottom) on */
    int answer;            /* for the row that is number fail_at */
    uint32_t fail_at;
} Sink;

static int sink_row(void *ctx, uint32_t y, const uint8_t *row, PenError *reterr)
{
    Sink *s = ctx;
    (void)reterr;
    s->ordered = s->ordered && y == (s->flipped ? s->h - 1 - s->rows : s->rows);
    if (s->answer && s->rows == s->fail_at)
        return s->answer;
    s->rows++;
    memcpy(s->data + y * s->row_bytes, row, s->row_bytes);
    return PEN_OK;
}

static Sink sink_for(const PenResize *w)
{
    size_t row = (size_t)w->window.w * w->channels;
    return (Sink){.data = noise(row * w->window.h),
                  .row_bytes = row,
                  .h = w->window.h,
                  .flipped = w->flip_y != 0,
                  .ordered = true};
}

/* Pushes copies of just what is needed, `step` rows at a time. */
static int push_needs(PenStream *s, const PenResize *w, const uint8_t *src, uint32_t step)
{
    PenBox b;
    size_t c = w->channels, stride = w->src_width * c;
    int r = PEN_OK;
    pen__resize_needs(w, &b);
    for (uint32_t y = 0; y < b.h && r >= 0; y += step) {
        uint32_t n = PEN_MIN(step, b.h - y);
        uint8_t *rows = noise(n * b.w * c);
        for (size_t i = 0; i < n; i++)
            memcpy(rows + i * b.w * c, src + (b.y + y + i) * stride + b.x * c, b.w * c);
        r = pen__stream_push(s, rows, b.w * c, n, NULL);
        free(rows);
    }
    return r;
}

static uint32_t side(void)
{
    return 1 + chance(chance(2) ? 20 : 150);
}

static PenResize random_resize(void)
{
    PenResize w = {.src_width = side(), .src_height = side(), .width = side(), .height = side()};
    if (chance(8) == 0)
        w.width = w.src_width;
    if (chance(8) == 0)
        w.height = w.src_height;
    w.window.x = chance(w.width);
    w.window.y = chance(w.height);
    w.window.w = 1 + chance(w.width - w.window.x);
    w.window.h = 1 + chance(w.height - w.window.y);
    w.channels = 1 + chance(4);
    w.filter = (int32_t)chance(5);
    w.flip_x = (int32_t)chance(2);
    w.flip_y = (int32_t)chance(2);
    return w;
}

/* A part that begins in the first eighths of a source, and ends in the last. */
static void random_part(uint32_t size, uint32_t *ret_from, uint32_t *ret_span)
{
    *ret_from = chance(8);
    *ret_span = 8 * size - *ret_from - chance(size > 1 ? 8 : 8 - *ret_from);
}

/* ---- windows and flips ---------------------------------------------------------------------- */

static void check_window(const PenResize *w, const uint8_t *whole, const uint8_t *found)
{
    size_t c = w->channels;
    for (uint32_t y = 0; y < w->window.h; y++)
        for (uint32_t x = 0; x < w->window.w; x++) {
            uint32_t from_x = w->window.x + (w->flip_x ? w->window.w - 1 - x : x);
            uint32_t from_y = w->window.y + (w->flip_y ? w->window.h - 1 - y : y);
            CHECK_MEM(found + ((size_t)y * w->window.w + x) * c,
                      whole + ((size_t)from_y * w->width + from_x) * c, c);
        }
}

TEST(window_is_that_part_of_the_whole)
{
    PenStream *s = NULL;
    CHECK_INT(pen__stream_new(&s, NULL), PEN_OK);
    for (int i = 0; i < 1500; i++) {
        PenResize w = random_resize();
        uint8_t *src = noise((size_t)w.src_width * w.src_height * w.channels);
        uint8_t *whole = noise((size_t)w.width * w.height * w.channels);
        PenRaster from = {src, w.src_width, w.src_height, w.channels};
        PenRaster to = {whole, w.width, w.height, w.channels};
        CHECK_INT(pen__raster_resample(&from, &to, w.filter, NULL), PEN_OK);
        Sink sink = sink_for(&w);
        CHECK_INT(pen__stream_start(s, &w, sink_row, &sink, NULL), PEN_OK);
        CHECK_INT(push_needs(s, &w, src, 1 + chance(20)), PEN_OK);
        CHECK_INT(sink.rows, w.window.h);
        CHECK(sink.ordered);
        check_window(&w, whole, sink.data);
        CHECK_OK_SO_FAR();
        free(sink.data);
        free(src);
        free(whole);
    }
    pen__stream_free(&s);
    CHECK(s == NULL);
    pen__stream_free(&s);
}

static void run_both(PenStream *used, const PenResize *w, const uint8_t *src)
{
    PenStream *fresh = NULL;
    Sink a = sink_for(w), b = sink_for(w);
    CHECK_INT(pen__stream_new(&fresh, NULL), PEN_OK);
    CHECK_INT(pen__stream_start(used, w, sink_row, &a, NULL), PEN_OK);
    CHECK_INT(push_needs(used, w, src, 16), PEN_OK);
    CHECK_INT(pen__stream_start(fresh, w, sink_row, &b, NULL), PEN_OK);
    CHECK_INT(push_needs(fresh, w, src, 16), PEN_OK);
    CHECK_INT(a.rows, b.rows);
    CHECK_MEM(a.data, b.data, a.row_bytes * a.h);
    pen__stream_free(&fresh);
    free(a.data);
    free(b.data);
}

/* One thing is another than before, in every way there is. */
TEST(tables_are_used_again_only_for_the_same)
{
    const PenResize first = {40, 40, 30, 30, {5, 5, 20, 20}, 3, PEN_FILTER_BILINEAR, 0, 0, {0}};
    PenResize next[17];
    PenStream *s = NULL;
    uint8_t *src = noise((size_t)41 * 41 * 4);
    for (size_t i = 0; i < PEN_LEN(next); i++)
        next[i] = first;
    next[1].src_width = 41;
    next[2].src_height = 41;
    next[3].width = 31;
    next[4].height = 31;
    next[5].window.x = 6;
    next[6].window.y = 6;
    next[7].window.w = 21;
    next[8].window.h = 21;
    next[9].channels = 4;
    next[10].filter = PEN_FILTER_BOX;
    next[11].flip_x = 1;
    next[12].flip_y = 1;
    next[13].part = (PenBox){1, 0, 8 * 40 - 1, 8 * 40};
    next[14].part = (PenBox){0, 1, 8 * 40, 8 * 40 - 1};
    next[15].part = (PenBox){0, 0, 8 * 40 - 1, 8 * 40};
    next[16].part = (PenBox){0, 0, 8 * 40, 8 * 40 - 1};
    CHECK_INT(pen__stream_new(&s, NULL), PEN_OK);
    for (size_t i = 0; i < PEN_LEN(next); i++) {
        run_both(s, &first, src);
        run_both(s, &next[i], src);
        CHECK_OK_SO_FAR();
    }
    pen__stream_free(&s);
    free(src);
}

TEST(needs_lie_in_the_source)
{
    for (int i = 0; i < 20000; i++) {
        PenResize w = random_resize();
        PenBox b;
        pen__resize_needs(&w, &b);
        CHECK(b.w && b.h && b.x + b.w <= w.src_width && b.y + b.h <= w.src_height);
    }
}

TEST(needs_are_no_more_than_the_filter_reaches)
{
    PenBox b;
    PenResize w = {1000, 1000, 500, 2000, {100, 1000, 10, 10}, 3, PEN_FILTER_BILINEAR, 0, 0, {0}};
    pen__resize_needs(&w, &b); /* columns 200-219 and 2 more on each side */
    CHECK_INT(b.x, 199);
    CHECK_INT(b.w, 22);
    CHECK_INT(b.y, 499);
    CHECK_INT(b.h, 7);
    w.filter = PEN_FILTER_NEAREST;
    pen__resize_needs(&w, &b);
    CHECK_INT(b.x, 200);
    CHECK_INT(b.w, 19);
    CHECK_INT(b.y, 500);
    CHECK_INT(b.h, 5);
}

/* ---- the filters by their definition -------------------------------------------------------- */

static double sinc(double x)
{
    return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x);
}

static double filter_value(int filter, double x)
{
    double a = fabs(x);
    switch (filter) {
    case PEN_FILTER_BILINEAR:
        return fmax(0, 1 - a);
    case PEN_FILTER_BICUBIC:
        return a < 1   ? 1.5 * a * a * a - 2.5 * a * a + 1
               : a < 2 ? -0.5 * a * a * a + 2.5 * a * a - 4 * a + 2
                       : 0;
    default:
        return a < 3 ? sinc(a) * sinc(a / 3) : 0;
    }
}

static double one_sample(const uint8_t *src, uint32_t size, uint32_t n, uint32_t i, int filter)
{
    double scale = (double)size / n, wide = fmax(scale, 1), sum = 0, total = 0;
    if (size == n)
        return src[i];
    for (uint32_t j = 0; j < size; j++) {
        double w = filter_value(filter, (j + 0.5 - scale * (i + 0.5)) / wide);
        sum += w * src[j];
        total += w;
    }
    return fmin(255, fmax(0, sum / total));
}

/* Columns of one row, so that there is no second rounding. */
TEST(filters_are_what_they_are_called)
{
    static const int filters[] = {PEN_FILTER_BILINEAR, PEN_FILTER_BICUBIC, PEN_FILTER_LANCZOS};
    for (int i = 0; i < 400; i++) {
        int filter = filters[chance(PEN_LEN(filters))];
        uint32_t size = side(), n = side();
        uint8_t *src = noise(size), *dst = noise(n);
        bool tall = chance(2);
        PenRaster from = {src, tall ? 1 : size, tall ? size : 1, 1};
        PenRaster to = {dst, tall ? 1 : n, tall ? n : 1, 1};
        CHECK_INT(pen__raster_resample(&from, &to, filter, NULL), PEN_OK);
        for (uint32_t k = 0; k < n; k++)
            CHECK(fabs(dst[k] - one_sample(src, size, n, k, filter)) < 0.55);
        free(src);
        free(dst);
    }
}

/* A part of a row: the same filter, with its middle somewhere else. */
static double one_sample_of_part(const uint8_t *src, const PenAxisSpec *s, uint32_t i)
{
    double scale = s->span / 8.0 / s->n, wide = fmax(scale, 1), sum = 0, total = 0;
    for (uint32_t j = 0; j < s->size; j++) {
        double w = filter_value(s->filter, (j + 0.5 - s->from / 8.0 - scale * (i + 0.5)) / wide);
        sum += w * src[j];
        total += w;
    }
    return fmin(255, fmax(0, sum / total));
}

TEST(parts_of_pixels)
{
    PenStream *s = NULL;
    CHECK_INT(pen__stream_new(&s, NULL), PEN_OK);
    for (int i = 0; i < 600; i++) {
        static const int filters[] = {PEN_FILTER_BILINEAR, PEN_FILTER_BICUBIC, PEN_FILTER_LANCZOS};
        bool tall = chance(2);
        PenAxisSpec a = {.size = side(), .n = side(), .filter = filters[chance(3)]};
        random_part(a.size, &a.from, &a.span);
        PenResize w = {
            .src_width = tall ? 1 : a.size,
            .src_height = tall ? a.size : 1,
            .width = tall ? 1 : a.n,
            .height = tall ? a.n : 1,
            .channels = 1,
            .filter = a.filter,
            .part = {tall ? 0 : a.from, tall ? a.from : 0, tall ? 8 : a.span, tall ? a.span : 8}};
        w.window = (PenBox){.w = w.width, .h = w.height};
        uint8_t *src = noise(a.size);
        Sink sink = sink_for(&w);
        CHECK_INT(pen__stream_start(s, &w, sink_row, &sink, NULL), PEN_OK);
        CHECK_INT(push_needs(s, &w, src, 1 + chance(20)), PEN_OK);
        CHECK_INT(sink.rows, w.height);
        for (uint32_t k = 0; k < a.n; k++)
            CHECK(fabs(sink.data[k] - one_sample_of_part(src, &a, k)) < 0.55);
        CHECK_OK_SO_FAR();
        free(sink.data);
        free(src);
    }
    pen__stream_free(&s);
}

/* All of the source is no part; and what is needed of one lies in the source. */
TEST(parts_that_are_all_of_it)
{
    PenStream *s = NULL;
    CHECK_INT(pen__stream_new(&s, NULL), PEN_OK);
    for (int i = 0; i < 300; i++) {
        PenResize w = random_resize(), part = w;
        PenBox b;
        w.filter = part.filter = PEN_FILTER_BILINEAR;
        part.part = (PenBox){.w = 8 * w.src_width, .h = 8 * w.src_height};
        uint8_t *src = noise((size_t)w.src_width * w.src_height * w.channels);
        Sink one = sink_for(&w), two = sink_for(&w);
        CHECK_INT(pen__stream_start(s, &w, sink_row, &one, NULL), PEN_OK);
        CHECK_INT(push_needs(s, &w, src, 16), PEN_OK);
        CHECK_INT(pen__stream_start(s, &part, sink_row, &two, NULL), PEN_OK);
        CHECK_INT(push_needs(s, &part, src, 16), PEN_OK);
        CHECK_MEM(one.data, two.data, one.row_bytes * one.h);
        random_part(w.src_width, &part.part.x, &part.part.w);
        random_part(w.src_height, &part.part.y, &part.part.h);
        CHECK_INT(pen__resize_check(&part, NULL), PEN_OK);
        pen__resize_needs(&part, &b);
        CHECK(b.w && b.h && b.x + b.w <= w.src_width && b.y + b.h <= w.src_height);
        CHECK_OK_SO_FAR();
        free(one.data);
        free(two.data);
        free(src);
    }
    pen__stream_free(&s);
}

TEST(box_is_the_mean_of_what_it_covers)
{
    for (uint32_t factor = 2; factor < 40; factor++) {
        enum { N = 13 };
        uint8_t *src = noise((size_t)N * factor), dst[N];
        PenRaster from = {src, N * factor, 1, 1}, to = {dst, N, 1, 1};
        CHECK_INT(pen__raster_resample(&from, &to, PEN_FILTER_BOX, NULL), PEN_OK);
        for (uint32_t i = 0; i < N; i++) {
            double sum = 0;
            for (uint32_t j = 0; j < factor; j++)
                sum += src[i * factor + j];
            CHECK(fabs(dst[i] - sum / factor) < 0.55);
        }
        free(src);
    }
}

/* ---- tables --------------------------------------------------------------------------------- */

TEST(table_of_a_window_has_the_precision_of_the_axis)
{
    for (int i = 0; i < 300; i++) {
        PenAxisSpec s = {.size = side(), .n = side(), .unit = 3, .filter = (int32_t)chance(5)};
        s.len = s.n;
        PenAxisSpec part = s;
        part.first = chance(s.n);
        part.len = 1 + chance(s.n - part.first);
        void *m = aligned_alloc(64, pen__axis_bytes(&s));
        void *scratch = aligned_alloc(64, pen__axis_scratch_bytes(&s) + 64);
        void *m2 = aligned_alloc(64, pen__axis_bytes(&part));
        void *scratch2 = aligned_alloc(64, pen__axis_scratch_bytes(&part) + 64);
        PenAxis whole, a;
        CHECK(m && scratch && m2 && scratch2);
        pen__axis_fill(&s, 0, pen__dsp(), m, scratch, &whole);
        pen__axis_fill(&part, 0, pen__dsp(), m2, scratch2, &a);
        CHECK_INT(a.precision, whole.precision);
        for (uint32_t k = 0; k < a.n; k++) {
            CHECK_INT(a.at[k], whole.at[part.first + k]);
            CHECK_INT(a.count[k], whole.count[part.first + k]);
            CHECK(a.count[k] <= pen__axis_reach(&part));
            if (a.precision)
                CHECK_MEM(a.weights + k * a.taps, whole.weights + (part.first + k) * whole.taps,
                          a.count[k] * sizeof(int16_t));
        }
        free(m);
        free(scratch);
        free(m2);
        free(scratch2);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

static struct {
    uint64_t held, calls;
} memory;

/* The size stands in front of what is given out. */
static void *count_alloc(size_t bytes)
{
    size_t *p = malloc(bytes + 64);
    if (!p)
        return NULL;
    *p = bytes;
    memory.held += bytes;
    memory.calls++;
    return (uint8_t *)p + 64;
}

static void count_release(void *p)
{
    if (!p)
        return;
    size_t *start = (size_t *)(void *)((uint8_t *)p - 64);
    memory.held -= *start;
    free(start);
}

static PenSys counting_sys(void)
{
    PenSys sys = pen__sys_real;
    sys.alloc = count_alloc;
    sys.release = count_release;
    memory.held = memory.calls = 0;
    return sys;
}

static void check_memory(void)
{
    PenStream *s = NULL;
    uint64_t most = 0;
    CHECK_INT(pen__stream_new(&s, NULL), PEN_OK);
    for (int i = 0; i < 500; i++) {
        PenResize w = random_resize();
        uint8_t *src = noise((size_t)w.src_width * w.src_height * w.channels);
        uint64_t needs = pen__resize_memory(&w), before = memory.calls;
        Sink sink = sink_for(&w);
        CHECK_INT(pen__stream_start(s, &w, sink_row, &sink, NULL), PEN_OK);
        CHECK_INT(push_needs(s, &w, src, 7), PEN_OK);
        CHECK(needs > most || memory.calls == before); /* what is large enough is used again */
        most = PEN_MAX(most, needs);
        CHECK(memory.held <= most);
        if (chance(20) == 0) {
            uint64_t keep = chance(2) ? most : most - 1;
            pen__stream_trim(s, keep);
            CHECK(memory.held <= keep);
            CHECK(keep < most || memory.held == most);
            most = memory.held;
        }
        free(sink.data);
        free(src);
    }
    pen__stream_free(&s);
    CHECK_INT(memory.held, 0);
}

TEST(memory_is_within_what_was_said_and_used_again)
{
    PenSys sys = counting_sys();
    pen__sys = &sys;
    check_memory();
    pen__sys = &pen__sys_real;
}

TEST(trimmed_stream_takes_no_rows)
{
    PenStream *s = NULL;
    PenResize w = {8, 8, 4, 4, {0, 0, 4, 4}, 1, PEN_FILTER_BILINEAR, 0, 0, {0}};
    uint8_t *src = noise(64);
    Sink sink = sink_for(&w);
    CHECK_INT(pen__stream_new(&s, NULL), PEN_OK);
    CHECK_INT(pen__stream_push(s, src, 8, 1, NULL), PEN_E_INVALID);
    CHECK_INT(pen__stream_start(s, &w, sink_row, &sink, NULL), PEN_OK);
    pen__stream_trim(s, 0);
    CHECK_INT(pen__stream_push(s, src, 8, 1, NULL), PEN_E_INVALID);
    pen__stream_free(&s);
    free(sink.data);
    free(src);
}

/* ---- mistakes ------------------------------------------------------------------------------- */

TEST(stream_refuses_what_makes_no_sense)
{
    const PenResize good = {8, 9, 5, 6, {1, 2, 4, 4}, 3, PEN_FILTER_BICUBIC, 0, 0, {0}};
    PenResize bad[19];
    for (size_t i = 0; i < PEN_LEN(bad); i++)
        bad[i] = good;
    bad[0].src_width = 0;
    bad[1].src_height = 0;
    bad[2].width = 0;
    bad[3].height = 0;
    bad[4].src_height = PEN_RESIZE_SIDE + 1;
    bad[5].window.w = 5;
    bad[6].window.h = 5;
    bad[7].window.x = UINT32_MAX;
    bad[8].window.h = 0;
    bad[9].window.w = 0;
    bad[10].channels = 0;
    bad[11].channels = 5;
    bad[12].filter = 5;
    bad[13].filter = -1;
    bad[14].part = (PenBox){8, 0, 8 * 7, 8 * 9}; /* not the first column */
    bad[15].part = (PenBox){0, 0, 8 * 7, 8 * 9}; /* not the last */
    bad[16].part = (PenBox){0, 0, 8 * 8, 8 * 9 + 1};
    bad[17].part = (PenBox){0, 1, 8 * 8, 0};
    bad[18].part = (PenBox){0, 0, 8 * 8, 8 * 9};
    bad[18].filter = PEN_FILTER_NEAREST;
    PenStream *s = NULL;
    CHECK_INT(pen__resize_check(&good, NULL), PEN_OK);
    CHECK_INT(pen__stream_new(&s, NULL), PEN_OK);
    for (size_t i = 0; i < PEN_LEN(bad); i++)
        CHECK_INT(pen__stream_start(s, &bad[i], sink_row, NULL, NULL), PEN_E_INVALID);
    pen__stream_free(&s);
}

TEST(rows_beyond_the_needs_are_refused)
{
    PenStream *s = NULL;
    PenResize w = {8, 8, 4, 4, {0, 0, 4, 4}, 1, PEN_FILTER_BOX, 0, 0, {0}};
    uint8_t *src = noise(80);
    Sink sink = sink_for(&w);
    CHECK_INT(pen__stream_new(&s, NULL), PEN_OK);
    CHECK_INT(pen__stream_start(s, &w, sink_row, &sink, NULL), PEN_OK);
    CHECK_INT(pen__stream_push(s, src, 8, 9, NULL), PEN_E_INVALID);
    CHECK_INT(pen__stream_push(s, src, 8, 8, NULL), PEN_OK);
    CHECK_INT(sink.rows, 4);
    CHECK_INT(pen__stream_push(s, src, 8, 0, NULL), PEN_OK);
    CHECK_INT(pen__stream_push(s, src, 8, 1, NULL), PEN_E_INVALID);
    pen__stream_free(&s);
    free(sink.data);
    free(src);
}

TEST(what_the_receiver_answers_comes_back)
{
    for (int filter = 0; filter < 5; filter++) {
        PenStream *s = NULL;
        PenResize w = {8, 8, 4, 4, {0, 0, 4, 4}, 1, filter, 0, 0, {0}};
        uint8_t *src = noise(64);
        Sink sink = sink_for(&w);
        sink.answer = PEN_E_LIMIT;
        sink.fail_at = 2;
        CHECK_INT(pen__stream_new(&s, NULL), PEN_OK);
        CHECK_INT(pen__stream_start(s, &w, sink_row, &sink, NULL), PEN_OK);
        CHECK_INT(push_needs(s, &w, src, 8), PEN_E_LIMIT);
        CHECK_INT(sink.rows, 2);
        sink.answer = 0;
        sink.rows = 0;
        CHECK_INT(pen__stream_start(s, &w, sink_row, &sink, NULL), PEN_OK);
        CHECK_INT(push_needs(s, &w, src, 8), PEN_OK);
        CHECK_INT(sink.rows, 4);
        pen__stream_free(&s);
        free(sink.data);
        free(src);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(window_is_that_part_of_the_whole);
    RUN(tables_are_used_again_only_for_the_same);
    RUN(needs_lie_in_the_source);
    RUN(needs_are_no_more_than_the_filter_reaches);
    RUN(filters_are_what_they_are_called);
    RUN(parts_of_pixels);
    RUN(parts_that_are_all_of_it);
    RUN(box_is_the_mean_of_what_it_covers);
    RUN(table_of_a_window_has_the_precision_of_the_axis);
    RUN(memory_is_within_what_was_said_and_used_again);
    RUN(trimmed_stream_takes_no_rows);
    RUN(stream_refuses_what_makes_no_sense);
    RUN(rows_beyond_the_needs_are_refused);
    RUN(what_the_receiver_answers_comes_back);
    return TEST_END();
}
