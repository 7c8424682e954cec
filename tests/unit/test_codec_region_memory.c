/* SPDX-License-Identifier: Apache-2.0 */
/* What pen__region_memory says against what malloc was asked for, by the libraries too: this
 * program has a malloc that counts. */
#include <errno.h>
#include <malloc.h>

#include <webp/encode.h>

#include "codec/jpeg/decoder/scan.h"
#include "codec/region/region.h"
#include "codec_images.h"
#include "lib/region_help.h"
#include "picture_help.h"
#include "test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS 0 /* sanitizers have a malloc of their own */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define COUNTS 0
#endif
#endif
#ifndef COUNTS
#define COUNTS 1
#endif

static size_t now, peak;

/* What the bound has for the smallest image: what a decoder may keep from those before. */
#define ALWAYS (1700.0 * 1024)

#if COUNTS
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *p);

static void *counted(void *p)
{
    now += malloc_usable_size(p);
    peak = PEN_MAX(peak, now);
    return p;
}

void *malloc(size_t bytes)
{
    return counted(__libc_malloc(bytes));
}

void *calloc(size_t n, size_t each)
{
    return counted(__libc_calloc(n, each));
}

void *realloc(void *p, size_t bytes)
{
    /* For a moment both may be there. */
    size_t before = malloc_usable_size(p);
    void *q = __libc_realloc(p, bytes);
    if (!q && bytes)
        return NULL;
    counted(q);
    now -= before;
    return q;
}

void *memalign(size_t align, size_t bytes)
{
    return counted(__libc_memalign(align, bytes));
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return memalign(align, bytes);
}

int posix_memalign(void **ret, size_t align, size_t bytes)
{
    *ret = memalign(align, bytes);
    return *ret ? 0 : ENOMEM;
}

void free(void *p)
{
    now -= malloc_usable_size(p);
    __libc_free(p);
}
#endif

static int ignore_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    (void)ctx, (void)rows, (void)stride, (void)n, (void)reterr;
    return PEN_OK;
}

/* The decoder is made and freed too: all that it keeps is counted. */
static void check_memory(const char *what, const PenEncoded *e, int32_t colour, double slack)
{
    PenRegion region = {.box = {e->width / 4, e->height / 4, e->width / 2, e->height / 2},
                        .colour = colour,
                        .limits = &pen__limits_default,
                        .rows = ignore_rows};
    PenImageHeader header;
    PenDecoder *d = NULL;
    size_t before = peak = now;
    CHECK_INT(pen__image_header(e, region.limits, &header, NULL), PEN_OK);
    CHECK_OK_SO_FAR();
    uint64_t bound = pen__region_memory(&header, &region.box, region.shrink);
    CHECK_INT(pen__decoder_new(&d, NULL), PEN_OK);
    /* Small ones often, for what piles up from image to image. */
    for (int i = 0; i < (e->width < 100 ? 40 : 2); i++)
        CHECK_INT(pen__region_decode(d, e, &region, NULL), PEN_OK);
    double used = (double)(peak - before);
    pen__decoder_free(&d);
    CHECK_INT(now, before);
    if (used > (double)bound || (double)bound > slack * used + ALWAYS)
        printf("%s: bound %.0f, used %.0f\n", what, (double)bound, used);
    CHECK(used <= (double)bound);
    /* A bound that is far too high would keep images out that fit. */
    CHECK((double)bound <= slack * used + ALWAYS);
}

static PenEncoded encoded(const PenBuf *b, int codec, uint32_t width, uint32_t height)
{
    return (PenEncoded){.data = b->data,
                        .bytes = b->bytes,
                        .width = width,
                        .height = height,
                        .codec = (uint8_t)codec};
}

#define SKIP_UNLESS_COUNTED()                                                                      \
    if (!COUNTS)                                                                                   \
    SKIP("the sanitizer has a malloc of its own")

