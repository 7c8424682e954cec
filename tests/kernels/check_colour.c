/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, GREY, GREY_SUM, KINDS };
static const char *const names[] = {"brightness", "contrast", "saturation",
                                    "hue",        "grey",     "grey_sum"};

static uint64_t apply(const PenDsp *d, int kind, uint8_t *p, size_t n, int32_t factor, int32_t v)
{
    switch (kind) {
    case BRIGHTNESS:
        d->brightness(p, n, factor);
        break;
    case CONTRAST:
        d->contrast(p, n, factor, v);
        break;
    case SATURATION:
        d->saturation(p, n, factor);
        break;
    case HUE:
        d->hue(p, n, v);
        break;
    case GREY:
        d->grey(p, n);
        break;
    default:
        return d->grey_sum(p, n);
    }
    return 0;
}

static int32_t random_factor(void)
{
    static const int32_t ends[] = {INT32_MIN,      -1,       0, 1, 65535, 65536, 65537,
                                   PEN_FACTOR_MAX, INT32_MAX};
    return chance(4) ? (int32_t)chance(3 << 16) : ends[chance(PEN_LEN(ends))];
}

static void check_kind(int kind)
{
    const PenDsp *c = pen__dsp_tier("c");
    for (int i = 0; i < 1500; i++) {
        size_t n = 1 + chance(i % 2 ? 30 : 700), bytes = n * 3;
        int32_t factor = random_factor(), v = (int32_t)chance(256);
        uint8_t *pixels = row_new(bytes), *expected = guarded_new(bytes);
        memcpy(expected, pixels, bytes);
        uint64_t sum = apply(c, kind, expected, n, factor, v);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(bytes);
            memcpy(found, pixels, bytes);
            CHECK_INT(apply(d, kind, found, n, factor, v), sum);
            CHECK_MEM(found, expected, bytes);
            CHECK(guarded_ok(found, bytes));
            guarded_free(found);
        }
        guarded_free(expected);
        free(pixels);
    }
}

TEST(brightness)
{
    check_kind(BRIGHTNESS);
}

TEST(contrast)
{
    check_kind(CONTRAST);
}

TEST(saturation)
{
    check_kind(SATURATION);
}

TEST(hue)
{
    check_kind(HUE);
}

/* Tiers round by other steps here. */
TEST(hue_of_every_colour)
{
    enum { N = 256 * 256 };
    const PenDsp *c = pen__dsp_tier("c");
    uint8_t *pixels = row_new(N * 3), *expected = row_new(N * 3), *found = row_new(N * 3);
    for (uint32_t red = 0; red < 256; red++) {
        int32_t shift = (int32_t)chance(256);
        for (uint32_t i = 0; i < N; i++) {
            pixels[i * 3] = (uint8_t)red;
            pixels[i * 3 + 1] = (uint8_t)(i >> 8);
            pixels[i * 3 + 2] = (uint8_t)i;
        }
        memcpy(expected, pixels, N * 3);
        c->hue(expected, N, shift);
        FOR_TIERS(d)
        {
            memcpy(found, pixels, N * 3);
            d->hue(found, N, shift);
            CHECK_MEM(found, expected, N * 3);
        }
        CHECK_OK_SO_FAR();
    }
    free(pixels);
    free(expected);
    free(found);
}

TEST(grey)
{
    check_kind(GREY);
}

TEST(grey_sum)
{
    check_kind(GREY_SUM);
}

/* ---- time ----------------------------------------------------------------------------------- */

enum { SIDE = 224 };

typedef struct Bench {
    const PenDsp *dsp;
    int kind;
    uint8_t *pixels;
} Bench;

/* Factors near 1, that leave the picture one. */
static void run_bench(void *ctx)
{
    Bench *b = ctx;
    apply(b->dsp, b->kind, b->pixels, SIDE * SIDE, 65540, 128);
}

static void bench(void)
{
    for (size_t i = 0; i < PEN_LEN(check_tiers); i++)
        for (int kind = 0; kind < KINDS; kind++) {
            Bench b = {pen__dsp_tier(check_tiers[i]), kind, row_new(SIDE * SIDE * 3)};
            if (b.dsp)
                printf("%-6s %-10s %d x %d %8.1f us\n", b.dsp->tier, names[kind], SIDE, SIDE,
                       time_of(run_bench, &b) / 1000);
            free(b.pixels);
        }
}

int main(int argc, char **argv)
{
    if (wants_bench(argc, argv)) {
        bench();
        argc = 1;
    }
    TEST_START(argc, argv);
    RUN(brightness);
    RUN(contrast);
    RUN(saturation);
    RUN(hue);
    RUN(hue_of_every_colour);
    RUN(grey);
    RUN(grey_sum);
    return TEST_END();
}
