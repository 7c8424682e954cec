/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of regions: the crop of the whole image, byte for byte, or an error. */
#include "codec/region/region.h"

#include <spng.h>
#include <webp/encode.h>

#include "region_checks.h"

/* ---- jpeg ---- */

#define EVERY_SAMPLING(...)                                                                        \
    {SAMPLING(1, 1, 1, 1), __VA_ARGS__}, {SAMPLING(2, 1, 1, 1), __VA_ARGS__},                      \
        {SAMPLING(1, 2, 1, 1), __VA_ARGS__}, {SAMPLING(2, 2, 1, 1), __VA_ARGS__},                  \
        {SAMPLING(4, 1, 1, 1), __VA_ARGS__}, {SAMPLING(1, 4, 1, 1), __VA_ARGS__},                  \
        {SAMPLING(4, 2, 1, 1), __VA_ARGS__}, {SAMPLING(2, 4, 1, 1), __VA_ARGS__},                  \
        {SAMPLING(3, 1, 1, 1), __VA_ARGS__}, {SAMPLING(1, 3, 1, 1), __VA_ARGS__},                  \
        {SAMPLING(4, 1, 2, 1), __VA_ARGS__}, {SAMPLING(1, 4, 1, 2), __VA_ARGS__},                  \
        {SAMPLING(2, 2, 2, 1), __VA_ARGS__}, {SAMPLING(2, 2, 1, 2), __VA_ARGS__},                  \
        {SAMPLING(1, 1, 2, 2), __VA_ARGS__}, {SAMPLING(1, 2, 2, 1), __VA_ARGS__},                  \
        {SAMPLING(1, 1, 2, 1), __VA_ARGS__},                                                       \
    {                                                                                              \
        SAMPLING(1, 1, 1, 2), __VA_ARGS__                                                          \
    }

static const JpegSpec kinds[] = {
    EVERY_SAMPLING(.quality = 90),
    EVERY_SAMPLING(.restart_interval = 3),
    EVERY_SAMPLING(.progressive = true),
    EVERY_SAMPLING(.separate = true),
    {.channels = 1},
    {.channels = 1, .h = 2, .v = 2},
    {.channels = 1, .h = 3, .v = 1},
    {.channels = 1, .h = 1, .v = 4},
    {.channels = 1, .h = 2, .v = 3, .progressive = true},
    {.channels = 1, .restart_interval = 5},
    {.channels = 4},
    {.channels = 4, SAMPLING(2, 2, 1, 1)},
    {.channels = 4, SAMPLING(2, 1, 1, 1), .progressive = true},
    {.channels = 4, .ycck = true, SAMPLING(2, 2, 1, 1)},
    {.channels = 4, .ycck = true, SAMPLING(2, 1, 1, 1), .progressive = true},
    {.rgb = true},
    {.rgb = true, SAMPLING(2, 2, 1, 1)},
    {.rgb = true, .progressive = true},
    {.arithmetic = true},
    {.arithmetic = true, SAMPLING(2, 2, 1, 1)},
    {.arithmetic = true, SAMPLING(2, 1, 1, 1), .restart_interval = 2},
    {.arithmetic = true, SAMPLING(2, 2, 1, 1), .progressive = true},
    {.arithmetic = true, .channels = 1},
    {.optimal = true, SAMPLING(2, 2, 1, 1), .orientation = 6},
};

TEST(jpeg_of_every_kind)
{
    PenBuf b = {0};
    for (size_t i = 0; i < PEN_LEN(kinds); i++) {
        JpegSpec spec = kinds[i];
        spec.width = 161 + (uint32_t)i % 7;
        spec.height = 103 + (uint32_t)i % 5;
        make_jpeg(&spec, &b);
        check_file(&b, PEN_STORED_JPEG, 24);
        if (test__now.state == TEST_FAILED)
            printf("kind %zu: %dx%d %dx%d progressive %d\n", i, spec.h, spec.v, spec.chroma_h,
                   spec.chroma_v, spec.progressive);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&b);
}

