/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"

#include <stdlib.h>

#include <spng.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "codec_images.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;

typedef struct PngSpec {
    uint8_t colour, depth, interlaced, channels; /* channels: what decoding is to give */
    bool trns;
} PngSpec;

static uint8_t samples_of(uint8_t colour)
{
    return colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1;
}

enum { WIDTH = 45, HEIGHT = 21 };

/* The stored value of a sample; below 2^depth. */
static unsigned sample(const PngSpec *s, uint32_t x, uint32_t y, uint32_t c)
{
    unsigned v = x * 7 + y * 13 + c * 29 + x * y;
    unsigned max = s->depth == 16 ? 65535 : (1u << s->depth) - 1;
    return s->depth == 16 ? (v * 401) & max : v & max;
}

static void fill_rows(const PngSpec *s, uint8_t *rows, size_t stride)
{
    size_t n = samples_of(s->colour);
    for (uint32_t y = 0; y < HEIGHT; y++)
        for (uint32_t i = 0; i < WIDTH * n; i++) {
            unsigned v = sample(s, i / (uint32_t)n, y, i % (uint32_t)n);
            uint8_t *row = rows + y * stride;
            if (s->depth == 16) { /* the encoder swaps to big-endian */
                pen__store16(row + 2 * i, (uint16_t)v);
            } else {
                size_t bit = i * s->depth;
                row[bit / 8] = (uint8_t)(row[bit / 8] | v << (8 - s->depth - bit % 8));
            }
        }
}

static void make_png(const PngSpec *s, PenBuf *out)
{
    struct spng_ihdr ihdr = {.width = WIDTH,
                             .height = HEIGHT,
                             .bit_depth = s->depth,
                             .color_type = s->colour,
                             .interlace_method = s->interlaced};
    struct spng_plte plte = {.n_entries = 1u << (s->depth < 8 ? s->depth : 8)};
    struct spng_trns trns = {.gray = 3, .red = 0, .green = 29, .blue = 58, .n_type3_entries = 2};
    trns.type3_alpha[0] = 10;
    trns.type3_alpha[1] = 20;
    for (uint32_t i = 0; i < plte.n_entries; i++)
        plte.entries[i] = (struct spng_plte_entry){(uint8_t)(255 - i), (uint8_t)(i * 3),
                                                   (uint8_t)(i ^ 0x55), 255};
    size_t stride = ((size_t)WIDTH * samples_of(s->colour) * s->depth + 7) / 8, bytes = 0;
    uint8_t *rows = calloc(HEIGHT, stride);
    int e = 0;
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    if (!rows || !ctx)
        abort();
    fill_rows(s, rows, stride);
    spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(ctx, &ihdr);
    if (s->colour == 3)
        spng_set_plte(ctx, &plte);
    if (s->trns)
        spng_set_trns(ctx, &trns);
    if (spng_encode_image(ctx, rows, HEIGHT * stride, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE))
        abort();
    void *png = spng_get_png_buffer(ctx, &bytes, &e);
    if (!png)
        abort();
    out->bytes = 0;
    pen__buf_add(out, png, bytes);
    free(png);
    free(rows);
    spng_ctx_free(ctx);
}

static const PngSpec specs[] = {
    {.colour = 0, .depth = 1, .channels = 1},
    {.colour = 0, .depth = 2, .channels = 1},
    {.colour = 0, .depth = 4, .channels = 1},
    {.colour = 0, .depth = 8, .channels = 1},
    {.colour = 0, .depth = 16, .channels = 1},
    {.colour = 2, .depth = 8, .channels = 3},
    {.colour = 2, .depth = 16, .channels = 3},
    {.colour = 3, .depth = 1, .channels = 3},
    {.colour = 3, .depth = 2, .channels = 3},
    {.colour = 3, .depth = 4, .channels = 3},
    {.colour = 3, .depth = 8, .channels = 3},
    {.colour = 4, .depth = 8, .channels = 4},
    {.colour = 4, .depth = 16, .channels = 4},
    {.colour = 6, .depth = 8, .channels = 4},
    {.colour = 6, .depth = 16, .channels = 4},
    {.colour = 0, .depth = 8, .channels = 4, .trns = true},
    {.colour = 2, .depth = 8, .channels = 4, .trns = true},
    {.colour = 3, .depth = 4, .channels = 4, .trns = true},
};

static uint8_t to_8_bits(const PngSpec *s, unsigned v)
{
    return (uint8_t)(s->depth == 16 ? v >> 8 : v * 255 / ((1u << s->depth) - 1));
}

