/* SPDX-License-Identifier: Apache-2.0 */
/* The hashes were compared with torch once; tools/check_resample_torch.py does it again, through
 *     test_dsp_resample --pipe SRC_W SRC_H CHANNELS DST_W DST_H FILTER < pixels > pixels */
#include "dsp/resample.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/mem.h"
#include "test.h"

static int resample(uint8_t *src, uint32_t src_w, uint32_t src_h, uint32_t channels, uint8_t *dst,
                    uint32_t dst_w, uint32_t dst_h, int filter)
{
    PenRaster from = {src, src_w, src_h, channels}, to = {dst, dst_w, dst_h, channels};
    return pen__raster_resample(&from, &to, filter, NULL);
}

static void fill(uint8_t *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
}

static uint64_t fnv(const uint8_t *p, size_t n)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001B3u;
    return h;
}

typedef struct Golden {
    uint32_t src_w, src_h, channels, dst_w, dst_h;
    int filter;
    uint64_t hash;
} Golden;

static const Golden goldens[] = {
#include "resample_golden.h"
};

TEST(resample_gives_what_torch_gives)
{
    for (size_t i = 0; i < PEN_LEN(goldens); i++) {
        const Golden *g = &goldens[i];
        size_t n = (size_t)g->src_w * g->src_h * g->channels;
        size_t m = (size_t)g->dst_w * g->dst_h * g->channels;
        uint8_t *src = pen__alloc(n), *dst = pen__alloc(m);
        CHECK(src && dst);
        fill(src, n, (uint32_t)i + 1);
        CHECK_INT(
            resample(src, g->src_w, g->src_h, g->channels, dst, g->dst_w, g->dst_h, g->filter),
            PEN_OK);
        CHECK_INT(fnv(dst, m), g->hash);
        pen__free(src);
        pen__free(dst);
    }
}

TEST(resample_of_one_colour_is_that_colour)
{
    uint8_t src[37 * 23 * 3], dst[64 * 64 * 3];
    for (int colour = 0; colour < 256; colour += 5)
        for (uint32_t w = 1; w <= 64; w += 9) {
            memset(src, colour, sizeof src);
            CHECK_INT(resample(src, 37, 23, 3, dst, w, 65 - w, PEN_FILTER_BILINEAR), PEN_OK);
            for (size_t i = 0; i < (size_t)w * (65 - w) * 3; i++)
                CHECK_INT(dst[i], colour);
        }
}

TEST(resample_refuses_empty_sizes)
{
    uint8_t p[16] = {0};
    CHECK_INT(resample(p, 0, 1, 1, p, 1, 1, PEN_FILTER_BILINEAR), PEN_E_INVALID);
    CHECK_INT(resample(p, 1, 1, 1, p, 1, 0, PEN_FILTER_NEAREST), PEN_E_INVALID);
    CHECK_INT(resample(p, 1, 1, 5, p, 1, 1, PEN_FILTER_BILINEAR), PEN_E_INVALID);
    CHECK_INT(resample(p, 1, 1, 1, p, 1, 1, 2), PEN_E_INVALID);
    PenRaster one = {p, 1, 1, 1}, three = {p, 1, 1, 3};
    CHECK_INT(pen__raster_resample(&one, &three, PEN_FILTER_BILINEAR, NULL), PEN_E_INVALID);
}

static int pipe_image(char **argv)
{
    uint32_t a[6];
    for (size_t i = 0; i < 6; i++)
        a[i] = (uint32_t)strtoul(argv[i], NULL, 10);
    size_t n = (size_t)a[0] * a[1] * a[2], m = (size_t)a[3] * a[4] * a[2];
    uint8_t *src = pen__alloc(n), *dst = pen__alloc(m);
    if (!src || !dst || fread(src, 1, n, stdin) != n)
        return 1;
    if (resample(src, a[0], a[1], a[2], dst, a[3], a[4], (int)a[5]) < 0)
        return 1;
    bool ok = fwrite(dst, 1, m, stdout) == m;
    pen__free(src);
    pen__free(dst);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 8 && strcmp(argv[1], "--pipe") == 0)
        return pipe_image(argv + 2);
    TEST_START(argc, argv);
    RUN(resample_gives_what_torch_gives);
    RUN(resample_of_one_colour_is_that_colour);
    RUN(resample_refuses_empty_sizes);
    return TEST_END();
}
