/* SPDX-License-Identifier: Apache-2.0 */
/* The results in colour_golden.h were made by Pillow; tools/check_colour_pillow.py compares more,
 * through `test_dsp_colour --pipe KIND FACTOR N < pixels > pixels`. */
#include <stdio.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/mem.h"
#include "dsp/dsp.h"
#include "test.h"

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, GREY };

/* As a pipeline does it: the mean of the contrast is that of the whole image. */
static void apply(const PenDsp *d, int kind, uint8_t *p, size_t n, int32_t factor)
{
    switch (kind) {
    case BRIGHTNESS:
        d->brightness(p, n, factor);
        break;
    case CONTRAST:
        d->contrast(p, n, factor, (int32_t)((d->grey_sum(p, n) * 2 + n) / (2 * n)));
        break;
    case SATURATION:
        d->saturation(p, n, factor);
        break;
    case HUE:
        d->hue(p, n, factor);
        break;
    default:
        d->grey(p, n);
        break;
    }
}

enum { N = 40 };

typedef struct Golden {
    int kind;
    int32_t factor;
    uint8_t pixels[N * 3];
} Golden;

static const Golden goldens[] = {
#include "colour_golden.h"
};

/* The same bytes as generate() in tools/check_colour_pillow.py. */
static void fill(uint8_t *p, size_t n)
{
    uint32_t seed = 7;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
}

static const char *const tiers[] = {"c", "avx2", "avx512"};

TEST(colours_are_those_of_pillow)
{
    for (size_t t = 0; t < PEN_LEN(tiers); t++) {
        const PenDsp *d = pen__dsp_tier(tiers[t]);
        for (size_t i = 0; d && i < PEN_LEN(goldens); i++) {
            const Golden *g = &goldens[i];
            uint8_t p[N * 3 + PEN_SLACK] = {0};
            fill(p, N * 3);
            apply(d, g->kind, p, N, g->factor);
            CHECK_MEM(p, g->pixels, N * 3);
        }
    }
}

TEST(factor_of_one_changes_nothing)
{
    uint8_t p[N * 3 + PEN_SLACK] = {0}, q[N * 3];
    fill(p, N * 3);
    memcpy(q, p, sizeof q);
    for (size_t t = 0; t < PEN_LEN(tiers); t++)
        for (int kind = BRIGHTNESS; pen__dsp_tier(tiers[t]) && kind <= SATURATION; kind++) {
            apply(pen__dsp_tier(tiers[t]), kind, p, N, 65536);
            CHECK_MEM(p, q, sizeof q);
        }
}

TEST(ends_are_not_passed)
{
    for (size_t t = 0; t < PEN_LEN(tiers); t++) {
        const PenDsp *d = pen__dsp_tier(tiers[t]);
        uint8_t p[9 * 3 + PEN_SLACK] = {0}, black[27] = {0};
        if (!d)
            continue;
        memset(p, 200, 27);
        d->brightness(p, 9, INT32_MAX);
        CHECK_INT(p[0], 255);
        CHECK_INT(p[26], 255);
        d->brightness(p, 9, INT32_MIN);
        CHECK_MEM(p, black, 27);
        d->contrast(p, 9, PEN_FACTOR_MAX, 255);
        CHECK_MEM(p, black, 27);
        d->contrast(p, 9, 0, 77);
        CHECK_INT(p[0], 77);
        CHECK_INT(p[26], 77);
    }
}

TEST(hue_of_grey_stays_and_a_turn_of_a_third_swaps)
{
    const PenDsp *d = pen__dsp();
    uint8_t grey[] = {9, 9, 9}, red[] = {255, 0, 0};
    d->hue(grey, 1, 100);
    CHECK_MEM(grey, ((uint8_t[]){9, 9, 9}), 3);
    d->hue(red, 1, 85);
    CHECK_MEM(red, ((uint8_t[]){0, 255, 0}), 3);
    d->hue(red, 1, 85);
    CHECK_MEM(red, ((uint8_t[]){0, 0, 255}), 3);
}

TEST(grey_sum_is_of_the_rounded_greys)
{
    for (size_t t = 0; t < PEN_LEN(tiers); t++) {
        const PenDsp *d = pen__dsp_tier(tiers[t]);
        uint8_t p[N * 3 + PEN_SLACK] = {0};
        uint64_t expected = 0;
        if (!d)
            continue;
        fill(p, N * 3);
        uint64_t found = d->grey_sum(p, N);
        d->grey(p, N);
        for (size_t i = 0; i < N; i++) {
            CHECK(p[i * 3] == p[i * 3 + 1] && p[i * 3] == p[i * 3 + 2]);
            expected += p[i * 3];
        }
        CHECK_INT(found, expected);
    }
}

static int pipe_pixels(char **argv)
{
    int kind = (int)strtol(argv[0], NULL, 10);
    int32_t factor = (int32_t)strtol(argv[1], NULL, 10);
    size_t n = strtoul(argv[2], NULL, 10);
    uint8_t *p = pen__zalloc(n * 3 + PEN_SLACK);
    bool ok = p && fread(p, 3, n, stdin) == n;
    if (ok)
        apply(pen__dsp(), kind, p, n, factor);
    ok = ok && fwrite(p, 3, n, stdout) == n;
    pen__free(p);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--pipe") == 0)
        return pipe_pixels(argv + 2);
    TEST_START(argc, argv);
    RUN(colours_are_those_of_pillow);
    RUN(factor_of_one_changes_nothing);
    RUN(ends_are_not_passed);
    RUN(hue_of_grey_stays_and_a_turn_of_a_third_swaps);
    RUN(grey_sum_is_of_the_rounded_greys);
    return TEST_END();
}