TEST(jpeg)
{
    SKIP_UNLESS_COUNTED();
    static const JpegSpec specs[] = {
        {.h = 1, .v = 1},
        {.h = 2, .v = 2},
        {.h = 4, .v = 1},
        {.h = 1, .v = 4},
        {.h = 2, .v = 2, .progressive = true},
        {.h = 2, .v = 1, .separate = true},
        {.h = 2, .v = 2, .separate = true, .progressive = false},
        {.channels = 1},
        {.channels = 1, .progressive = true},
        {.channels = 1, .h = 4, .v = 4, .progressive = true},
        {.channels = 4},
        {.channels = 4, .ycck = true, .h = 2, .v = 2, .progressive = true},
        {.arithmetic = true, .h = 2, .v = 2},
        {.arithmetic = true, .progressive = true},
    };
    PenBuf b = {0};
    for (size_t i = 0; i < PEN_LEN(specs) * 2; i++) {
        JpegSpec spec = specs[i / 2];
        spec.width = i % 2 ? 261 : 33;
        spec.height = i % 2 ? 201 : 17;
        make_jpeg(&spec, &b);
        PenEncoded e = encoded(&b, PEN_STORED_JPEG, spec.width, spec.height);
        char what[32];
        snprintf(what, sizeof what, "kind %zu", i / 2);
        check_memory(what, &e, i % 3 ? PEN_COLOUR_RGB : PEN_COLOUR_GREY, 2.5);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&b);
}

/* A few rows of a wide image, and all coefficients of one that needs them. */
TEST(large_jpeg)
{
    SKIP_UNLESS_COUNTED();
    PenBuf b = {0};
    for (int progressive = 0; progressive < 2; progressive++) {
        make_jpeg(
            &(JpegSpec){.width = 4000, .height = 300, .h = 2, .v = 2, .progressive = progressive},
            &b);
        PenEncoded e = encoded(&b, PEN_STORED_JPEG, 4000, 300);
        check_memory(progressive ? "large progressive" : "large", &e, PEN_COLOUR_RGB, 2.5);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&b);
}

TEST(tiled)
{
    SKIP_UNLESS_COUNTED();
    PenBuf b = {0};
    TiledJpeg t = {0};
    make_jpeg(&(JpegSpec){.width = 261, .height = 201, .h = 2, .v = 2}, &b);
    CHECK_INT(tile_jpeg(b.data, b.bytes, &t), PEN_OK);
    PenEncoded e = whole_tiled(&t);
    check_memory("tiled", &e, PEN_COLOUR_RGB, 2.5);
    uint8_t *bytes = NULL;
    e = part_of(&t, (PenBox){261 / 4, 201 / 4, 261 / 2, 201 / 2}, 0, &bytes);
    check_memory("tiled, in part", &e, PEN_COLOUR_RGB, 2.5);
    free(bytes);
    tiled_free(&t);
    pen__buf_free(&b);
}

/* Intervals of many rows, of a part of a row, and of several restart intervals. */
TEST(indexed)
{
    SKIP_UNLESS_COUNTED();
    static const JpegSpec specs[] = {{.width = 8, .height = 4000, .channels = 1},
                                     {.width = 261, .height = 201},
                                     {.width = 2500, .height = 60, .h = 2, .v = 1},
                                     {.width = 261, .height = 201, .h = 2, .v = 2},
                                     {.width = 90, .height = 90, .restart_interval = 1}};
    PenBuf b = {0};
    PenEntryScan *scan = NULL;
    PenJpegHeader h;
    PenJpegEntries index;
    const char *why;
    CHECK_INT(pen__entry_scan_new(&scan, NULL), PEN_OK);
    for (size_t i = 0; i < PEN_LEN(specs); i++) {
        make_jpeg(&specs[i], &b);
        CHECK_INT(pen__jpeg_header(b.data, b.bytes, &pen__limits_default, &h, NULL), PEN_OK);
        CHECK_INT(pen__entry_scan(scan, &h, b.data, b.bytes, pen__entry_unit(&h.info), &index, &why,
                                  NULL),
                  PEN_OK);
        PenEncoded e = encoded(&b, PEN_STORED_JPEG, specs[i].width, specs[i].height);
        e.head_bytes = (uint32_t)h.info.head_bytes;
        e.entries = &index;
        check_memory("indexed", &e, PEN_COLOUR_RGB, 2.5);
        CHECK_OK_SO_FAR();
    }
    pen__entry_scan_free(&scan);
    pen__buf_free(&b);
}

