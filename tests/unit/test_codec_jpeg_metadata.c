/* SPDX-License-Identifier: Apache-2.0 */
#include "base/attr.h"
#include "codec/jpeg/metadata.h"
#include "codec_images.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;

/* EXIF, a made-up ICC profile in two segments, XMP, a comment. */
static void make_metadata(PenBuf *out)
{
    uint8_t exif[64];
    size_t n = make_exif(5, true, exif);
    out->bytes = 0;
    pen__buf_add(out, exif, n);
    pen__buf_add(out,
                 "\xFF\xE2\x00\x12ICC_PROFILE\0\x01\x02"
                 "ab",
                 20);
    pen__buf_add(out,
                 "\xFF\xE2\x00\x12ICC_PROFILE\0\x02\x02"
                 "cd",
                 20);
    pen__buf_add(out, "\xFF\xE1\x00\x07http:", 9);
    pen__buf_add(out, "\xFF\xFE\x00\x06note", 8);
}

TEST(metadata_comes_back_as_it_was)
{
    PenBuf source = {0}, meta = {0}, with = {0}, found = {0}, none = {0};
    TiledJpeg t = {0};
    PenJpegInfo info;
    PenPixels p, q;
    PenError err;
    make_metadata(&meta);
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .h = 2, .v = 2}, &source);
    CHECK_INT(pen__jpeg_metadata(source.data, source.bytes, &none, &err), PEN_OK);
    CHECK_INT(none.bytes, 0); /* JFIF is not metadata */
    CHECK_INT(
        pen__jpeg_with_metadata(source.data, source.bytes, meta.data, meta.bytes, &with, &err),
        PEN_OK);
    CHECK_INT(with.bytes, source.bytes + meta.bytes);
    CHECK_MEM(with.data, source.data, 20); /* SOI and JFIF stay in front */
    CHECK_INT(pen__jpeg_info(with.data, with.bytes, limits, &info, &err), PEN_OK);
    CHECK_INT(info.orientation, 5);
    CHECK_INT(pen__jpeg_metadata(with.data, with.bytes, &found, &err), PEN_OK);
    CHECK_INT(found.bytes, meta.bytes);
    CHECK_MEM(found.data, meta.data, meta.bytes);

    /* Through a tiled file: it has none itself, and knows the orientation; then put back. */
    CHECK_INT(tile_jpeg(with.data, with.bytes, &t), PEN_OK);
    CHECK_INT(t.info.orientation, 5);
    CHECK_INT(pen__jpeg_metadata(t.jpeg.data, t.jpeg.bytes, &none, &err), PEN_OK);
    CHECK_INT(none.bytes, 0);
    with.bytes = found.bytes = 0;
    CHECK_INT(
        pen__jpeg_with_metadata(t.jpeg.data, t.jpeg.bytes, meta.data, meta.bytes, &with, &err),
        PEN_OK);
    CHECK_INT(pen__jpeg_metadata(with.data, with.bytes, &found, &err), PEN_OK);
    CHECK_INT(found.bytes, meta.bytes);
    CHECK_MEM(found.data, meta.data, meta.bytes);
    CHECK_INT(pen__image_decode(with.data, with.bytes, limits, &p, &err), PEN_OK);
    CHECK_INT(pen__image_decode(source.data, source.bytes, limits, &q, &err), PEN_OK);
    CHECK_MEM(p.data, q.data, (size_t)97 * 61 * 3);
    pen__pixels_free(&p);
    pen__pixels_free(&q);
    tiled_free(&t);
    pen__buf_free(&source);
    pen__buf_free(&meta);
    pen__buf_free(&with);
    pen__buf_free(&found);
}

TEST(adobe_is_not_metadata)
{
    PenBuf source = {0}, found = {0};
    make_jpeg(&(JpegSpec){.width = 16, .height = 16, .channels = 4}, &source);
    CHECK(find_marker_offset(source.data, source.bytes, 0xEE, 0) > 0);
    CHECK_INT(pen__jpeg_metadata(source.data, source.bytes, &found, NULL), PEN_OK);
    CHECK_INT(found.bytes, 0);
    pen__buf_free(&source);
    pen__buf_free(&found);
}

TEST(metadata_that_would_break_the_file_is_refused)
{
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
        {"x", 1},
        {"\xFF\xE1", 2},
        {"\xFF\xE1\x00\x09http:", 9},                   /* longer than it is */
        {"\xFF\xDB\x00\x04zz", 6},                      /* a quantisation table */
        {"\xFF\xD9", 2},                                /* the end */
        {"\xFF\xE1\x00\x04zz\xFF\xDA\x00\x02", 10},     /* a scan behind good metadata */
        {"\xFF\xE1\x00\x04zz\x00\xFF\xE1\x00\x02", 11}, /* a byte between */
        {"\xFF\xE0\x00\x07JFIF\0", 9},
    };
    PenBuf source = {0}, with = {0};
    PenError err;
    make_jpeg(&(JpegSpec){.width = 16, .height = 16}, &source);
    pen__buf_add(&with, "keep", 4);
    for (size_t i = 0; i < PEN_LEN(bad); i++) {
        int r = pen__jpeg_with_metadata(source.data, source.bytes, (const uint8_t *)bad[i].bytes,
                                        bad[i].n, &with, &err);
        CHECK_INT(r, PEN_E_DECODE);
        CHECK_INT(with.bytes, 4);
    }
    CHECK_INT(pen__jpeg_metadata(source.data, 100, &with, &err), PEN_E_DECODE);
    CHECK_INT(with.bytes, 4);
    pen__buf_free(&source);
    pen__buf_free(&with);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(metadata_comes_back_as_it_was);
    RUN(adobe_is_not_metadata);
    RUN(metadata_that_would_break_the_file_is_refused);
    return TEST_END();
}
