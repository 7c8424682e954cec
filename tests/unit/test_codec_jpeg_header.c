/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/header.h"

#include <stdlib.h>

#include "base/attr.h"
#include "codec/exif.h"
#include "codec/jpeg/quality.h"
#include "codec_images.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;

static void info_of(const JpegSpec *spec, PenJpegInfo *ret)
{
    PenBuf b = {0};
    make_jpeg(spec, &b);
    PenError err;
    CHECK_INT(pen__jpeg_info(b.data, b.bytes, limits, ret, &err), PEN_OK);
    CHECK_INT(pen__jpeg_check(b.data, b.bytes, limits, &err), PEN_OK);
    size_t sos = find_marker_offset(b.data, b.bytes, 0xDA, 0);
    CHECK_INT(ret->head_bytes, sos + 2 + 6 + 2 * (size_t)(spec->progressive ? 3 : ret->components));
    pen__buf_free(&b);
}

TEST(info_tells_what_was_asked_for)
{
    PenJpegInfo info = {0};
    info_of(&(JpegSpec){.width = 97, .height = 61, .h = 2, .v = 1, .restart_interval = 5}, &info);
    CHECK_OK_SO_FAR();
    CHECK_INT(info.width, 97);
    CHECK_INT(info.height, 61);
    CHECK_INT(info.components, 3);
    CHECK_INT(info.precision, 8);
    CHECK_INT(info.sof, 0xC0);
    CHECK_INT(info.h_samp[0], 2);
    CHECK_INT(info.v_samp[0], 1);
    CHECK_INT(info.h_samp[1], 1);
    CHECK_INT(info.orientation, 1);
    CHECK_INT(info.adobe_transform, 0xFF);
    CHECK_INT(info.restart_interval, 5);
    info_of(&(JpegSpec){.width = 97, .height = 61, .progressive = true}, &info);
    CHECK_INT(info.sof, 0xC2);
    CHECK_INT(info.restart_interval, 0);
    info_of(&(JpegSpec){.width = 97, .height = 61, .arithmetic = true}, &info);
    CHECK_INT(info.sof, 0xC9);
    info_of(&(JpegSpec){.width = 97, .height = 61, .channels = 4}, &info);
    CHECK_INT(info.components, 4);
    CHECK_INT(info.adobe_transform, 0);
    info_of(&(JpegSpec){.width = 97, .height = 61, .channels = 4, .ycck = true}, &info);
    CHECK_INT(info.adobe_transform, 2);
    info_of(&(JpegSpec){.width = 97, .height = 61, .orientation = 8}, &info);
    CHECK_INT(info.orientation, 8);
}

TEST(quality_is_exact_for_ijg_tables)
{
    for (int q = 1; q <= 100; q++)
        for (int channels = 1; channels <= 3; channels += 2) {
            PenBuf b = {0};
            PenJpegHeader header;
            make_jpeg(&(JpegSpec){.width = 8, .height = 8, .channels = channels, .quality = q}, &b);
            CHECK_INT(pen__jpeg_header(b.data, b.bytes, limits, &header, NULL), PEN_OK);
            CHECK_OK_SO_FAR();
            CHECK_INT(pen__jpeg_quality(&header), q);
            pen__buf_free(&b);
        }
}

/* Tables that are not the IJG's: a coarser one never looks better than a finer one. */
TEST(quality_of_other_tables_falls_as_they_get_coarser)
{
    int last = 101;
    for (uint16_t step = 1; step < 400; step = (uint16_t)(step + 1 + step / 4)) {
        uint16_t table[64];
        for (size_t i = 0; i < 64; i++)
            table[i] = step;
        int q = pen__quant_quality(table, NULL);
        CHECK(q >= 1 && q <= last);
        last = q;
    }
    CHECK(last < 20);
}

TEST(orientation_is_read_in_both_byte_orders)
{
    for (int value = 0; value <= 9; value++)
        for (int big = 0; big < 2; big++) {
            uint8_t exif[64];
            size_t n = make_exif(value, big, exif);
            int expected = value >= 1 && value <= 8 ? value : 1;
            CHECK_INT(pen__exif_orientation(exif + 4, n - 4), expected);
            CHECK_INT(pen__exif_orientation(exif + 10, n - 10), expected); /* bare TIFF */
        }
}

TEST(orientation_may_stand_behind_other_tags)
{
    static const uint8_t tiff[] = {'I', 'I', 42, 0, 8, 0, 0,   0,   2,   0, 0x0F, 0x01,
                                   2,   0,   4,  0, 0, 0, 'a', 'b', 'c', 0, 0x12, 0x01,
                                   4,   0,   1,  0, 0, 0, 3,   0,   0,   0};
    CHECK_INT(pen__exif_orientation(tiff, sizeof tiff), 3);
}

