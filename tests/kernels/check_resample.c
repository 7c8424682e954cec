/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "dsp/axis.h"
#include "dsp/stream.h"

/* ---- tables --------------------------------------------------------------------------------- */

typedef struct Table {
    PenAxis axis;
    uint32_t first, end;
    void *memory, *scratch;
} Table;

static void table_new(Table *t, const PenAxisSpec *s, const PenDsp *dsp)
{
    t->memory = aligned_alloc(64, pen__axis_bytes(s));
    t->scratch = aligned_alloc(64, pen__axis_scratch_bytes(s) + 64);
    if (!t->memory || !t->scratch)
        abort();
    pen__axis_needs(s, &t->first, &t->end);
    pen__axis_fill(s, t->first, dsp, t->memory, t->scratch, &t->axis);
}

static void table_free(Table *t)
{
    free(t->memory);
    free(t->scratch);
}

static uint32_t random_side(void)
{
    uint32_t most[] = {4, 40, 300, 3000};
    return 1 + chance(most[chance(4)]);
}

static PenAxisSpec random_spec(void)
{
    PenAxisSpec s = {.size = random_side(), .n = random_side(), .unit = 1 + chance(4)};
    s.filter = (int32_t)chance(5);
    s.flip = chance(2);
    s.inside = true;
    s.first = chance(2) ? chance(s.n) : 0;
    s.len = chance(2) ? 1 + chance(s.n - s.first) : s.n - s.first;
    return s;
}

TEST(tables)
{
    for (int i = 0; i < 5000; i++) {
        PenAxisSpec s = random_spec();
        s.inside = chance(2);
        Table expected;
        table_new(&expected, &s, pen__dsp_tier("c"));
        const PenAxis *e = &expected.axis;
        FOR_TIERS(d)
        {
            Table found;
            table_new(&found, &s, d);
            const PenAxis *a = &found.axis;
            CHECK_INT(a->taps, e->taps);
            CHECK_INT(a->precision, e->precision);
            CHECK_MEM(a->at, e->at, e->n * sizeof *a->at);
            CHECK_MEM(a->count, e->count, e->n * sizeof *a->count);
            CHECK_MEM(a->weights, e->weights, (size_t)e->n * e->taps * sizeof *a->weights);
            table_free(&found);
        }
        table_free(&expected);
        CHECK_OK_SO_FAR();
    }
}

/* ---- across --------------------------------------------------------------------------------- */

/* With a table of its own, and now and then with one that was made for C. */
TEST(across)
{
    const PenDsp *c = pen__dsp_tier("c");
    for (int i = 0; i < 3000; i++) {
        PenAxisSpec s = random_spec();
        Table t;
        table_new(&t, &s, c);
        size_t bytes = (size_t)s.len * s.unit;
        uint8_t *src = row_new((size_t)(t.end - t.first) * s.unit);
        uint8_t *expected = guarded_new(bytes + PEN_SLACK);
        c->across(src, expected, &t.axis, s.unit);
        FOR_TIERS(d)
        {
            Table own;
            uint8_t *found = guarded_new(bytes + PEN_SLACK);
            table_new(&own, &s, d);
            d->across(src, found, chance(8) ? &own.axis : &t.axis, s.unit);
            CHECK_MEM(found, expected, bytes);
            CHECK(guarded_ok(found, bytes + PEN_SLACK));
            guarded_free(found);
            table_free(&own);
        }
        guarded_free(expected);
        free(src);
        table_free(&t);
    }
}

/* Two rows at once are what one and then the other would be. */
TEST(across_two)
{
    for (int i = 0; i < 2000; i++) {
        PenAxisSpec s = random_spec();
        FOR_TIERS(d)
        {
            Table t;
            table_new(&t, &s, d);
            size_t bytes = (size_t)s.len * s.unit, in = (size_t)(t.end - t.first) * s.unit;
            uint8_t *src[2] = {row_new(in), row_new(in)}, *expected[2], *found[2];
            for (int k = 0; k < 2; k++) {
                expected[k] = guarded_new(bytes + PEN_SLACK);
                found[k] = guarded_new(bytes + PEN_SLACK);
                d->across(src[k], expected[k], &t.axis, s.unit);
            }
            d->across_two((const uint8_t *const[2]){src[0], src[1]}, found, &t.axis, s.unit);
            for (int k = 0; k < 2; k++) {
                CHECK_MEM(found[k], expected[k], bytes);
                CHECK(guarded_ok(found[k], bytes + PEN_SLACK));
                guarded_free(found[k]);
                guarded_free(expected[k]);
                free(src[k]);
            }
            table_free(&t);
        }
    }
}

