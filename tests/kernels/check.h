/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks of kernels share: tiers, chance, buffers with an end that is watched, time. */
#ifndef PEN_TESTS_KERNELS_CHECK_H
#define PEN_TESTS_KERNELS_CHECK_H

#include <stdlib.h>

#include "base/attr.h"
#include "base/mem.h"
#include "base/sys.h"
#include "dsp/dsp.h"
#include "test.h"

static const char *const check_tiers[] = {"c", "avx2", "avx512"};

static uint32_t check_seed = 1;

PEN_UNUSED static uint32_t chance(uint32_t below)
{
    check_seed = check_seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)check_seed * below >> 32);
}

/* Pixels as a photograph has them in places: noise, one colour, the two ends. */
PEN_UNUSED static void fill_pixels(uint8_t *p, size_t n)
{
    uint32_t kind = n < 10000 ? chance(4) : 2, colour = chance(256);
    for (size_t i = 0; i < n; i++) {
        uint32_t v = kind == 0 ? colour : kind == 1 ? chance(2) * 255 : chance(256);
        p[i] = (uint8_t)v;
    }
}

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

/* `bytes` that a kernel may write, and a guard on either side that it may not. */
PEN_UNUSED static uint8_t *guarded_new(size_t bytes)
{
    uint8_t *p = malloc(bytes + 2 * GUARD);
    if (!p)
        abort();
    memset(p, GUARD_BYTE, bytes + 2 * GUARD);
    return p + GUARD;
}

PEN_UNUSED static bool guarded_ok(const uint8_t *p, size_t bytes)
{
    bool ok = true;
    for (size_t i = 0; i < GUARD; i++)
        ok = ok && p[-1 - (ptrdiff_t)i] == GUARD_BYTE && p[bytes + i] == GUARD_BYTE;
    return ok;
}

PEN_UNUSED static void guarded_free(uint8_t *p)
{
    free(p - GUARD);
}

/* A row that may be read with its slack, and not a byte further: tools for memory see it. */
PEN_UNUSED static uint8_t *row_new(size_t bytes)
{
    uint8_t *p = malloc(bytes + PEN_SLACK);
    if (!p)
        abort();
    fill_pixels(p, bytes);
    for (size_t i = 0; i < PEN_SLACK; i++)
        p[bytes + i] = (uint8_t)chance(256);
    return p;
}

/* The best of some runs, in ns of one call of `body`. */
PEN_UNUSED static double time_of(void (*body)(void *ctx), void *ctx)
{
    double best = 1e18;
    for (int run = 0; run < 40; run++) {
        uint64_t start = pen__sys->now_ns(), spent;
        uint32_t n = 0;
        do {
            body(ctx);
            n++;
            spent = pen__sys->now_ns() - start;
        } while (spent < 2000000);
        best = PEN_MIN(best, (double)spent / n);
    }
    return best;
}

PEN_UNUSED static bool wants_bench(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "--bench") == 0;
}

/* With the table of every tier there is but the first, the reference. */
#define FOR_TIERS(d)                                                                               \
    for (size_t tier_i = 1; tier_i < PEN_LEN(check_tiers); tier_i++)                               \
        for (const PenDsp *d = pen__dsp_tier(check_tiers[tier_i]); d; d = NULL)

#endif
