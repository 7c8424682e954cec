/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/codec.h"

#include <stdlib.h>

#include <webp/encode.h>

#include "base/bytes.h"
#include "codec_images.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;

enum { WIDTH = 53, HEIGHT = 31 };

static void make_webp(uint32_t channels, bool lossless, PenPixels *ret_pixels, PenBuf *out)
{
    uint8_t *webp = NULL;
    make_pixels(WIDTH, HEIGHT, channels, 4, ret_pixels);
    const uint8_t *p = ret_pixels->data;
    int stride = WIDTH * (int)channels;
    size_t n;
    if (channels == 4)
        n = lossless ? WebPEncodeLosslessRGBA(p, WIDTH, HEIGHT, stride, &webp)
                     : WebPEncodeRGBA(p, WIDTH, HEIGHT, stride, 80, &webp);
    else
        n = lossless ? WebPEncodeLosslessRGB(p, WIDTH, HEIGHT, stride, &webp)
                     : WebPEncodeRGB(p, WIDTH, HEIGHT, stride, 80, &webp);
    if (!n)
        abort();
    out->bytes = 0;
    pen__buf_add(out, webp, n);
    WebPFree(webp);
}

TEST(decode_gives_the_pixels)
{
    PenBuf webp = {0};
    for (uint32_t channels = 3; channels <= 4; channels++)
        for (int lossless = 0; lossless < 2; lossless++) {
            PenPixels source, p;
            PenImageInfo info;
            PenError err = {0};
            make_webp(channels, lossless, &source, &webp);
            CHECK_INT(pen__image_sniff(webp.data, webp.bytes), PEN_STORED_WEBP);
            CHECK_INT(pen__image_check(webp.data, webp.bytes, limits, &err), PEN_OK);
            CHECK_INT(pen__image_probe(webp.data, webp.bytes, limits, &info, &err), PEN_OK);
            CHECK_INT(info.width, WIDTH);
            CHECK_INT(info.height, HEIGHT);
            CHECK_INT(info.channels, channels);
            CHECK_INT(pen__image_decode(webp.data, webp.bytes, limits, &p, &err), PEN_OK);
            CHECK_INT(p.channels, channels);
            uint64_t error = 0;
            for (size_t i = 0; i < (size_t)WIDTH * HEIGHT * channels; i++) {
                bool clear = channels == 4 && source.data[i / 4 * 4 + 3] == 0;
                int d = p.data[i] - source.data[i];
                error += clear ? 0 : (uint64_t)(d * d);
            }
            CHECK(lossless ? error == 0 : error > 0);
            CHECK(error / (WIDTH * HEIGHT * channels) < 900); /* noisy colours, halved chroma */
            CHECK_INT(pen__mask_decode(webp.data, webp.bytes, limits, &p, &err), PEN_E_DECODE);
            pen__pixels_free(&p);
            pen__pixels_free(&source);
        }
    pen__buf_free(&webp);
}

TEST(truncation_at_any_length_is_found)
{
    PenBuf webp = {0};
    PenPixels source;
    make_webp(3, false, &source, &webp);
    for (size_t n = 0; n < webp.bytes; n++) {
        PenPixels p = {0};
        uint8_t *exact = malloc(n ? n : 1);
        CHECK(exact);
        memcpy(exact, webp.data, n);
        CHECK_INT(pen__image_check(exact, n, limits, NULL), PEN_E_DECODE);
        CHECK_INT(pen__image_decode(exact, n, limits, &p, NULL), PEN_E_DECODE);
        CHECK(p.data == NULL);
        free(exact);
    }
    pen__buf_add(&webp, "trailing", 8);
    CHECK_INT(pen__image_check(webp.data, webp.bytes, limits, NULL), PEN_OK);
    pen__pixels_free(&source);
    pen__buf_free(&webp);
}

TEST(damage_is_harmless)
{
    PenBuf webp = {0};
    PenPixels source;
    for (int lossless = 0; lossless < 2; lossless++) {
        make_webp(4, lossless, &source, &webp);
        for (size_t at = 0; at < webp.bytes; at += at < 60 ? 1 : 13)
            for (int bit = 0; bit < 8; bit++) {
                PenPixels p = {0};
                webp.data[at] ^= (uint8_t)(1u << bit);
                if (pen__image_decode(webp.data, webp.bytes, limits, &p, NULL) == PEN_OK)
                    pen__pixels_free(&p);
                CHECK(p.data == NULL);
                webp.data[at] ^= (uint8_t)(1u << bit);
            }
        pen__pixels_free(&source);
    }
    pen__buf_free(&webp);
}

/* VP8X with the given flags, then the chunks of a plain file, then EXIF. */
static void extend(const PenBuf *plain, uint8_t flags, PenBuf *out)
{
    uint8_t exif[64];
    size_t n = make_exif(3, true, exif) - 10;
    uint8_t vp8x[18] = {'V', 'P', '8', 'X',       10, 0, 0,          0, flags,
                        0,   0,   0,   WIDTH - 1, 0,  0, HEIGHT - 1, 0, 0};
    uint8_t head[8] = {'E', 'X', 'I', 'F', (uint8_t)n};
    out->bytes = 0;
    pen__buf_add(out, plain->data, 12);
    pen__buf_add(out, vp8x, sizeof vp8x);
    pen__buf_add(out, plain->data + 12, plain->bytes - 12);
    pen__buf_add(out, head, sizeof head);
    pen__buf_add(out, exif + 10, n);
    pen__store32(out->data + 4, (uint32_t)out->bytes - 8);
}