TEST(jpeg_of_small_sizes)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 31, 32, 33};
    PenBuf b = {0};
    for (size_t i = 0; i < PEN_LEN(sizes) * PEN_LEN(sizes); i++)
        for (size_t k = i % 7; k < PEN_LEN(kinds); k += 7) {
            JpegSpec spec = kinds[k];
            spec.width = sizes[i % PEN_LEN(sizes)];
            spec.height = sizes[i / PEN_LEN(sizes)];
            make_jpeg(&spec, &b);
            check_file(&b, PEN_STORED_JPEG, 12);
            CHECK_OK_SO_FAR();
        }
    pen__buf_free(&b);
}

/* What libjpeg makes up for the scans that are missing has to be the same too. */
TEST(jpeg_with_missing_scans)
{
    PenBuf b = {0};
    make_jpeg(&(JpegSpec){.width = 150, .height = 90, .progressive = true, .quality = 30}, &b);
    for (int n = 1; n < 6; n++) {
        size_t at = find_marker_offset(b.data, b.bytes, 0xDA, n);
        CHECK(at);
        /* The tables of the next scan stand before it; an EOI there does no harm. */
        PenBuf cut = {0};
        CHECK_INT(pen__buf_add(&cut, b.data, at), PEN_OK);
        CHECK_INT(pen__buf_add(&cut, "\xFF\xD9", 2), PEN_OK);
        check_file(&cut, PEN_STORED_JPEG, 20);
        pen__buf_free(&cut);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&b);
}

/* Without tables a file is decoded with the standard ones, not with those of the image before. */
TEST(jpeg_tables_are_not_inherited)
{
    PenBuf with = {0}, without = {0};
    PenError err = {0};
    JpegSpec spec = {.width = 64, .height = 64, .channels = 1};
    make_jpeg(&spec, &without);
    size_t dht = find_marker_offset(without.data, without.bytes, 0xC4, 0);
    while (dht) {
        size_t n = 2 + (size_t)without.data[dht + 2] * 256 + without.data[dht + 3];
        memmove(without.data + dht, without.data + dht + n, without.bytes - dht - n);
        without.bytes -= n;
        dht = find_marker_offset(without.data, without.bytes, 0xC4, 0);
    }
    spec.optimal = true;
    spec.quality = 30;
    make_jpeg(&spec, &with);
    PenPixels p = {.width = 64, .height = 64, .channels = 1};
    for (int i = 0; i < 40; i++) {
        PenEncoded e = encoded(with.data, with.bytes, PEN_STORED_JPEG, &p);
        PenBox all = {0, 0, 64, 64};
        CHECK_INT(find_region(decoder, &e, all, PEN_COLOUR_GREY, &found, &err), PEN_OK);
        check_file(&without, PEN_STORED_JPEG, 2);
        CHECK_OK_SO_FAR();
    }
    /* Nor is the quantisation, which has no standard. */
    size_t dqt = find_marker_offset(without.data, without.bytes, 0xDB, 0);
    memmove(without.data + dqt, without.data + dqt + 69, without.bytes - dqt - 69);
    PenEncoded e = encoded(without.data, without.bytes - 69, PEN_STORED_JPEG, &p);
    CHECK_INT(find_region(decoder, &e, (PenBox){0, 0, 8, 8}, PEN_COLOUR_GREY, &found, &err),
              PEN_E_DECODE);
    pen__buf_free(&with);
    pen__buf_free(&without);
}

/* ---- damage ---- */

TEST(truncated_jpegs)
{
    static const JpegSpec specs[] = {
        {SAMPLING(2, 2, 1, 1)}, {.progressive = true}, {.channels = 1, .restart_interval = 4}};
    PenBuf b = {0};
    for (size_t k = 0; k < PEN_LEN(specs); k++) {
        JpegSpec spec = specs[k];
        spec.width = 90;
        spec.height = 70;
        make_jpeg(&spec, &b);
        PenPixels p = {.width = 90, .height = 70, .channels = 3}, whole = {0};
        PenBox all = {0, 0, 90, 70}, top = {.x = 5, .y = 2, .w = 40, .h = 5};
        CHECK_INT(pen__image_decode(b.data, b.bytes, limits, &whole, NULL), PEN_OK);
        int early = 0;
        for (size_t n = 0; n + 2 < b.bytes; n += 1 + n / 64) {
            uint8_t *copy = exact_copy(b.data, n);
            PenEncoded e = encoded(copy, n, PEN_STORED_JPEG, &p);
            CHECK_INT(find_status(&e, all), PEN_E_DECODE);
            int r = find_status(&e, top);
            CHECK(r == PEN_OK || r == PEN_E_DECODE);
            if (r == PEN_OK)
                CHECK_INT(count_different(&whole, top, PEN_COLOUR_RGB, &found), 0);
            early += r == PEN_OK;
            free(copy);
        }
        /* Behind the last row of the box nothing is read, if the file is of one scan. */
        CHECK_INT(early > 0, !spec.progressive);
        pen__pixels_free(&whole);
    }
    pen__buf_free(&b);
}

