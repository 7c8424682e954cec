/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { ROUNDS = 600 };

/* Images of both kinds, of sizes around those of a vector and well above. */
static size_t random_pixels(int i)
{
    return 1 + chance(i % 2 ? 40 : 700);
}

static uint32_t random_channels(void)
{
    return chance(2) ? 3 : 1;
}

static void fill_tables(uint8_t tables[3][256])
{
    bool alike = chance(2);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 256; i++)
            tables[c][i] = alike && c ? tables[0][i] : (uint8_t)chance(256);
}

TEST(lookup)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t channels = random_channels();
        size_t n = random_pixels(i), bytes = n * channels;
        uint8_t tables[3][256], *pixels = row_new(bytes);
        fill_tables(tables);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(bytes);
            memcpy(found, pixels, bytes);
            d->lookup(found, n, channels, (const uint8_t(*)[256])tables);
            for (size_t k = 0; k < bytes; k++)
                CHECK(found[k] == tables[k % channels][pixels[k]]);
            CHECK(guarded_ok(found, bytes));
            guarded_free(found);
        }
        free(pixels);
    }
}

TEST(count)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t channels = random_channels(), found[3][256] = {{0}}, expected[3][256] = {{0}};
        size_t n = random_pixels(i), bytes = n * channels;
        uint8_t *pixels = row_new(bytes);
        for (size_t k = 0; k < bytes; k++)
            expected[k % channels][pixels[k]]++;
        pen__dsp_tier("c")->count(pixels, n, channels, found);
        CHECK_MEM(found, expected, sizeof found);
        free(pixels);
    }
}

TEST(extremes)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t channels = random_channels();
        size_t n = random_pixels(i), bytes = n * channels;
        uint8_t *pixels = row_new(bytes), low[3], high[3];
        for (size_t k = 0; k < bytes; k++)
            pixels[k] = (uint8_t)(pixels[k] / 2 + 60);
        pen__dsp_tier("c")->extremes(pixels, n, channels, low, high);
        for (size_t k = 0; k < bytes; k++)
            CHECK(pixels[k] >= low[k % channels] && pixels[k] <= high[k % channels]);
        FOR_TIERS(d)
        {
            uint8_t found_low[3], found_high[3];
            d->extremes(pixels, n, channels, found_low, found_high);
            CHECK_MEM(found_low, low, channels);
            CHECK_MEM(found_high, high, channels);
        }
        free(pixels);
    }
}

TEST(fold)
{
    for (int i = 0; i < ROUNDS; i++) {
        size_t n = random_pixels(i);
        uint8_t mask = (uint8_t)chance(256), from = (uint8_t)chance(256);
        uint8_t flip = chance(2) ? 255 : 0, *pixels = row_new(n);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(n);
            memcpy(found, pixels, n);
            d->fold(found, n, mask, from, flip);
            for (size_t k = 0; k < n; k++) {
                uint8_t v = pixels[k] & mask;
                CHECK(found[k] == (v >= from ? v ^ flip : v));
            }
            CHECK(guarded_ok(found, n));
            guarded_free(found);
        }
        free(pixels);
    }
}

static int32_t random_factor(void)
{
    static const int32_t ends[] = {INT32_MIN,      -1,       0, 1, 65535, 65536, 65537,
                                   PEN_FACTOR_MAX, INT32_MAX};
    return chance(4) ? (int32_t)chance(3 << 16) : ends[chance(PEN_LEN(ends))];
}

/* The first and the last pixel stay as they are. */
TEST(sharpen)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t channels = random_channels();
        size_t n = random_pixels(i) * channels;
        int32_t factor = random_factor();
        const uint8_t *rows[3] = {row_new(n), row_new(n), row_new(n)};
        uint8_t *expected = guarded_new(n);
        pen__dsp_tier("c")->sharpen(rows, expected, n, channels, factor);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(n);
            d->sharpen(rows, found, n, channels, factor);
            CHECK_MEM(found, expected, n);
            CHECK(guarded_ok(found, n));
            guarded_free(found);
        }
        guarded_free(expected);
        for (int k = 0; k < 3; k++)
            free((void *)(uintptr_t)rows[k]);
    }
}

/* Weights whose sum, those beside the middle counted twice, is 1. */
static void random_weights(int16_t *weights, uint32_t radius)
{
    int32_t rest = 32767;
    for (uint32_t k = 1; k <= radius; k++) {
        weights[k] = (int16_t)chance((uint32_t)rest / (2 * radius) + 1);
        rest -= 2 * weights[k];
    }
    weights[0] = (int16_t)rest;
}

static int16_t *wide_new(size_t n)
{
    uint8_t *pixels = row_new(n);
    int16_t *wide = (int16_t *)(void *)row_new(n * 2);
    pen__dsp_tier("c")->widen(pixels, wide, n);
    free(pixels);
    return wide;
}

TEST(widen)
{
    for (int i = 0; i < ROUNDS; i++) {
        size_t n = random_pixels(i);
        uint8_t *pixels = row_new(n);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(n * 2);
            d->widen(pixels, (int16_t *)(void *)found, n);
            for (size_t k = 0; k < n; k++)
                CHECK(((int16_t *)(void *)found)[k] == pixels[k] << PEN_BLUR_BITS);
            CHECK(guarded_ok(found, n * 2));
            guarded_free(found);
        }
        free(pixels);
    }
}

