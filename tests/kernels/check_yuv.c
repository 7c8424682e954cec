/* SPDX-License-Identifier: Apache-2.0 */
/* YUV to RGB: every tier against C, and C against the real formula of H.273. */
#include "codec/picture/yuv.h"

#include <math.h>

#include "check.h"

static const char *const yuv_tiers[] = {"c", "avx2", "avx512", "neon"};
static const uint32_t matrices[] = {1, 2, 3, 4, 5, 6, 7, 9, 10}, depths[] = {8, 10, 12};

/* How samples are stored: by the names of PenYuvKernels. */
enum { FULL, HALF, GRAY, KINDS };
static const char *const kind_names[] = {"full", "half", "gray"};

static PenYuvFn *kernel_of(const PenYuvKernels *k, int kind, uint32_t depth)
{
    PenYuvFn *const *fns = kind == FULL ? k->full : kind == HALF ? k->half : k->gray;
    return fns[depth > 8];
}

static PenYuvFactors factors_of(uint32_t matrix, bool is_full, uint32_t depth)
{
    PenYuvFactors f = {0};
    if (!pen__yuv_factors(matrix, is_full, depth, &f))
        abort();
    return f;
}

/* ---- tiers ---------------------------------------------------------------------------------- */

/* Exactly as large as they are, and not aligned: tools for memory see a byte too many. */
static uint8_t *samples_new(uint32_t n, uint32_t depth, uint32_t offset)
{
    size_t bytes = (size_t)n * (depth > 8 ? 2 : 1);
    uint8_t *p = malloc(bytes + offset);
    if (!p)
        abort();
    fill_pixels(p, bytes + offset);
    /* Samples above the largest one are for some rows only. */
    for (size_t i = 1; depth > 8 && chance(4) && i < bytes; i += 2)
        p[offset + i] &= (uint8_t)((1 << (depth - 8)) - 1);
    return p + offset;
}

static void check_row(int kind, uint32_t n, const PenYuvFactors *f)
{
    const bool odd = kind == HALF && chance(2);
    const uint32_t chroma = kind == HALF ? (n + odd + 1) / 2 : n, offset = chance(4);
    const size_t bytes = kind == GRAY ? n : 3 * (size_t)n;
    uint8_t *y = samples_new(n, f->depth, offset), *u = samples_new(chroma, f->depth, offset);
    uint8_t *v = samples_new(chroma, f->depth, offset), *expected = guarded_new(bytes);
    PenYuvRow row = {.factors = f, .y = y, .n = n, .odd_x = odd};
    if (kind != GRAY) {
        row.u = u;
        row.v = v;
    }
    kernel_of(pen__yuv_kernels_tier("c"), kind, f->depth)(&row, expected);
    CHECK(guarded_ok(expected, bytes));
    for (size_t i = 1; i < PEN_LEN(yuv_tiers); i++) {
        const PenYuvKernels *k = pen__yuv_kernels_tier(yuv_tiers[i]);
        if (!k)
            continue;
        uint8_t *found = guarded_new(bytes);
        kernel_of(k, kind, f->depth)(&row, found);
        if (memcmp(found, expected, bytes) != 0)
            printf("%s %s, %u pixels of %u bits\n", k->tier, kind_names[kind], n, f->depth);
        CHECK_MEM(found, expected, bytes);
        CHECK(guarded_ok(found, bytes));
        guarded_free(found);
    }
    free(y - offset);
    free(u - offset);
    free(v - offset);
    guarded_free(expected);
}

static void check_kind(int kind)
{
    for (size_t d = 0; d < PEN_LEN(depths); d++)
        for (size_t m = 0; m < PEN_LEN(matrices); m++)
            for (int is_full = 0; is_full < 2; is_full++) {
                PenYuvFactors f = factors_of(matrices[m], is_full, depths[d]);
                for (uint32_t n = 1; n < 140; n += 1 + chance(4))
                    check_row(kind, n, &f);
                check_row(kind, 1000 + chance(1000), &f);
                CHECK_OK_SO_FAR();
            }
}

TEST(full)
{
    check_kind(FULL);
}

TEST(half)
{
    check_kind(HALF);
}

TEST(gray)
{
    check_kind(GRAY);
}

/* ---- the real values ------------------------------------------------------------------------ */