/* What a pixel is to be, by the PNG standard. */
static void expected_pixel(const PngSpec *s, uint32_t x, uint32_t y, uint8_t out[4])
{
    unsigned v[4];
    for (uint32_t c = 0; c < 4; c++)
        v[c] = sample(s, x, y, c);
    out[3] = 255;
    switch (s->colour) {
    case 0:
    case 4:
        out[0] = out[1] = out[2] = to_8_bits(s, v[0]);
        if (s->colour == 4)
            out[3] = to_8_bits(s, v[1]);
        if (s->trns && v[0] == 3)
            out[3] = 0;
        break;
    case 3:
        out[0] = (uint8_t)(255 - v[0]);
        out[1] = (uint8_t)(v[0] * 3);
        out[2] = (uint8_t)(v[0] ^ 0x55);
        if (s->trns && v[0] < 2)
            out[3] = v[0] ? 20 : 10;
        break;
    default:
        for (uint32_t c = 0; c < samples_of(s->colour); c++)
            out[c] = to_8_bits(s, v[c]);
        if (s->trns && v[0] == 0 && v[1] == 29 && v[2] == 58)
            out[3] = 0;
    }
}

static void check_decode(const PngSpec *s)
{
    PenBuf png = {0};
    PenPixels p;
    PenImageInfo info;
    PenError err = {0};
    make_png(s, &png);
    CHECK_INT(pen__image_sniff(png.data, png.bytes), PEN_STORED_PNG);
    CHECK_INT(pen__image_check(png.data, png.bytes, limits, &err), PEN_OK);
    CHECK_INT(pen__image_probe(png.data, png.bytes, limits, &info, &err), PEN_OK);
    CHECK_INT(info.width, WIDTH);
    CHECK_INT(info.height, HEIGHT);
    CHECK_INT(info.channels, s->channels);
    CHECK_INT(info.orientation, 1);
    int r = pen__image_decode(png.data, png.bytes, limits, &p, &err);
    CHECK_STR(err.message, "");
    CHECK_INT(r, PEN_OK);
    CHECK_INT(p.channels, s->channels);
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
        uint8_t expected[4];
        expected_pixel(s, i % WIDTH, i / WIDTH, expected);
        CHECK_MEM(p.data + (size_t)i * s->channels, expected, s->channels);
    }
    pen__pixels_free(&p);
    pen__buf_free(&png);
}

TEST(decode_of_all_kinds)
{
    for (size_t i = 0; i < PEN_LEN(specs); i++)
        for (uint8_t interlaced = 0; interlaced < 2; interlaced++) {
            PngSpec s = specs[i];
            s.interlaced = interlaced;
            check_decode(&s);
            CHECK_OK_SO_FAR();
        }
}

TEST(mask_gives_values_as_stored)
{
    PenBuf png = {0};
    PenError err;
    for (size_t i = 0; i < PEN_LEN(specs); i++) {
        const PngSpec *s = &specs[i];
        PenPixels p = {0};
        make_png(s, &png);
        int r = pen__mask_decode(png.data, png.bytes, limits, &p, &err);
        if (s->colour != 0 && s->colour != 3) {
            CHECK_INT(r, PEN_E_DECODE);
            continue;
        }
        if (s->depth == 16) {
            CHECK_INT(r, PEN_E_UNSUPPORTED);
            continue;
        }
        CHECK_INT(r, PEN_OK);
        CHECK_INT(p.channels, 1);
        for (uint32_t k = 0; k < WIDTH * HEIGHT; k++)
            CHECK_INT(p.data[k], sample(s, k % WIDTH, k / WIDTH, 0));
        pen__pixels_free(&p);
    }
    pen__buf_free(&png);
}

TEST(damage_of_any_byte_is_found)
{
    PenBuf png = {0};
    make_png(&(PngSpec){.colour = 3, .depth = 4}, &png);
    for (size_t at = 0; at < png.bytes; at++)
        for (int bit = 0; bit < 8; bit++) {
            PenPixels p = {0};
            png.data[at] ^= (uint8_t)(1u << bit);
            int r = pen__image_check(png.data, png.bytes, limits, NULL);
            CHECK(r == PEN_E_DECODE || r == PEN_E_LIMIT);
            CHECK_INT(pen__image_decode(png.data, png.bytes, limits, &p, NULL), r);
            CHECK(p.data == NULL);
            png.data[at] ^= (uint8_t)(1u << bit);
        }
    pen__buf_free(&png);
}

TEST(truncation_at_any_length_is_found)
{
    PenBuf png = {0};
    make_png(&(PngSpec){.colour = 2, .depth = 8}, &png);
    for (size_t n = 0; n < png.bytes; n++) {
        PenPixels p = {0};
        PenImageInfo info;
        uint8_t *exact = malloc(n ? n : 1);
        CHECK(exact);
        memcpy(exact, png.data, n);
        CHECK_INT(pen__image_check(exact, n, limits, NULL), PEN_E_DECODE);
        CHECK_INT(pen__image_decode(exact, n, limits, &p, NULL), PEN_E_DECODE);
        pen__image_probe(exact, n, limits, &info, NULL);
        CHECK(p.data == NULL);
        free(exact);
    }
    pen__buf_add(&png, "trailing bytes", 14);
    CHECK_INT(pen__image_check(png.data, png.bytes, limits, NULL), PEN_OK);
    pen__buf_free(&png);
}