/* What a scan keeps is not there beside something larger for the next file. */
TEST(scans_of_files_that_grow)
{
    SKIP_UNLESS_COUNTED();
    PenBuf b = {0};
    PenEntryScan *scan = NULL;
    PenJpegHeader h;
    PenJpegEntries index;
    const char *why;
    make_jpeg(&(JpegSpec){.width = 261, .height = 201}, &b);
    CHECK_INT(pen__jpeg_header(b.data, b.bytes, &pen__limits_default, &h, NULL), PEN_OK);
    CHECK_INT(pen__buf_reserve(&b, 700 << 10), PEN_OK);
    memset(b.data + b.bytes, 0, 700 << 10); /* behind the end of the image */
    size_t bytes = b.bytes, before = peak = now;
    CHECK_INT(pen__entry_scan_new(&scan, NULL), PEN_OK);
    for (size_t more = 300 << 10; more <= 700 << 10; more += 50 << 10) {
        peak = now;
        CHECK_INT(pen__entry_scan(scan, &h, b.data, bytes + more, 8, &index, &why, NULL), PEN_OK);
        /* With what malloc adds to each of the three. */
        CHECK(peak - before <= pen__entry_scan_memory(&h.info, bytes + more) + 3 * 4096);
        CHECK_OK_SO_FAR();
    }
    pen__entry_scan_free(&scan);
    pen__buf_free(&b);
}

TEST(png_webp_and_raw)
{
    SKIP_UNLESS_COUNTED();
    for (uint32_t channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        PenPixels p;
        PenBuf b = {0};
        make_pixels(261, 201, channels, 1, &p);
        CHECK_INT(pen__png_encode(&p, &b, NULL), PEN_OK);
        PenEncoded e = encoded(&b, PEN_STORED_PNG, 261, 201);
        check_memory("png", &e, PEN_COLOUR_RGB, 3);
        if (channels == 1)
            check_memory("mask", &e, PEN_COLOUR_MASK, 3);
        e = (PenEncoded){.data = p.data,
                         .bytes = (size_t)261 * 201 * channels,
                         .width = 261,
                         .height = 201,
                         .channels = (uint8_t)channels,
                         .codec = PEN_STORED_RAW};
        check_memory("raw", &e, PEN_COLOUR_RGB, 2.5);
        for (int lossless = 0; lossless < 2 && channels > 1; lossless++) {
            uint8_t *webp = NULL;
            int stride = 261 * (int)channels;
            size_t n = channels == 3 ? lossless
                                           ? WebPEncodeLosslessRGB(p.data, 261, 201, stride, &webp)
                                           : WebPEncodeRGB(p.data, 261, 201, stride, 80, &webp)
                       : lossless ? WebPEncodeLosslessRGBA(p.data, 261, 201, stride, &webp)
                                     : WebPEncodeRGBA(p.data, 261, 201, stride, 80, &webp);
            b.bytes = 0;
            CHECK_INT(pen__buf_add(&b, webp, n), PEN_OK);
            WebPFree(webp);
            e = encoded(&b, PEN_STORED_WEBP, 261, 201);
            check_memory("webp", &e, PEN_COLOUR_GREY, 4);
        }
        pen__pixels_free(&p);
        pen__buf_free(&b);
        CHECK_OK_SO_FAR();
    }
}

TEST(pictures)
{
    SKIP_UNLESS_COUNTED();
    PenVideoPicture p = {
        .width = 1030, .height = 500, .depth = 10, .shift_x = 1, .shift_y = 1, .matrix = 1};
    for (p.n_planes = 1; p.n_planes <= 3; p.n_planes += 2) {
        PenVideoPicture made = make_picture(p, TEST_SAMPLES_ANY);
        PenEncoded e = encoded_picture(&made);
        check_memory("picture", &e, PEN_COLOUR_RGB, 2.5);
        check_memory("picture to gray", &e, PEN_COLOUR_GREY, 2.5);
        free_picture(&made);
        CHECK_OK_SO_FAR();
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(jpeg);
    RUN(large_jpeg);
    RUN(tiled);
    RUN(indexed);
    RUN(scans_of_files_that_grow);
    RUN(png_webp_and_raw);
    RUN(pictures);
    return TEST_END();
}