TEST(extended_files)
{
    PenBuf plain = {0}, webp = {0};
    PenPixels source, p;
    PenImageInfo info;
    PenError err;
    make_webp(3, false, &source, &plain);
    extend(&plain, 0x08, &webp);
    CHECK_INT(pen__image_probe(webp.data, webp.bytes, limits, &info, &err), PEN_OK);
    CHECK_INT(info.orientation, 3);
    CHECK_INT(info.width, WIDTH);
    CHECK_INT(pen__image_decode(webp.data, webp.bytes, limits, &p, &err), PEN_OK);
    pen__pixels_free(&p);
    extend(&plain, 0x02, &webp);
    CHECK_INT(pen__image_probe(webp.data, webp.bytes, limits, &info, &err), PEN_E_UNSUPPORTED);
    CHECK(strstr(err.message, "animation"));
    CHECK_INT(pen__image_decode(webp.data, webp.bytes, limits, &p, &err), PEN_E_UNSUPPORTED);
    pen__pixels_free(&source);
    pen__buf_free(&plain);
    pen__buf_free(&webp);
}

TEST(limits_hold)
{
    PenBuf webp = {0};
    PenPixels source, p = {0};
    PenLimits few = *limits, small = *limits;
    make_webp(3, true, &source, &webp);
    few.max_pixels = WIDTH * HEIGHT - 1;
    CHECK_INT(pen__image_check(webp.data, webp.bytes, &few, NULL), PEN_E_LIMIT);
    CHECK_INT(pen__image_decode(webp.data, webp.bytes, &few, &p, NULL), PEN_E_LIMIT);
    small.max_memory_bytes = WIDTH * HEIGHT * 7 - 1;
    CHECK_INT(pen__image_decode(webp.data, webp.bytes, &small, &p, NULL), PEN_E_LIMIT);
    small.max_memory_bytes++;
    CHECK_INT(pen__image_decode(webp.data, webp.bytes, &small, &p, NULL), PEN_OK);
    pen__pixels_free(&p);
    pen__pixels_free(&source);
    pen__buf_free(&webp);
}

/* What libwebp itself makes of the same pixels; and those of a gray image, in all channels. */
TEST(encode_gives_the_file_of_libwebp)
{
    PenBuf webp = {0}, expected = {0};
    PenPixels source, gray;
    PenError err = {0};
    make_webp(3, false, &source, &expected);
    CHECK_INT(pen__webp_encode(&source, 80, limits, &webp, &err), PEN_OK);
    CHECK_INT(webp.bytes, expected.bytes);
    CHECK_MEM(webp.data, expected.data, expected.bytes);
    size_t bytes = webp.bytes; /* more is appended */
    make_pixels(WIDTH, HEIGHT, 1, 4, &gray);
    CHECK_INT(pen__webp_encode(&gray, 100, limits, &webp, &err), PEN_OK);
    CHECK_MEM(webp.data, expected.data, expected.bytes);
    PenPixels p;
    CHECK_INT(pen__image_decode(webp.data + bytes, webp.bytes - bytes, limits, &p, &err), PEN_OK);
    for (size_t i = 0; i < (size_t)WIDTH * HEIGHT * 3; i++)
        CHECK(abs(p.data[i] - gray.data[i / 3]) < 24);
    pen__pixels_free(&p);
    pen__pixels_free(&gray);
    pen__pixels_free(&source);
    pen__buf_free(&webp);
    pen__buf_free(&expected);
}

TEST(encode_has_limits)
{
    static uint8_t row[16384 * 3];
    PenBuf out = {0};
    PenError err = {0};
    PenPixels wide = {row, 16383, 1, 3};
    CHECK_INT(pen__webp_encode(&wide, 80, limits, &out, &err), PEN_OK);
    size_t bytes = out.bytes;
    wide.width = 16384;
    CHECK_INT(pen__webp_encode(&wide, 80, limits, &out, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "at most 16383 pixels, but the image has 16384 x 1; choose a "
                              "smaller --max-side, or --codec jpeg"));
    wide.width = 100;
    PenLimits few = {.max_pixels = 99, .max_memory_bytes = 499};
    CHECK_INT(pen__webp_encode(&wide, 80, &few, &out, &err), PEN_E_LIMIT);
    few.max_pixels = 100;
    CHECK_INT(pen__webp_encode(&wide, 80, &few, &out, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "at most 499 bytes of memory, but needs 500"));
    CHECK_INT(pen__webp_encode(&wide, 0, limits, &out, &err), PEN_E_INVALID);
    CHECK_INT(pen__webp_encode(&wide, 101, limits, &out, &err), PEN_E_INVALID);
    wide.channels = 4;
    CHECK_INT(pen__webp_encode(&wide, 80, limits, &out, &err), PEN_E_INVALID);
    CHECK_INT(out.bytes, bytes);
    pen__buf_free(&out);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(decode_gives_the_pixels);
    RUN(truncation_at_any_length_is_found);
    RUN(damage_is_harmless);
    RUN(extended_files);
    RUN(limits_hold);
    RUN(encode_gives_the_file_of_libwebp);
    RUN(encode_has_limits);
    return TEST_END();
}
