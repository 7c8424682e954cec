/* SPDX-License-Identifier: Apache-2.0 */
#include "base/attr.h"
#include "codec/codec.h"
#include "codec_images.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;

static const JpegSpec specs[] = {
    {.width = 1, .height = 1},
    {.width = 97, .height = 61},
    {.width = 97, .height = 61, .h = 2},
    {.width = 97, .height = 61, .v = 2},
    {.width = 97, .height = 61, .h = 2, .v = 2},
    {.width = 97, .height = 61, .h = 4},
    {.width = 97, .height = 61, .channels = 1},
    {.width = 97, .height = 61, .rgb = true},
    {.width = 97, .height = 61, .h = 2, .v = 2, .progressive = true},
    {.width = 97, .height = 61, .h = 2, .v = 2, .arithmetic = true},
    {.width = 97, .height = 61, .h = 2, .v = 2, .restart_interval = 3},
    {.width = 97, .height = 61, .separate = true},
};

TEST(decode_gives_what_libjpeg_gives)
{
    PenBuf b = {0};
    for (size_t i = 0; i < PEN_LEN(specs); i++) {
        PenPixels p, ref;
        PenError err = {0};
        make_jpeg(&specs[i], &b);
        CHECK_INT(pen__image_decode(b.data, b.bytes, limits, &p, &err), PEN_OK);
        CHECK_INT(reference_decode(b.data, b.bytes, &ref), 0);
        CHECK_INT(p.width, specs[i].width);
        CHECK_INT(p.height, specs[i].height);
        CHECK_INT(p.channels, ref.channels);
        CHECK_MEM(p.data, ref.data, (size_t)p.width * p.height * p.channels);
        pen__pixels_free(&p);
        pen__pixels_free(&ref);
    }
    pen__buf_free(&b);
}

/* Of stored c and k, both inverted: red = k - (255 - c) * k / 255, rounded. */
TEST(cmyk_becomes_rgb)
{
    PenBuf b = {0};
    for (int ycck = 0; ycck < 2; ycck++) {
        PenPixels p, ref;
        make_jpeg(&(JpegSpec){.width = 97, .height = 61, .channels = 4, .ycck = ycck}, &b);
        CHECK_INT(pen__image_decode(b.data, b.bytes, limits, &p, NULL), PEN_OK);
        CHECK_INT(reference_decode(b.data, b.bytes, &ref), 0);
        CHECK_INT(p.channels, 3);
        CHECK_INT(ref.channels, 4);
        for (size_t i = 0; i < (size_t)97 * 61 * 3; i++) {
            int c = 255 - ref.data[i / 3 * 4 + i % 3], k = ref.data[i / 3 * 4 + 3];
            CHECK_INT(p.data[i], k - (c * k * 2 + 255) / 510);
        }
        pen__pixels_free(&p);
        pen__pixels_free(&ref);
    }
    pen__buf_free(&b);
}

TEST(mask_is_grey_only)
{
    PenBuf b = {0};
    PenPixels p = {0}, q = {0};
    make_jpeg(&(JpegSpec){.width = 97, .height = 61}, &b);
    CHECK_INT(pen__mask_decode(b.data, b.bytes, limits, &p, NULL), PEN_E_DECODE);
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .channels = 1}, &b);
    CHECK_INT(pen__mask_decode(b.data, b.bytes, limits, &p, NULL), PEN_OK);
    CHECK_INT(pen__image_decode(b.data, b.bytes, limits, &q, NULL), PEN_OK);
    CHECK_MEM(p.data, q.data, 97 * 61);
    pen__pixels_free(&p);
    pen__pixels_free(&q);
    pen__buf_free(&b);
}

TEST(pixels_are_followed_by_slack)
{
    PenBuf b = {0};
    PenPixels p;
    uint8_t zeros[PEN_SLACK] = {0};
    make_jpeg(&(JpegSpec){.width = 97, .height = 61}, &b);
    CHECK_INT(pen__image_decode(b.data, b.bytes, limits, &p, NULL), PEN_OK);
    CHECK_MEM(p.data + 97 * 61 * 3, zeros, PEN_SLACK);
    pen__pixels_free(&p);
    pen__buf_free(&b);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(decode_gives_what_libjpeg_gives);
    RUN(cmyk_becomes_rgb);
    RUN(mask_is_grey_only);
    RUN(pixels_are_followed_by_slack);
    return TEST_END();
}