typedef struct Real { /* factors of samples that count from black, and from the middle */
    double y, rv, gu, gv, bu;
} Real;

static Real real_of(uint32_t matrix, bool is_full, uint32_t depth)
{
    static const double red[] = {0, .2126, .299, .299, .3, .299, .299, .212, 0, .2627, .2627};
    static const double blue[] = {0, .0722, .114, .114, .11, .114, .114, .087, 0, .0593, .0593};
    double r = red[matrix], b = blue[matrix], g = 1 - r - b;
    double most = ldexp(1, (int)depth) - 1, unit = ldexp(1, (int)depth - 8);
    double luma = 255 / (is_full ? most : 219 * unit), chroma = 255 / (is_full ? most : 224 * unit);
    return (Real){.y = luma,
                  .rv = 2 * (1 - r) * chroma,
                  .gu = -2 * (1 - b) * b / g * chroma,
                  .gv = -2 * (1 - r) * r / g * chroma,
                  .bu = 2 * (1 - b) * chroma};
}

static double term_error(int32_t factor, int32_t x, double real)
{
    return fabs((double)((factor * x + (1 << 14)) >> 15) / 64 - real);
}

/* A pixel is the sum of a term for each sample, so the largest errors of the terms bound that of
 * all pixels: far below half a unit, results differ by one at most. */
static double largest_error(const PenYuvFactors *f, const Real *real)
{
    int32_t middle = 1 << (f->depth - 1);
    double y = 0, rv = 0, gu = 0, gv = 0, bu = 0;
    for (int32_t s = 0; s <= f->most; s++) {
        int32_t luma = (s - f->black) * (1 << (15 - f->depth));
        int32_t chroma = (s - middle) * (1 << (16 - f->depth));
        y = fmax(y, term_error(f->y, luma, real->y * (s - f->black)));
        rv = fmax(rv, term_error(f->rv, chroma, real->rv * (s - middle)));
        gu = fmax(gu, term_error(f->gu, chroma, real->gu * (s - middle)));
        gv = fmax(gv, term_error(f->gv, chroma, real->gv * (s - middle)));
        bu = fmax(bu, term_error(f->bu, chroma, real->bu * (s - middle)));
    }
    return y + fmax(fmax(rv, bu), gu + gv);
}

TEST(largest_errors)
{
    double largest = 0;
    for (size_t d = 0; d < PEN_LEN(depths); d++)
        for (size_t m = 0; m < PEN_LEN(matrices); m++)
            for (int is_full = 0; is_full < 2; is_full++) {
                PenYuvFactors f = factors_of(matrices[m], is_full, depths[d]);
                Real real = real_of(matrices[m], is_full, depths[d]);
                largest = fmax(largest, largest_error(&f, &real));
            }
    printf("before rounding: at most %.4f from the real value\n", largest);
    CHECK(largest < 0.05);
}

static uint32_t load_sample(const uint8_t *p, uint32_t depth, uint32_t i)
{
    return depth > 8 ? p[2 * i] | (uint32_t)p[2 * i + 1] << 8 : p[i];
}

static int32_t rounded(double v)
{
    return (int32_t)floor(fmin(fmax(v, 0), 255) + 0.5);
}

typedef struct Tally {
    uint64_t values, different;
    int32_t most;
} Tally;

static void compare(Tally *t, const uint8_t *found, const double expected[3])
{
    for (int c = 0; c < 3; c++) {
        int32_t distance = abs(found[c] - rounded(expected[c]));
        t->values++;
        t->different += distance != 0;
        t->most = PEN_MAX(t->most, distance);
    }
}

static void compare_row(uint32_t matrix, bool is_full, uint32_t depth, Tally *t)
{
    enum { N = 400 };
    PenYuvFactors f = factors_of(matrix, is_full, depth);
    Real real = real_of(matrix, is_full, depth);
    uint8_t *y = samples_new(N, depth, 0), *u = samples_new(N, depth, 0);
    uint8_t *v = samples_new(N, depth, 0), rgb[3 * N];
    pen__yuv_kernels_tier("c")->full[depth > 8](
        &(PenYuvRow){.factors = &f, .y = y, .u = u, .v = v, .n = N}, rgb);
    for (uint32_t i = 0; i < N; i++) {
        double luma = real.y * ((double)PEN_MIN(load_sample(y, depth, i), f.most) - f.black);
        double middle = ldexp(1, (int)depth - 1);
        double e = PEN_MIN(load_sample(u, depth, i), f.most) - middle;
        double w = PEN_MIN(load_sample(v, depth, i), f.most) - middle;
        double expected[3] = {luma + real.rv * w, luma + real.gu * e + real.gv * w,
                              luma + real.bu * e};
        compare(t, rgb + 3 * (size_t)i, expected);
    }
    free(y);
    free(u);
    free(v);
}