TEST(another_size_is_an_error_that_says_both)
{
    PenBuf b = {0};
    PenError err = {0};
    PenPixels p = {.width = 97, .height = 60, .channels = 3};
    make_jpeg(&(JpegSpec){.width = 97, .height = 61}, &b);
    PenEncoded e = encoded(b.data, b.bytes, PEN_STORED_JPEG, &p);
    PenBox box = {0, 0, 10, 10};
    CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_RGB, &found, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, "97 x 60") && strstr(err.message, "97 x 61"));
    b.bytes = 0;
    PenPixels q;
    make_pixels(13, 9, 3, 1, &q);
    CHECK_INT(pen__png_encode(&q, &b, NULL), PEN_OK);
    e = encoded(b.data, b.bytes, PEN_STORED_PNG, &p);
    CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_RGB, &found, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, "97 x 60") && strstr(err.message, "13 x 9"));
    /* The codec is checked before the size. */
    e.codec = PEN_STORED_JPEG;
    CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_RGB, &found, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, "jpeg") && strstr(err.message, "png"));
    pen__pixels_free(&q);
    pen__buf_free(&b);
}

TEST(boxes_outside_are_invalid)
{
    PenBuf b = {0};
    PenPixels p = {.width = 40, .height = 30, .channels = 3};
    make_jpeg(&(JpegSpec){.width = 40, .height = 30}, &b);
    PenEncoded e = encoded(b.data, b.bytes, PEN_STORED_JPEG, &p);
    static const PenBox boxes[] = {
        {0, 0, 0, 1},          {0, 0, 1, 0},          {0, 0, 41, 1},         {0, 0, 1, 31},
        {40, 0, 1, 1},         {0, 30, 1, 1},         {39, 0, 2, 1},         {0, 29, 1, 2},
        {1, 0, UINT32_MAX, 1}, {0, UINT32_MAX, 1, 1}, {UINT32_MAX, 0, 1, 1},
    };
    for (size_t i = 0; i < PEN_LEN(boxes); i++)
        CHECK_INT(find_status(&e, boxes[i]), PEN_E_INVALID);
    CHECK_INT(find_status(&e, (PenBox){39, 29, 1, 1}), PEN_OK);
    pen__buf_free(&b);
}

/* ---- the callback ---- */

TEST(the_callback_may_stop)
{
    TiledJpeg t = a_tiled_jpeg();
    PenPixels whole = {0};
    CHECK_INT(pen__image_decode(t.jpeg.data, t.jpeg.bytes, limits, &whole, NULL), PEN_OK);
    PenEncoded raw = encoded(whole.data, (size_t)250 * 240 * 3, PEN_STORED_RAW, &whole);
    PenEncoded images[] = {whole_tiled(&t), whole_tiled(&t), raw};
    images[1].tiled = 0;
    PenBox box = {.x = 7, .y = 30, .w = 200, .h = 150};
    for (size_t i = 0; i < PEN_LEN(images); i++)
        for (uint32_t call = 1; call < 5; call++) {
            PenError err = {0};
            found.fail_at = call;
            CHECK_INT(find_region(decoder, &images[i], box, PEN_COLOUR_GREY, &found, &err),
                      PEN_E_CANCELLED);
            CHECK_STR(err.message, "stopped");
            /* A decoder of tiles gives rows of MCUs, the first of them cut by the box. */
            CHECK(call == 1 ? found.rows == 0 : found.rows > (call - 2) * 16);
            CHECK(found.rows <= (call - 1) * 16);
            CHECK_INT(found.calls, call);
            found.fail_at = 0;
            check_box(&images[i], &whole, box, PEN_COLOUR_GREY);
            CHECK_OK_SO_FAR();
        }
    pen__pixels_free(&whole);
    tiled_free(&t);
}