TEST(limits_hold)
{
    PenBuf png = {0};
    PenPixels p = {0};
    PenError err;
    PenLimits few = *limits, small = *limits;
    make_png(&(PngSpec){.colour = 2, .depth = 8}, &png);
    few.max_pixels = WIDTH * HEIGHT - 1;
    CHECK_INT(pen__image_check(png.data, png.bytes, &few, &err), PEN_E_LIMIT);
    CHECK_INT(pen__image_decode(png.data, png.bytes, &few, &p, &err), PEN_E_LIMIT);
    small.max_memory_bytes = WIDTH * HEIGHT * 3 - 1;
    CHECK_INT(pen__image_decode(png.data, png.bytes, &small, &p, &err), PEN_E_LIMIT);
    pen__buf_free(&png);
}

TEST(encode_round_trip_is_exact_and_repeatable)
{
    for (uint32_t channels = 1; channels <= 4; channels++) {
        PenPixels p, q;
        PenBuf a = {0}, b = {0};
        PenError err;
        make_pixels(53, 31, channels, channels, &p);
        int r = pen__png_encode(&p, &a, &err);
        if (channels == 2) {
            CHECK_INT(r, PEN_E_INVALID);
            pen__pixels_free(&p);
            continue;
        }
        CHECK_INT(r, PEN_OK);
        CHECK_INT(pen__png_encode(&p, &b, &err), PEN_OK);
        CHECK_INT(a.bytes, b.bytes);
        CHECK_MEM(a.data, b.data, a.bytes);
        CHECK_INT(pen__image_decode(a.data, a.bytes, limits, &q, &err), PEN_OK);
        CHECK_INT(q.channels, channels);
        CHECK_MEM(q.data, p.data, (size_t)53 * 31 * channels);
        pen__pixels_free(&p);
        pen__pixels_free(&q);
        pen__buf_free(&a);
        pen__buf_free(&b);
    }
}

/* Noise does not shrink: a file of more than 16 MiB. */
TEST(a_large_file_is_decoded)
{
    enum { SIDE = 2500 };
    PenPixels p = {.width = SIDE, .height = SIDE, .channels = 3}, q = {0};
    PenBuf png = {0};
    PenError err = {0};
    p.data = pen__alloc((size_t)SIDE * SIDE * 3 + PEN_SLACK);
    uint32_t x = 1;
    for (size_t i = 0; i < (size_t)SIDE * SIDE * 3; i++)
        p.data[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
    CHECK_INT(pen__png_encode(&p, &png, &err), PEN_OK);
    CHECK(png.bytes > 17 << 20);
    CHECK_INT(pen__image_decode(png.data, png.bytes, limits, &q, &err), PEN_OK);
    CHECK_MEM(q.data, p.data, (size_t)SIDE * SIDE * 3);
    pen__pixels_free(&p);
    pen__pixels_free(&q);
    pen__buf_free(&png);
}

/* A chunk eXIf behind IHDR; its checksum is not looked at by the probe. */
TEST(probe_reads_orientation)
{
    PenBuf png = {0}, with = {0};
    PenImageInfo info;
    uint8_t exif[64], head[8] = {0, 0, 0, 0, 'e', 'X', 'I', 'f'};
    size_t n = make_exif(7, false, exif) - 10;
    make_png(&(PngSpec){.colour = 2, .depth = 8}, &png);
    head[3] = (uint8_t)n;
    pen__buf_add(&with, png.data, 33);
    pen__buf_add(&with, head, 8);
    pen__buf_add(&with, exif + 10, n);
    pen__buf_add(&with, "....", 4);
    pen__buf_add(&with, png.data + 33, png.bytes - 33);
    CHECK_INT(pen__image_probe(with.data, with.bytes, limits, &info, NULL), PEN_OK);
    CHECK_INT(info.orientation, 7);
    CHECK_INT(pen__image_check(with.data, with.bytes, limits, NULL), PEN_E_DECODE);
    pen__buf_free(&png);
    pen__buf_free(&with);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(decode_of_all_kinds);
    RUN(mask_gives_values_as_stored);
    RUN(damage_of_any_byte_is_found);
    RUN(truncation_at_any_length_is_found);
    RUN(limits_hold);
    RUN(encode_round_trip_is_exact_and_repeatable);
    RUN(a_large_file_is_decoded);
    RUN(probe_reads_orientation);
    return TEST_END();
}