TEST(blur_across)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t channels = random_channels(), radius = chance(12);
        size_t n = random_pixels(i) * channels;
        int16_t weights[12], *row = wide_new(n + 2 * (size_t)radius * channels);
        uint8_t *expected = guarded_new(n * 2);
        random_weights(weights, radius);
        pen__dsp_tier("c")->blur_across(row, (int16_t *)(void *)expected, n, channels, weights,
                                        radius);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(n * 2);
            d->blur_across(row, (int16_t *)(void *)found, n, channels, weights, radius);
            CHECK_MEM(found, expected, n * 2);
            CHECK(guarded_ok(found, n * 2));
            guarded_free(found);
        }
        guarded_free(expected);
        free(row);
    }
}

TEST(blur_down)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t radius = chance(12);
        size_t n = random_pixels(i);
        int16_t weights[12];
        const int16_t *rows[23];
        uint8_t *expected = guarded_new(n);
        for (uint32_t k = 0; k <= 2 * radius; k++)
            rows[k] = wide_new(n);
        random_weights(weights, radius);
        pen__dsp_tier("c")->blur_down(rows, expected, n, weights, radius);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(n);
            d->blur_down(rows, found, n, weights, radius);
            CHECK_MEM(found, expected, n);
            CHECK(guarded_ok(found, n));
            guarded_free(found);
        }
        guarded_free(expected);
        for (uint32_t k = 0; k <= 2 * radius; k++)
            free((void *)(uintptr_t)rows[k]);
    }
}

/* ---- time ----------------------------------------------------------------------------------- */

enum { SIDE = 224, LOOKUP, LOOKUP_3, COUNT, EXTREMES, FOLD, SHARPEN, BLUR, KINDS };
static const char *const names[] = {"lookup", "lookup x 3", "count", "extremes",
                                    "fold",   "sharpen",    "blur"};

typedef struct Bench {
    const PenDsp *dsp;
    int kind;
    uint8_t *pixels;
    uint8_t tables[3][256];
    int16_t weights[12], *wide;
} Bench;

/* A kernel of 17 x 17. */
static void blur_rows(Bench *b)
{
    const int16_t *rows[17];
    size_t stride = SIDE * 3, padded = stride + 64;
    for (size_t y = 0; y < SIDE; y++) {
        b->dsp->widen(b->pixels + y * stride, b->wide + 17 * padded, stride);
        b->dsp->blur_across(b->wide + 17 * padded, b->wide + y % 17 * padded, stride, 3, b->weights,
                            8);
        for (size_t k = 0; k < 17; k++)
            rows[k] = b->wide + k * padded;
        b->dsp->blur_down(rows, b->pixels + y * stride, stride, b->weights, 8);
    }
}

static void sharpen_rows(const Bench *b)
{
    size_t stride = SIDE * 3;
    for (size_t y = 1; y + 1 < SIDE; y++) {
        uint8_t *p = b->pixels + y * stride;
        const uint8_t *rows[3] = {p - stride, p, p + stride};
        b->dsp->sharpen(rows, b->pixels, stride, 3, 65540);
    }
}

static void run_bench(void *ctx)
{
    Bench *b = ctx;
    uint32_t counts[3][256] = {{0}};
    uint8_t low[3], high[3];
    switch (b->kind) {
    case LOOKUP:
    case LOOKUP_3:
        b->tables[2][7] = b->kind == LOOKUP ? b->tables[0][7] : b->tables[0][7] ^ 1;
        b->dsp->lookup(b->pixels, SIDE * SIDE, 3, (const uint8_t(*)[256])b->tables);
        break;
    case COUNT:
        b->dsp->count(b->pixels, SIDE * SIDE, 3, counts);
        break;
    case EXTREMES:
        b->dsp->extremes(b->pixels, SIDE * SIDE, 3, low, high);
        break;
    case FOLD:
        b->dsp->fold(b->pixels, SIDE * SIDE * 3, 255, 99, 255);
        break;
    case SHARPEN:
        sharpen_rows(b);
        break;
    default:
        blur_rows(b);
        break;
    }
}

static void bench(void)
{
    for (size_t i = 0; i < PEN_LEN(check_tiers); i++)
        for (int kind = LOOKUP; kind < KINDS; kind++) {
            Bench b = {.dsp = pen__dsp_tier(check_tiers[i]),
                       .kind = kind,
                       .pixels = row_new(SIDE * SIDE * 3),
                       .wide = wide_new(18 * (SIDE * 3 + 64))};
            for (int v = 0; v < 256; v++)
                b.tables[0][v] = b.tables[1][v] = b.tables[2][v] = (uint8_t)(255 - v);
            random_weights(b.weights, 8);
            if (b.dsp)
                printf("%-6s %-10s %d x %d %8.1f us\n", b.dsp->tier, names[kind - LOOKUP], SIDE,
                       SIDE, time_of(run_bench, &b) / 1000);
            free(b.pixels);
            free(b.wide);
        }
}

int main(int argc, char **argv)
{
    if (wants_bench(argc, argv)) {
        bench();
        argc = 1;
    }
    TEST_START(argc, argv);
    RUN(lookup);
    RUN(count);
    RUN(extremes);
    RUN(fold);
    RUN(sharpen);
    RUN(widen);
    RUN(blur_across);
    RUN(blur_down);
    return TEST_END();
}