/* ---- raw, png, webp, masks ---- */

static const uint8_t *raw_start, *raw_end;

static int rows_lie_in_the_image(void *ctx, const uint8_t *rows, size_t stride, uint32_t n,
                                 PenError *reterr)
{
    const PenBox *box = ctx;
    (void)reterr;
    bool inside = rows >= raw_start && rows + (n - 1) * stride + box->w <= raw_end;
    return inside && n == box->h ? PEN_OK : PEN_E_CANCELLED;
}

TEST(raw_pixels)
{
    for (uint32_t channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        PenPixels p;
        make_pixels(61, 47, channels, 3, &p);
        size_t row = 61 * channels;
        uint8_t *copy = exact_copy(p.data, row * 47);
        PenEncoded e = encoded(copy, row * 47, PEN_STORED_RAW, &p);
        check_boxes(&e, &p, 40);
        CHECK_OK_SO_FAR();
        /* Only the rows of the box are there. */
        for (uint32_t i = 0; i < 20; i++) {
            PenBox box = random_box(61, 47);
            PenCut cut = {.codec = PEN_STORED_RAW, .width = 61, .height = 47};
            PenEncoded part = e;
            uint32_t last;
            pen__region_segments(&cut, box.y, box.h, &part.first_segment, &last);
            CHECK_INT(part.first_segment, box.y);
            CHECK_INT(last, box.y + box.h - 1);
            part.end_segment = last + 1;
            part.partial = 1;
            part.bytes = row * box.h;
            part.data = exact_copy(p.data + box.y * row, part.bytes);
            check_box(&part, &p, box, colours[i % 2]);
            part.bytes--;
            CHECK_INT(find_status(&part, box), PEN_E_DECODE);
            part.bytes++;
            part.first_segment++;
            part.end_segment++;
            CHECK_INT(find_status(&part, box), PEN_E_INVALID);
            free(part.data);
        }
        PenBox box = {3, 4, 50, 40};
        PenRegion region = {.box = box,
                            .limits = limits,
                            .rows = rows_lie_in_the_image,
                            .ctx = &box,
                            .colour = channels == 1 ? PEN_COLOUR_MASK : PEN_COLOUR_RGB};
        raw_start = copy;
        raw_end = copy + row * 47;
        CHECK_INT(pen__region_decode(decoder, &e, &region, NULL),
                  channels == 4 ? PEN_E_CANCELLED : PEN_OK);
        free(copy);
        pen__pixels_free(&p);
    }
}

TEST(png_files)
{
    for (uint32_t channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        PenPixels p;
        PenBuf b = {0};
        make_pixels(61, 47, channels, 3, &p);
        CHECK_INT(pen__png_encode(&p, &b, NULL), PEN_OK);
        check_file(&b, PEN_STORED_PNG, 30);
        CHECK_OK_SO_FAR();
        PenEncoded e = encoded(b.data, b.bytes / 2, PEN_STORED_PNG, &p);
        CHECK_INT(find_status(&e, (PenBox){0, 0, 1, 1}), PEN_E_DECODE);
        pen__pixels_free(&p);
        pen__buf_free(&b);
    }
}

static void check_mask(const PenBuf *b, int codec, const PenPixels *size)
{
    PenPixels whole = {0};
    PenError err = {0};
    int expected = pen__mask_decode(b->data, b->bytes, limits, &whole, NULL);
    uint8_t *copy = exact_copy(b->data, b->bytes);
    PenEncoded e = encoded(copy, b->bytes, codec, size);
    for (uint32_t i = 0; i < 20; i++) {
        PenBox box = nth_box(i, size->width, size->height);
        CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_MASK, &found, &err), expected);
        if (expected == PEN_OK)
            CHECK_INT(count_different(&whole, box, PEN_COLOUR_MASK, &found), 0);
    }
    free(copy);
    pen__pixels_free(&whole);
}