TEST(real_formula)
{
    Tally t = {0};
    for (int k = 0; k < 10; k++)
        for (size_t d = 0; d < PEN_LEN(depths); d++)
            for (size_t m = 0; m < PEN_LEN(matrices); m++)
                for (int is_full = 0; is_full < 2; is_full++)
                    compare_row(matrices[m], is_full, depths[d], &t);
    printf("rounded: %.3f %% of %llu values differ, by at most %d\n",
           100.0 * (double)t.different / (double)t.values, (unsigned long long)t.values, t.most);
    CHECK_INT(t.most, 1);
    CHECK(t.different * 100 < t.values);
}

/* Black, white and the ends are exact; other matrices are refused. */
TEST(fixed_points)
{
    static const struct {
        uint8_t y, u, v, is_full, rgb[3];
    } cases[] = {
        {16, 128, 128, 0, {0, 0, 0}},        {235, 128, 128, 0, {255, 255, 255}},
        {0, 128, 128, 0, {0, 0, 0}},         {255, 128, 128, 0, {255, 255, 255}},
        {126, 128, 128, 0, {128, 128, 128}}, {0, 128, 128, 1, {0, 0, 0}},
        {255, 128, 128, 1, {255, 255, 255}}, {77, 128, 128, 1, {77, 77, 77}},
        {81, 90, 240, 0, {254, 0, 0}},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenYuvFactors f = factors_of(6, cases[i].is_full, 8);
        PenYuvRow row = {
            .factors = &f, .y = &cases[i].y, .u = &cases[i].u, .v = &cases[i].v, .n = 1};
        uint8_t rgb[3];
        pen__yuv_kernels()->full[0](&row, rgb);
        CHECK_MEM(rgb, cases[i].rgb, 3);
    }
    PenYuvFactors f;
    CHECK(!pen__yuv_factors(0, false, 8, &f));
    CHECK(!pen__yuv_factors(8, false, 8, &f));
    CHECK(!pen__yuv_factors(11, false, 8, &f));
    CHECK(!pen__yuv_factors(255, false, 8, &f));
    CHECK(!pen__yuv_kernels_tier("sse"));
}

/* ---- time ----------------------------------------------------------------------------------- */

enum { WIDTH = 1920 };

typedef struct Bench {
    PenYuvFn *fn;
    PenYuvRow row;
    uint8_t *out;
} Bench;

static void run_row(void *ctx)
{
    const Bench *b = ctx;
    b->fn(&b->row, b->out);
}

static void bench(void)
{
    uint8_t *samples[3], out[3 * WIDTH];
    for (int i = 0; i < 3; i++)
        samples[i] = samples_new(WIDTH, 16, 0);
    for (size_t i = 0; i < PEN_LEN(yuv_tiers); i++)
        for (int kind = 0; kind < 2 * KINDS && pen__yuv_kernels_tier(yuv_tiers[i]); kind++) {
            uint32_t depth = kind < KINDS ? 8 : 10;
            PenYuvFactors f = factors_of(1, false, depth);
            Bench b = {.fn = kernel_of(pen__yuv_kernels_tier(yuv_tiers[i]), kind % KINDS, depth),
                       .row = {&f, samples[0], samples[1], samples[2], WIDTH, false},
                       .out = out};
            printf("%-6s %s %2u bits %10.1f ns a row of %d pixels\n", yuv_tiers[i],
                   kind_names[kind % KINDS], depth, time_of(run_row, &b), WIDTH);
        }
    for (int i = 0; i < 3; i++)
        free(samples[i]);
}

int main(int argc, char **argv)
{
    if (wants_bench(argc, argv)) {
        bench();
        argc = 1;
    }
    TEST_START(argc, argv);
    RUN(full);
    RUN(half);
    RUN(gray);
    RUN(largest_errors);
    RUN(real_formula);
    RUN(fixed_points);
    return TEST_END();
}