/* ---- down ----------------------------------------------------------------------------------- */

TEST(down)
{
    enum { ROWS = 19 };
    const PenDsp *c = pen__dsp_tier("c");
    for (int i = 0; i < 3000; i++) {
        uint32_t n_rows = 1 + chance(ROWS), precision = 12 + chance(11);
        size_t n = 1 + chance(i % 2 ? 70 : 1500);
        uint8_t *rows[ROWS];
        int16_t weights[ROWS];
        for (uint32_t j = 0; j < n_rows; j++) {
            rows[j] = row_new(n);
            weights[j] = (int16_t)((int32_t)chance(65536) - 32768);
        }
        uint8_t *expected = guarded_new(n + PEN_SLACK);
        c->down((const uint8_t *const *)rows, weights, n_rows, precision, expected, n);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(n + PEN_SLACK);
            d->down((const uint8_t *const *)rows, weights, n_rows, precision, found, n);
            CHECK_MEM(found, expected, n);
            CHECK(guarded_ok(found, n + PEN_SLACK));
            guarded_free(found);
        }
        guarded_free(expected);
        for (uint32_t j = 0; j < n_rows; j++)
            free(rows[j]);
    }
}

/* ---- time ----------------------------------------------------------------------------------- */

typedef struct Bench {
    PenStream *stream;
    PenResize what;
    uint8_t *src;
    uint32_t turn;
    bool tables_only;
} Bench;

static int no_row(void *ctx, uint32_t y, const uint8_t *row, PenError *reterr)
{
    (void)ctx, (void)y, (void)row, (void)reterr;
    return PEN_OK;
}

/* The flip is another one every time, so that no table can be used again. */
static void run_bench(void *ctx)
{
    Bench *b = ctx;
    PenBox needs;
    size_t stride = (size_t)b->what.src_width * b->what.channels;
    b->what.flip_x = b->turn++ & 1;
    if (pen__stream_start(b->stream, &b->what, no_row, NULL, NULL) < 0)
        abort();
    pen__resize_needs(&b->what, &needs);
    if (!b->tables_only && pen__stream_push(b->stream, b->src, stride, needs.h, NULL) < 0)
        abort();
}

static void bench_size(const char *tier, uint32_t w, uint32_t h, uint32_t side, uint32_t channels,
                       int filter)
{
    static const char *const names[] = {"bilinear", "nearest", "bicubic", "lanczos", "box"};
    Bench b = {.what = {w, h, side, side, {0, 0, side, side}, channels, filter, 0, 0, {0}}};
    b.src = row_new((size_t)w * h * channels);
    if (pen__stream_new(&b.stream, NULL) < 0)
        abort();
    double all = time_of(run_bench, &b);
    b.tables_only = true;
    double tables = time_of(run_bench, &b);
    printf("%-6s %4u x %4u of %u to %u, %-9s %8.1f us, of it tables %5.1f us (%.1f %%)\n", tier, w,
           h, channels, side, names[filter], all / 1000, tables / 1000, tables / all * 100);
    pen__stream_free(&b.stream);
    free(b.src);
}

static void bench_tier(const char *tier)
{
    setenv("PENSTOCK_CPU", tier, 1);
    for (int filter = 0; filter < 5; filter++)
        bench_size(tier, 400, 300, 224, 3, filter);
    bench_size(tier, 400, 300, 224, 1, PEN_FILTER_BILINEAR);
    bench_size(tier, 400, 300, 224, 4, PEN_FILTER_BILINEAR);
    bench_size(tier, 150, 120, 224, 3, PEN_FILTER_BILINEAR);
    bench_size(tier, 500, 375, 224, 3, PEN_FILTER_BILINEAR);
    bench_size(tier, 800, 600, 224, 3, PEN_FILTER_BILINEAR);
    bench_size(tier, 2000, 1500, 224, 3, PEN_FILTER_BILINEAR);
    bench_size(tier, 4000, 3000, 224, 3, PEN_FILTER_BILINEAR);
    fflush(stdout);
}

/* A process for each tier, as the tier is chosen once. */
static void bench(void)
{
    for (size_t i = 0; i < PEN_LEN(check_tiers); i++) {
        pid_t child = pen__dsp_tier(check_tiers[i]) ? fork() : -1;
        if (child == 0) {
            bench_tier(check_tiers[i]);
            _exit(0);
        }
        if (child > 0)
            waitpid(child, NULL, 0);
    }
}

int main(int argc, char **argv)
{
    if (wants_bench(argc, argv)) {
        bench();
        argc = 1;
    }
    TEST_START(argc, argv);
    RUN(tables);
    RUN(across);
    RUN(across_two);
    RUN(down);
    return TEST_END();
}