/* Cut anywhere, or with any byte changed: a number from 1 to 8, and no read outside. */
TEST(orientation_of_damaged_exif_is_harmless)
{
    uint8_t exif[64];
    size_t n = make_exif(6, false, exif);
    for (size_t cut = 0; cut < n - 4; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1);
        CHECK(exact);
        memcpy(exact, exif + 4, cut);
        int found = pen__exif_orientation(exact, cut);
        free(exact);
        /* the last 6 bytes stand behind the value */
        CHECK_INT(found, cut >= n - 4 - 6 ? 6 : 1);
    }
    for (size_t at = 4; at < n; at++)
        for (int v = 0; v < 256; v++) {
            uint8_t copy[64];
            memcpy(copy, exif, n);
            copy[at] = (uint8_t)v;
            int found = pen__exif_orientation(copy + 4, n - 4);
            CHECK(found >= 1 && found <= 8);
        }
}

TEST(info_of_a_cut_header_is_an_error)
{
    PenBuf b = {0};
    PenJpegInfo info;
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .orientation = 3}, &b);
    CHECK_INT(pen__jpeg_info(b.data, b.bytes, limits, &info, NULL), PEN_OK);
    for (size_t n = 0; n < info.head_bytes; n++) {
        PenError err = {0};
        PenJpegInfo untouched = {.width = 7};
        uint8_t *exact = malloc(n ? n : 1); /* so that a read beyond the end is seen */
        CHECK(exact);
        memcpy(exact, b.data, n);
        CHECK_INT(pen__jpeg_info(exact, n, limits, &untouched, &err), PEN_E_DECODE);
        CHECK_STR(err.where, "codec/jpeg");
        CHECK_INT(untouched.width, 7);
        free(exact);
    }
    pen__buf_free(&b);
}

/* Every byte of the header in turn, set to other values: no crash, and limits are kept. */
TEST(info_of_a_damaged_header_is_harmless)
{
    PenBuf b = {0};
    PenJpegInfo info;
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .orientation = 3}, &b);
    CHECK_INT(pen__jpeg_info(b.data, b.bytes, limits, &info, NULL), PEN_OK);
    for (size_t at = 0; at < info.head_bytes; at++)
        for (int v = 0; v < 256; v += 5) {
            uint8_t old = b.data[at];
            PenJpegInfo found = {0};
            b.data[at] = (uint8_t)v;
            int r = pen__jpeg_info(b.data, b.bytes, limits, &found, NULL);
            CHECK(r == PEN_OK || r == PEN_E_DECODE || r == PEN_E_LIMIT || r == PEN_E_UNSUPPORTED);
            if (r == PEN_OK)
                CHECK((uint64_t)found.width * found.height <= limits->max_pixels &&
                      found.width > 0 && found.height > 0);
            pen__jpeg_check(b.data, b.bytes, limits, NULL);
            b.data[at] = old;
        }
    pen__buf_free(&b);
}

static void expect(const char *bytes, size_t n, int status, const char *message)
{
    PenError err = {0};
    PenJpegInfo info;
    CHECK_INT(pen__jpeg_info((const uint8_t *)bytes, n, limits, &info, &err), status);
    CHECK_STR(err.message, message);
}

#define EXPECT(bytes, status, message) expect(bytes, sizeof(bytes) - 1, status, message)
#define SOF(kind, body) "\xFF\xD8\xFF" kind "\x00\x0B" body "\x01\x01\x11\x00\xFF\xDA\x00\x02"

