/* SPDX-License-Identifier: Apache-2.0 */
#include <penstock/loader.h>

#include "check.h"

/* Any bits but of numbers of 2 and more: none is infinite, or no number. */
static uint8_t *numbers_new(size_t bytes, size_t element)
{
    uint8_t *p = row_new(bytes);
    for (size_t i = element - 1; element > 1 && i < bytes; i += element)
        p[i] &= 0xbf;
    return p;
}

TEST(mix)
{
    const PenDsp *c = pen__dsp_tier("c");
    for (int i = 0; i < 4000; i++) {
        float share = (float)chance(1001) / 1000.0f;
        PenMix mix = {.dtype = PEN_U8 + (int)chance(4), .weights = {share, 1.0f - share}};
        size_t element = pen_dtype_bytes(mix.dtype), n = 1 + chance(i % 2 ? 40 : 600);
        size_t bytes = n * element;
        uint8_t *a = numbers_new(bytes, element), *b = numbers_new(bytes, element);
        uint8_t *expected = guarded_new(bytes);
        c->mix(&mix, a, b, expected, n);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(bytes);
            d->mix(&mix, a, b, found, n);
            CHECK_MEM(found, expected, bytes);
            CHECK(guarded_ok(found, bytes));
            guarded_free(found);
        }
        guarded_free(expected);
        free(a);
        free(b);
    }
}

/* Every number of 16 bits stays what it is when all of the weight is on it. */
TEST(mix_keeps_numbers)
{
    enum { N = 1 << 16 };
    static uint16_t all[N], zero[N], found[N];
    for (int i = 0; i < N; i++)
        all[i] = (uint16_t)i;
    FOR_TIERS(d)
    {
        for (int dtype = PEN_F16; dtype <= PEN_BF16; dtype++) {
            uint32_t exponent = dtype == PEN_F16 ? 0x7c00 : 0x7f80;
            PenMix mix = {.dtype = dtype, .weights = {1, 0}};
            d->mix(&mix, all, zero, found, N);
            for (uint32_t i = 0; i < N; i++)
                if ((i & exponent) != exponent && i != 0x8000)
                    CHECK_INT(found[i], i);
        }
    }
}

/* ---- timing ---- */

enum { SIDE = 224, ELEMENTS = SIDE * SIDE * 3 };

typedef struct Bench {
    const PenDsp *dsp;
    PenMix mix;
    uint8_t *a, *b, *dst;
} Bench;

static void run_bench(void *ctx)
{
    Bench *b = ctx;
    b->dsp->mix(&b->mix, b->a, b->b, b->dst, ELEMENTS);
}

static void bench(void)
{
    static const char *const names[] = {"", "u8", "f16", "bf16", "f32"};
    Bench b = {.a = row_new(4 * ELEMENTS), .b = row_new(4 * ELEMENTS)};
    b.dst = guarded_new(4 * ELEMENTS);
    memset(b.a, 0x3f, 4 * ELEMENTS);
    memset(b.b, 0x3e, 4 * ELEMENTS);
    for (size_t i = 0; i < PEN_LEN(check_tiers); i++)
        for (int dtype = PEN_U8; dtype <= PEN_F32; dtype++) {
            b.dsp = pen__dsp_tier(check_tiers[i]);
            if (!b.dsp)
                continue;
            b.mix = (PenMix){.dtype = dtype, .weights = {0.7f, 0.3f}};
            double ns = time_of(run_bench, &b);
            printf("%-6s mix %d x %d of 3, %-5s %8.1f us %6.1f GB/s\n", b.dsp->tier, SIDE, SIDE,
                   names[dtype], ns / 1000, 3.0 * ELEMENTS * (double)pen_dtype_bytes(dtype) / ns);
        }
    free(b.a);
    free(b.b);
    guarded_free(b.dst);
}

int main(int argc, char **argv)
{
    if (wants_bench(argc, argv)) {
        bench();
        argc = 1;
    }
    TEST_START(argc, argv);
    RUN(mix);
    RUN(mix_keeps_numbers);
    return TEST_END();
}
