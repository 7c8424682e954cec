/* SPDX-License-Identifier: Apache-2.0 */
#include <penstock/loader.h>

#include "check.h"

static const float mean[4] = {0.485f, 0.456f, 0.406f, 0.5f};
static const float std[4] = {0.229f, 0.224f, 0.225f, 0.25f};

static void random_table(PenStoreTable *t)
{
    float m[4], s[4];
    int dtype = PEN_U8 + (int)chance(4);
    for (int c = 0; c < 4; c++) {
        m[c] = (float)chance(1000) / 1000.0f;
        s[c] = (float)(1 + chance(1000)) / 1000.0f;
    }
    switch (chance(4)) {
    case 0:
        pen__store_table_init(t, dtype, 1 + chance(4), NULL, NULL);
        break;
    case 1:
        pen__store_table_init(t, dtype, 1 + chance(4), mean, std);
        break;
    default:
        pen__store_table_init(t, dtype, 1 + chance(4), m, s);
        break;
    }
    if (chance(4) == 0)
        t->by_steps = 0;
}

TEST(store)
{
    const PenDsp *c = pen__dsp_tier("c");
    PenStoreTable t;
    int steps = 0;
    for (int i = 0; i < 3000; i++) {
        random_table(&t);
        steps += t.by_steps;
        uint32_t n = 1 + chance(i % 2 ? 40 : 600);
        size_t plane = chance(2) ? n + chance(9) : 0, all = plane ? plane : n;
        size_t bytes = all * t.channels * t.element_bytes;
        uint8_t *row = row_new((size_t)n * t.channels), *expected = guarded_new(bytes);
        c->store(&t, row, n, expected, plane);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(bytes);
            d->store(&t, row, n, found, plane);
            CHECK_MEM(found, expected, bytes);
            CHECK(guarded_ok(found, bytes));
            guarded_free(found);
        }
        guarded_free(expected);
        free(row);
    }
    CHECK(steps > 1500);
}

TEST(planes_u8)
{
    const PenDsp *c = pen__dsp_tier("c");
    for (int i = 0; i < 2000; i++) {
        uint32_t n = 1 + chance(300), channels = 1 + chance(4);
        size_t plane = n + chance(9), bytes = plane * channels;
        uint8_t *row = row_new((size_t)n * channels), *expected = guarded_new(bytes);
        c->planes_u8(row, channels, n, expected, plane);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(bytes);
            d->planes_u8(row, channels, n, found, plane);
            CHECK_MEM(found, expected, bytes);
            CHECK(guarded_ok(found, bytes));
            guarded_free(found);
        }
        guarded_free(expected);
        free(row);
    }
}

/* ---- time ----------------------------------------------------------------------------------- */

enum { SIDE = 224 };

typedef struct Bench {
    const PenDsp *dsp;
    PenStoreTable table;
    uint8_t *row;
    uint8_t *dst;
    size_t plane;
} Bench;

static void run_bench(void *ctx)
{
    Bench *b = ctx;
    for (size_t y = 0; y < SIDE; y++) {
        size_t at = b->plane ? y * SIDE : y * SIDE * 3;
        b->dsp->store(&b->table, b->row, SIDE, b->dst + at * b->table.element_bytes, b->plane);
    }
}

static void bench(void)
{
    static const char *const names[] = {"", "u8", "f16", "bf16", "f32"};
    static Bench b;
    b.row = row_new(SIDE * 3);
    b.dst = guarded_new(SIDE * SIDE * 3 * 4);
    for (size_t i = 0; i < PEN_LEN(check_tiers); i++)
        for (int dtype = PEN_U8; dtype <= PEN_F32; dtype++)
            for (int planes = 0; planes < 2; planes++) {
                b.dsp = pen__dsp_tier(check_tiers[i]);
                if (!b.dsp)
                    continue;
                b.plane = planes ? SIDE * SIDE : 0;
                pen__store_table_init(&b.table, dtype, 3, mean, std);
                printf("%-5s store %d x %d of 3, %-5s %s %8.1f us\n", b.dsp->tier, SIDE, SIDE,
                       names[dtype], planes ? "planes" : "rows  ", time_of(run_bench, &b) / 1000);
            }
    free(b.row);
    guarded_free(b.dst);
}

int main(int argc, char **argv)
{
    if (wants_bench(argc, argv)) {
        bench();
        argc = 1;
    }
    TEST_START(argc, argv);
    RUN(store);
    RUN(planes_u8);
    return TEST_END();
}