TEST(info_says_what_is_wrong)
{
    EXPECT("", PEN_E_DECODE, "jpeg: expected SOI (ff d8) at byte 0, found something else");
    EXPECT("\xFF\xD8", PEN_E_DECODE,
           "jpeg: truncated: expected a marker, found the end of the file at byte 2");
    EXPECT("\xFF\xD8\xFF\xD9", PEN_E_DECODE,
           "jpeg: expected a scan (SOS), found marker d9 at byte 2");
    EXPECT("\xFF\xD8\xFF\xDA\x00\x02", PEN_E_DECODE,
           "jpeg: expected a frame header (SOF) before the scan at byte 2, found none");
    EXPECT("\xFF\xD8\xFF\xDB\x00\x01", PEN_E_DECODE,
           "jpeg: marker db at byte 2: expected a length of 2 or more, found 1");
    EXPECT("\xFF\xD8\xFF\x52\x00\x02", PEN_E_DECODE,
           "jpeg: expected a JPEG marker at byte 2, found code 52");
    EXPECT(SOF("\xC0", "\x08\x00\x00\x00\x10"), PEN_E_DECODE,
           "size: expected at least 1 x 1 pixels, found 16 x 0");
    EXPECT("\xFF\xD8\xFF\xC0\x00\x0B\x08\x00\x10\x00\x10\x01\x01\x11\x00"
           "\xFF\xC0\x00\x0B\x08\x00\x10\x00\x10\x01\x01\x11\x00\xFF\xDA\x00\x02",
           PEN_E_DECODE, "jpeg: expected one frame header, found a second one at byte 15");
    EXPECT(SOF("\xC3", "\x08\x00\x10\x00\x10"), PEN_E_UNSUPPORTED,
           "jpeg: expected a baseline, extended or progressive file, found SOF3 (lossless, "
           "hierarchical or unknown); convert it first");
    EXPECT(SOF("\xC0", "\x09\x00\x10\x00\x10"), PEN_E_DECODE,
           "jpeg: expected 8 or 12 bits per sample, found 9");
}

TEST(check_finds_a_missing_end)
{
    PenBuf b = {0};
    PenError err;
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .progressive = true}, &b);
    CHECK_INT(pen__jpeg_check(b.data, b.bytes, limits, &err), PEN_OK);
    for (size_t n = b.bytes - 1; n > b.bytes / 2; n--) {
        char expected[128];
        snprintf(expected, sizeof expected, "found the end of the file at byte %zu", n);
        CHECK_INT(pen__jpeg_check(b.data, n, limits, &err), PEN_E_DECODE);
        CHECK(strstr(err.message, expected));
    }
    pen__buf_free(&b);
}

TEST(probe_of_a_jpeg)
{
    PenBuf b = {0};
    PenImageInfo info;
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .channels = 4, .orientation = 6}, &b);
    CHECK_INT(pen__image_sniff(b.data, b.bytes), PEN_STORED_JPEG);
    CHECK_INT(pen__image_probe(b.data, b.bytes, limits, &info, NULL), PEN_OK);
    CHECK_INT(info.width, 97);
    CHECK_INT(info.height, 61);
    CHECK_INT(info.channels, 3);
    CHECK_INT(info.orientation, 6);
    CHECK_INT(info.codec, PEN_STORED_JPEG);
    CHECK_STR(pen__codec_name(info.codec), "jpeg");
    CHECK_STR(pen__codec_suffix(info.codec), ".jpg");
    pen__buf_free(&b);
}

TEST(sniff_looks_at_bytes_alone)
{
    PenImageInfo info;
    PenError err;
    const uint8_t gif[] = "GIF89a...........";
    CHECK_INT(pen__image_sniff(gif, sizeof gif), PEN_STORED_NONE);
    CHECK_INT(pen__image_sniff(gif, 0), PEN_STORED_NONE);
    CHECK_INT(pen__image_sniff((const uint8_t *)"\xFF\xD8\xFF", 3), PEN_STORED_JPEG);
    CHECK_INT(pen__image_sniff((const uint8_t *)"\xFF\xD8\xFF", 2), PEN_STORED_NONE);
    CHECK_INT(pen__image_probe(gif, sizeof gif, limits, &info, &err), PEN_E_DECODE);
    CHECK_STR(err.message,
              "image: expected a jpeg, png or webp file, found a GIF: convert or remove "
              "it");
    CHECK_INT(pen__image_probe((const uint8_t *)"some text", 9, limits, &info, &err), PEN_E_DECODE);
    CHECK_STR(err.message, "image: expected a jpeg, png or webp file, found one that starts with "
                           "73 6f 6d 65");
    CHECK_INT(pen__image_check(gif, 2, limits, &err), PEN_E_DECODE);
    CHECK_STR(pen__codec_name(PEN_STORED_RAW), "raw");
    CHECK_STR(pen__codec_suffix(PEN_STORED_NONE), ".bin");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(info_tells_what_was_asked_for);
    RUN(quality_is_exact_for_ijg_tables);
    RUN(quality_of_other_tables_falls_as_they_get_coarser);
    RUN(orientation_is_read_in_both_byte_orders);
    RUN(orientation_may_stand_behind_other_tags);
    RUN(orientation_of_damaged_exif_is_harmless);
    RUN(info_of_a_cut_header_is_an_error);
    RUN(info_of_a_damaged_header_is_harmless);
    RUN(info_says_what_is_wrong);
    RUN(check_finds_a_missing_end);
    RUN(probe_of_a_jpeg);
    RUN(sniff_looks_at_bytes_alone);
    return TEST_END();
}
