/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "check.h"
#include "dsp/warp.h"

static double random_between(double low, double high)
{
    return low + (high - low) * chance(1u << 30) / (1u << 30);
}

static PenBox random_part(uint32_t width, uint32_t height)
{
    PenBox box = {.w = 1 + chance(width), .h = 1 + chance(height)};
    box.x = chance(width - box.w + 1);
    box.y = chance(height - box.h + 1);
    return box;
}

/* Maps that turn and scale, steps of whole pixels, and a horizon in the image. */
static PenWarp random_warp(int32_t filter)
{
    PenWarp w = {.filter = filter, .from_width = 1 + chance(90), .from_height = 1 + chance(60)};
    double angle = random_between(-4, 4), scale = random_between(0.1, 3);
    w.width = 1 + chance(80);
    w.height = 1 + chance(60);
    w.a[0] = w.a[4] = scale * cos(angle);
    w.a[1] = -(w.a[3] = scale * sin(angle));
    w.a[2] = random_between(-30, 60);
    w.a[5] = random_between(-30, 60);
    if (chance(4) == 0) {
        w.a[0] = w.a[4] = 1;
        w.a[3] = 0;
        w.a[2] = floor(w.a[2]);
    }
    w.perspective = filter == PEN_FILTER_BILINEAR && chance(2);
    w.a[6] = random_between(-0.02, 0.02);
    w.a[7] = chance(2) ? -1 / (chance(60) + 0.5) : random_between(-0.01, 0.01);
    for (int i = 0; i < 4; i++)
        w.fill[i] = (uint8_t)chance(256);
    w.window = random_part(w.width, w.height);
    w.held = chance(3) ? pen__warp_needs(&w) : random_part(w.from_width, w.from_height);
    return w;
}

static void row_of(const PenDsp *d, const PenWarpRows *rows, uint8_t *dst)
{
    (rows->warp->filter == PEN_FILTER_NEAREST ? d->warp_fixed : d->warp_bilinear)(rows, dst);
}

static void check_filter(int32_t filter)
{
    const PenDsp *c = pen__dsp_tier("c");
    for (int i = 0; i < 20000; i++) {
        PenWarp w = random_warp(filter);
        uint32_t channels = chance(5) ? 3 : 1;
        size_t bytes = (size_t)w.window.w * channels;
        uint8_t *pixels = row_new((size_t)w.held.w * w.held.h * channels);
        uint8_t *expected = guarded_new(bytes);
        PenWarpRows rows;
        pen__warp_start(&rows, &w, pixels, channels);
        row_of(c, &rows, expected);
        FOR_TIERS(d)
        {
            uint8_t *found = guarded_new(bytes);
            row_of(d, &rows, found);
            CHECK_MEM(found, expected, bytes);
            CHECK(guarded_ok(found, bytes));
            guarded_free(found);
        }
        CHECK_OK_SO_FAR();
        guarded_free(expected);
        free(pixels);
    }
}

TEST(nearest)
{
    check_filter(PEN_FILTER_NEAREST);
}

TEST(bilinear)
{
    check_filter(PEN_FILTER_BILINEAR);
}

/* ---- time ----------------------------------------------------------------------------------- */

enum { SIDE = 224 };

typedef struct Job {
    const PenDsp *dsp;
    PenWarp warp;
    uint8_t *pixels, *row;
} Job;

static void run(void *ctx)
{
    const Job *job = ctx;
    PenWarpRows rows;
    pen__warp_start(&rows, &job->warp, job->pixels, 3);
    for (; rows.y < SIDE; rows.y++) {
        rows.at[0] += rows.row_step[0];
        rows.at[1] += rows.row_step[1];
        row_of(job->dsp, &rows, job->row);
    }
}

static void bench(const char *name, int32_t filter, int perspective)
{
    PenBox all = {.w = SIDE, .h = SIDE};
    Job job = {.warp = {.a = {0.9, 0.3, -20, -0.3, 0.9, 40, 1e-4, 2e-4},
                        .filter = filter,
                        .perspective = (uint8_t)perspective,
                        .from_width = SIDE,
                        .from_height = SIDE,
                        .width = SIDE,
                        .height = SIDE,
                        .held = all,
                        .window = all},
               .pixels = row_new((size_t)SIDE * SIDE * 3),
               .row = row_new((size_t)SIDE * 3)};
    for (size_t i = 0; i < PEN_LEN(check_tiers); i++) {
        job.dsp = pen__dsp_tier(check_tiers[i]);
        if (job.dsp)
            printf("%-12s %-8s %8.1f us\n", name, check_tiers[i], time_of(run, &job) / 1000);
    }
    free(job.pixels);
    free(job.row);
}

int main(int argc, char **argv)
{
    if (wants_bench(argc, argv)) {
        bench("nearest", PEN_FILTER_NEAREST, 0);
        bench("bilinear", PEN_FILTER_BILINEAR, 0);
        bench("perspective", PEN_FILTER_BILINEAR, 1);
        return 0;
    }
    TEST_START(argc, argv);
    RUN(nearest);
    RUN(bilinear);
    return TEST_END();
}