TEST(webp_files)
{
    PenBuf b = {0};
    for (int lossless = 0; lossless < 2; lossless++)
        for (uint32_t channels = 3; channels <= 4; channels++) {
            PenPixels p;
            uint8_t *webp = NULL;
            make_pixels(61, 47, channels, 3, &p);
            size_t n = channels == 3 ? WebPEncodeRGB(p.data, 61, 47, 61 * 3, 80, &webp)
                       : lossless    ? WebPEncodeLosslessRGBA(p.data, 61, 47, 61 * 4, &webp)
                                     : WebPEncodeRGBA(p.data, 61, 47, 61 * 4, 80, &webp);
            b.bytes = 0;
            CHECK_INT(pen__buf_add(&b, webp, n), PEN_OK);
            WebPFree(webp);
            check_file(&b, PEN_STORED_WEBP, 20);
            check_mask(&b, PEN_STORED_WEBP, &p);
            pen__pixels_free(&p);
            CHECK_OK_SO_FAR();
        }
    pen__buf_free(&b);
}

/* A palette of 16 colours, two pixels a byte. */
static void make_palette_png(PenBuf *out)
{
    struct spng_ihdr ihdr = {.width = 61, .height = 47, .bit_depth = 4, .color_type = 3};
    struct spng_plte plte = {.n_entries = 16};
    uint8_t rows[47 * 31];
    size_t bytes;
    int e = 0;
    for (uint8_t i = 0; i < 16; i++)
        plte.entries[i] = (struct spng_plte_entry){(uint8_t)(i * 11), (uint8_t)(i ^ 90), i, 255};
    for (size_t i = 0; i < sizeof rows; i++)
        rows[i] = (uint8_t)(i * 37);
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(ctx, &ihdr);
    spng_set_plte(ctx, &plte);
    if (spng_encode_image(ctx, rows, sizeof rows, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE))
        abort();
    void *png = spng_get_png_buffer(ctx, &bytes, &e);
    out->bytes = 0;
    if (!png || pen__buf_add(out, png, bytes) < 0)
        abort();
    free(png);
    spng_ctx_free(ctx);
}

TEST(palettes)
{
    PenBuf b = {0};
    PenPixels size = {.width = 61, .height = 47, .channels = 3};
    make_palette_png(&b);
    check_file(&b, PEN_STORED_PNG, 20);
    check_mask(&b, PEN_STORED_PNG, &size);
    PenEncoded e = encoded(b.data, b.bytes, PEN_STORED_PNG, &size);
    CHECK_INT(find_region(decoder, &e, (PenBox){1, 0, 1, 1}, PEN_COLOUR_MASK, &found, NULL), 0);
    CHECK_INT(found.pixels.data[0], 0);
    CHECK_INT(find_region(decoder, &e, (PenBox){3, 0, 1, 1}, PEN_COLOUR_MASK, &found, NULL), 0);
    CHECK_INT(found.pixels.data[0], 37 % 16);
    pen__buf_free(&b);
}

TEST(masks)
{
    PenBuf b = {0};
    PenPixels p;
    for (uint32_t channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        make_pixels(61, 47, channels, 3, &p);
        b.bytes = 0;
        CHECK_INT(pen__png_encode(&p, &b, NULL), PEN_OK);
        check_mask(&b, PEN_STORED_PNG, &p);
        JpegSpec spec = {.width = 61, .height = 47, .channels = (int)channels};
        make_jpeg(&spec, &b);
        check_mask(&b, PEN_STORED_JPEG, &p);
        CHECK_OK_SO_FAR();
        PenEncoded raw = encoded(p.data, (size_t)61 * 47 * channels, PEN_STORED_RAW, &p);
        CHECK_INT(find_region(decoder, &raw, (PenBox){1, 2, 3, 4}, PEN_COLOUR_MASK, &found, NULL),
                  channels == 1 ? PEN_OK : PEN_E_DECODE);
        pen__pixels_free(&p);
    }
    pen__buf_free(&b);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    if (!start_regions())
        return 1;
    RUN(jpeg_of_every_kind);
    RUN(jpeg_of_small_sizes);
    RUN(jpeg_with_missing_scans);
    RUN(jpeg_tables_are_not_inherited);
    RUN(truncated_jpegs);
    RUN(another_size_is_an_error_that_says_both);
    RUN(boxes_outside_are_invalid);
    RUN(the_callback_may_stop);
    RUN(raw_pixels);
    RUN(png_files);
    RUN(webp_files);
    RUN(palettes);
    RUN(masks);
    end_regions();
    return TEST_END();
}
