/* SPDX-License-Identifier: Apache-2.0 */
/* The hashes were compared with torch once; tools/check_resample_torch.py does it again, and more,
 * through `test_dsp_resample --pipe`, which answers requests until its input ends: a Request and
 * the pixels of the whole source in, the pixels of the window out. */
#include "dsp/resample.h"

#include <stdio.h>

#include "base/attr.h"
#include "base/mem.h"
#include "dsp/stream.h"
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
    CHECK_INT(resample(p, 1, 1, 1, p, 1, 1, 5), PEN_E_INVALID);
    CHECK_INT(resample(p, 1, 1, 1, p, 1, 1, -1), PEN_E_INVALID);
    PenRaster one = {p, 1, 1, 1}, three = {p, 1, 1, 3};
    CHECK_INT(pen__raster_resample(&one, &three, PEN_FILTER_BILINEAR, NULL), PEN_E_INVALID);
}

typedef struct Request {
    PenResize what;
    uint32_t rows; /* that are pushed at a time */
} Request;

static int keep_row(void *ctx, uint32_t y, const uint8_t *row, PenError *reterr)
{
    const PenRaster *to = ctx;
    size_t bytes = (size_t)to->width * to->channels;
    (void)reterr;
    memcpy(to->data + y * bytes, row, bytes);
    return PEN_OK;
}

/* Only what is needed is handed on: the rest may not be looked at. */
static int run_request(PenStream *s, const Request *q, const uint8_t *src, PenRaster *to)
{
    PenBox box;
    size_t c = q->what.channels, stride = q->what.src_width * c;
    int r = pen__stream_start(s, &q->what, keep_row, to, NULL);
    if (r < 0)
        return r;
    pen__resize_needs(&q->what, &box);
    for (uint32_t y = 0; y < box.h && r >= 0; y += q->rows) {
        uint32_t n = PEN_MIN(q->rows, box.h - y);
        uint8_t *rows = pen__zalloc(n * box.w * c + PEN_SLACK);
        if (!rows)
            return PEN_E_NO_MEMORY;
        for (size_t i = 0; i < n; i++)
            memcpy(rows + i * box.w * c, src + (box.y + y + i) * stride + box.x * c, box.w * c);
        r = pen__stream_push(s, rows, box.w * c, n, NULL);
        pen__free(rows);
    }
    return r;
}

static int answer_request(PenStream *s, const Request *q)
{
    const PenResize *w = &q->what;
    size_t n = (size_t)w->src_width * w->src_height * w->channels;
    size_t m = (size_t)w->window.w * w->window.h * w->channels;
    uint8_t *src = pen__alloc(n), *dst = pen__alloc(m);
    PenRaster to = {dst, w->window.w, w->window.h, w->channels};
    bool ok = src && dst && fread(src, 1, n, stdin) == n && run_request(s, q, src, &to) == PEN_OK &&
              fwrite(dst, 1, m, stdout) == m && fflush(stdout) == 0;
    pen__free(src);
    pen__free(dst);
    return ok ? 0 : 1;
}

static int serve(void)
{
    PenStream *s = NULL;
    Request q;
    int r = pen__stream_new(&s, NULL) < 0;
    while (!r && fread(&q, sizeof q, 1, stdin) == 1)
        r = answer_request(s, &q);
    pen__stream_free(&s);
    return r;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--pipe") == 0)
        return serve();
    TEST_START(argc, argv);
    RUN(resample_gives_what_torch_gives);
    RUN(resample_of_one_colour_is_that_colour);
    RUN(resample_refuses_empty_sizes);
    return TEST_END();
}
