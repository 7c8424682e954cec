/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG files in odd states, and what decoding, transcoding to baseline and the reader of tiles make
 * of them. */
#include <stdio.h>

#include "base/attr.h"
#include "codec/jpeg/quality.h"
#include "codec/jpeg/tiled.h"
#include "codec/jpeg/transcode/baseline.h"
#include "codec/jpeg/turbo/turbo.h"
#include "codec_images.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;

/* The factors that all components share are left out of the new head. */
static const JpegSpec shared_factors[] = {
    {.width = 97, .height = 61, .channels = 1, .h = 2, .v = 2},
    {.width = 97, .height = 61, .h = 2, .chroma_h = 2},
    {.width = 97, .height = 61, .h = 2, .v = 2, .chroma_h = 1, .chroma_v = 2},
    {.width = 97, .height = 61, .h = 2, .v = 2, .chroma_h = 2, .chroma_v = 1},
    {.width = 97, .height = 61, .h = 2, .v = 2, .chroma_h = 2, .chroma_v = 2, .separate = true},
};

static void check_same_pixels(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
    PenPixels p = {0}, q = {0}, ref = {0};
    PenError err;
    CHECK_INT(pen__image_decode(a, a_bytes, limits, &p, &err), PEN_OK);
    CHECK_INT(pen__image_decode(b, b_bytes, limits, &q, &err), PEN_OK);
    CHECK_INT(reference_decode(b, b_bytes, &ref), 0);
    CHECK_INT(p.width, q.width);
    CHECK_INT(p.height, q.height);
    CHECK_INT(p.channels, q.channels);
    size_t n = (size_t)p.width * p.height * p.channels;
    CHECK_MEM(p.data, q.data, n);
    CHECK_MEM(p.data, ref.data, n);
    pen__pixels_free(&p);
    pen__pixels_free(&q);
    pen__pixels_free(&ref);
}

static void check_made(const PenBuf *source, bool as_libjpeg, PenBuf *made)
{
    const char *why = "";
    PenError err = {0};
    int r = pen__jpeg_baseline(source->data, source->bytes, limits, made, &why, &err);
    CHECK_STR(err.message, "");
    CHECK_STR(why, "");
    CHECK_INT(r, PEN_OK);
    check_same_pixels(source->data, source->bytes, made->data, made->bytes);
    CHECK_OK_SO_FAR();
    if (as_libjpeg) {
        PenBuf ref = {0};
        reference_transcode(source->data, source->bytes, 0, &ref);
        CHECK_INT(made->bytes, ref.bytes);
        CHECK_MEM(made->data, ref.data, ref.bytes);
        pen__buf_free(&ref);
    }
}

TEST(common_sampling_factors_are_taken_out)
{
    PenBuf source = {0}, made = {0};
    for (size_t i = 0; i < PEN_LEN(shared_factors); i++) {
        PenJpegInfo info;
        make_jpeg(&shared_factors[i], &source);
        check_made(&source, false, &made);
        CHECK_OK_SO_FAR();
        CHECK_INT(pen__jpeg_info(made.data, made.bytes, limits, &info, NULL), PEN_OK);
        CHECK_INT(info.h_samp[0], i == 2 ? 2 : 1);
        CHECK_INT(info.v_samp[0], i == 3 ? 2 : 1);
    }
    pen__buf_free(&made);
    pen__buf_free(&source);
}

/* The first `n` scans of a file, and EOI. */
static void cut_scans(PenBuf *b, int n)
{
    size_t at = find_marker_offset(b->data, b->bytes, 0xDA, n);
    b->bytes = at;
    pen__buf_add(b, "\xFF\xD9", 2);
}

TEST(incomplete_progressive_is_left)
{
    PenBuf source = {0};
    PenBuf t = {0};
    for (int n = 1; n < 10; n++) {
        const char *why = "";
        PenError err = {0};
        PenPixels p = {0};
        make_jpeg(&(JpegSpec){.width = 97, .height = 61, .progressive = true}, &source);
        cut_scans(&source, n);
        CHECK_INT(pen__jpeg_check(source.data, source.bytes, limits, &err), PEN_OK);
        CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, limits, &t, &why, &err), PEN_END);
        CHECK_STR(why, "incomplete progressive");
        CHECK_INT(pen__image_decode(source.data, source.bytes, limits, &p, &err), PEN_OK);
        pen__pixels_free(&p);
    }
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .separate = true}, &source);
    cut_scans(&source, 2);
    const char *why = "";
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, limits, &t, &why, NULL), PEN_END);
    CHECK_STR(why, "incomplete scans");
    pen__buf_free(&t);
    pen__buf_free(&source);
}

/* A DQT of 16-bit values in the place of the first; the pixels do not matter here. */
TEST(quantization_of_16_bits_is_left)
{
    PenBuf source = {0}, wide = {0};
    PenBuf t = {0};
    const char *why = "";
    make_jpeg(&(JpegSpec){.width = 97, .height = 61}, &source);
    size_t at = find_marker_offset(source.data, source.bytes, 0xDB, 0);
    pen__buf_add(&wide, source.data, at);
    pen__buf_add(&wide, "\xFF\xDB\x00\x83\x10", 5);
    for (size_t i = 0; i < 64; i++)
        pen__buf_add(&wide, i == 63 ? "\x01\x00" : "\x00\x07", 2);
    pen__buf_add(&wide, source.data + at + 69, source.bytes - at - 69);
    wide.data[find_marker_offset(wide.data, wide.bytes, 0xC0, 0) + 1] = 0xC1;
    CHECK_INT(pen__jpeg_baseline(wide.data, wide.bytes, limits, &t, &why, NULL), PEN_END);
    CHECK_STR(why, "quantization");
    wide.data[at + 5 + 126] = 0; /* 0x0100 becomes 0: it fits again */
    check_made(&wide, false, &t);
    CHECK_OK_SO_FAR();
    CHECK(find_marker_offset(t.data, t.bytes, 0xC0, 0));
    pen__buf_free(&t);
    pen__buf_free(&source);
    pen__buf_free(&wide);
}

TEST(truncated_is_an_error_everywhere)
{
    static const JpegSpec specs[] = {
        {.width = 190, .height = 140, .h = 2, .v = 2},
        {.width = 190, .height = 140, .channels = 1, .restart_interval = 3},
        {.width = 190, .height = 140, .progressive = true},
        {.width = 90, .height = 40, .channels = 4},
        {.width = 90, .height = 40, .arithmetic = true},
    };
    PenBuf source = {0};
    PenBuf t = {0};
    for (size_t i = 0; i < PEN_LEN(specs); i++) {
        make_jpeg(&specs[i], &source);
        for (size_t n = 3; n<source.bytes; n += n + 40> source.bytes || n < 40 ? 1 : 97) {
            PenPixels p = {0};
            PenError err = {0};
            const char *why;
            CHECK_INT(pen__image_decode(source.data, n, limits, &p, &err), PEN_E_DECODE);
            CHECK(p.data == NULL && strstr(err.message, "truncated"));
            CHECK_INT(pen__jpeg_baseline(source.data, n, limits, &t, &why, &err), PEN_E_DECODE);
            CHECK_INT(pen__image_check(source.data, n, limits, &err), PEN_E_DECODE);
        }
    }
    pen__buf_free(&t);
    pen__buf_free(&source);
}

TEST(bytes_behind_the_end_do_no_harm)
{
    static const char *const tails[] = {"\0", "x", "\xFF", "\xFF\xD8\xFF\xE0 another image"};
    PenBuf source = {0};
    PenBuf t = {0};
    for (size_t i = 0; i < PEN_LEN(tails); i++) {
        make_jpeg(&(JpegSpec){.width = 97, .height = 61, .h = 2}, &source);
        pen__buf_add(&source, tails[i], strlen(tails[i]) + 1);
        CHECK_INT(pen__image_check(source.data, source.bytes, limits, NULL), PEN_OK);
        check_made(&source, true, &t);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&t);
    pen__buf_free(&source);
}

/* Needless bytes that libjpeg only warns of: between the last MCU and EOI, and fill bytes. */
TEST(stray_bytes_before_a_marker_do_no_harm)
{
    static const char *const strays[] = {"\x12\x34\x56", "\xFF", "\xFF\xFF\xFF"};
    PenBuf source = {0};
    PenBuf t = {0};
    for (size_t i = 0; i < PEN_LEN(strays); i++) {
        make_jpeg(&(JpegSpec){.width = 97, .height = 61, .h = 2}, &source);
        source.bytes -= 2;
        pen__buf_add(&source, strays[i], strlen(strays[i]));
        pen__buf_add(&source, "\xFF\xD9", 2);
        check_made(&source, true, &t);
        CHECK_OK_SO_FAR();
    }
    pen__buf_free(&t);
    pen__buf_free(&source);
}

/* Whatever is done to a file: what is made of it shows what libjpeg shows of the source. */
TEST(damaged_files_are_refused_or_made_as_libjpeg_sees_them)
{
    static const JpegSpec specs[] = {
        {.width = 61, .height = 47, .h = 2, .v = 2},
        {.width = 61, .height = 47},
        {.width = 61, .height = 47, .channels = 1, .restart_interval = 4},
        {.width = 61, .height = 47, .progressive = true, .h = 2},
        {.width = 61, .height = 47, .optimal = true, .v = 2, .restart_interval = 3},
    };
    PenBuf source = {0}, damaged = {0};
    PenBuf t = {0};
    uint32_t state = 7;
    int made = 0, refused = 0, n = 0;
    for (size_t i = 0; i < PEN_LEN(specs); i++) {
        make_jpeg(&specs[i], &source);
        for (int k = 0; k < 1500; k++, n++) {
            damaged.bytes = 0;
            pen__buf_add(&damaged, source.data, source.bytes);
            for (int j = 0; j <= k % 3; j++) {
                state = state * 1664525u + 1013904223u;
                size_t at = 2 + (state >> 8) % (source.bytes - 2);
                damaged.data[at] ^= (uint8_t)(1u << (state >> 5) % 8);
            }
            const char *why = NULL;
            PenPixels p = {0}, q = {0};
            int r = pen__jpeg_baseline(damaged.data, damaged.bytes, limits, &t, &why, NULL);
            if (r != PEN_OK) {
                CHECK(r < 0 || why);
                refused += r < 0;
                continue;
            }
            made++;
            CHECK(reference_decode(damaged.data, damaged.bytes, &p) >= 0);
            CHECK_INT(reference_decode(t.data, t.bytes, &q), 0);
            CHECK_MEM(p.data, q.data, (size_t)p.width * p.height * p.channels);
            pen__pixels_free(&p);
            pen__pixels_free(&q);
        }
    }
    /* Both happen often, or this shows nothing. */
    CHECK(made > n / 20 && refused > n / 20);
    pen__buf_free(&t);
    pen__buf_free(&source);
    pen__buf_free(&damaged);
}

TEST(limits_are_errors_before_anything_is_allocated)
{
    PenBuf source = {0};
    PenBuf t = {0};
    PenPixels p = {0};
    PenError err;
    const char *why;
    make_jpeg(&(JpegSpec){.width = 200, .height = 100, .progressive = true}, &source);
    PenLimits pixels = *limits, memory = *limits, scans = *limits;
    pixels.max_pixels = 19999;
    CHECK_INT(pen__image_decode(source.data, source.bytes, &pixels, &p, &err), PEN_E_LIMIT);
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, &pixels, &t, &why, &err), PEN_E_LIMIT);
    CHECK(!t.data);
    pixels.max_pixels = 20000;
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, &pixels, &t, &why, &err), PEN_OK);
    memory.max_memory_bytes = 200 * 100 * 3; /* enough for the pixels, not for coefficients */
    CHECK_INT(pen__image_decode(source.data, source.bytes, &memory, &p, &err), PEN_E_LIMIT);
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, &memory, &t, &why, &err), PEN_E_LIMIT);
    scans.max_scans = 9; /* it has 10 */
    CHECK_INT(pen__image_check(source.data, source.bytes, &scans, &err), PEN_E_LIMIT);
    CHECK_INT(pen__image_decode(source.data, source.bytes, &scans, &p, &err), PEN_E_LIMIT);
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, &scans, &t, &why, &err), PEN_E_LIMIT);
    scans.max_scans = 10;
    CHECK_INT(pen__image_check(source.data, source.bytes, &scans, &err), PEN_OK);
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, &scans, &t, &why, &err), PEN_OK);
    /* A huge size in the header of a small file */
    size_t sof = find_marker_offset(source.data, source.bytes, 0xC2, 0);
    memset(source.data + sof + 5, 0xFF, 4);
    CHECK_INT(pen__image_decode(source.data, source.bytes, limits, &p, &err), PEN_E_LIMIT);
    CHECK_STR(err.message, "size: expected at most 67108864 pixels, found 65535 x 65535");
    pen__buf_free(&t);
    pen__buf_free(&source);
}

TEST(encode_gives_a_baseline_file)
{
    PenBuf b = {0}, again = {0};
    PenJpegHeader header;
    PenPixels p, q;
    PenError err;
    const char *why;
    for (uint32_t channels = 1; channels <= 3; channels += 2)
        for (int quality = 5; quality <= 100; quality += 19) {
            make_pixels(131, 77, channels, 3, &p);
            b.bytes = 0;
            CHECK_INT(pen__turbo_encode(&p, quality, limits, &b, &err), PEN_OK);
            CHECK_INT(pen__jpeg_header(b.data, b.bytes, limits, &header, &err), PEN_OK);
            CHECK_INT(pen__jpeg_quality(&header), quality);
            CHECK_INT(header.info.components, channels);
            CHECK_INT(header.info.restart_interval, 0);
            CHECK_INT(header.info.h_samp[0], channels == 3 ? 2 : 1);
            CHECK_INT(header.info.v_samp[0], channels == 3 ? 2 : 1);
            CHECK_INT(pen__image_decode(b.data, b.bytes, limits, &q, &err), PEN_OK);
            CHECK_INT(q.channels, channels);
            /* Tables are optimal already, so that transcoding it changes nothing. */
            CHECK_INT(pen__jpeg_baseline(b.data, b.bytes, limits, &again, &why, &err), PEN_OK);
            CHECK_INT(again.bytes, b.bytes);
            CHECK_MEM(again.data, b.data, b.bytes);
            pen__pixels_free(&p);
            pen__pixels_free(&q);
        }
    make_pixels(8, 8, 4, 3, &p);
    CHECK_INT(pen__turbo_encode(&p, 90, limits, &b, &err), PEN_E_INVALID);
    p.channels = 3;
    CHECK_INT(pen__turbo_encode(&p, 0, limits, &b, &err), PEN_E_INVALID);
    CHECK_INT(pen__turbo_encode(&p, 101, limits, &b, &err), PEN_E_INVALID);
    pen__pixels_free(&p);
    pen__buf_free(&b);
    pen__buf_free(&again);
}

TEST(segments_refuse_what_is_not_tiled)
{
    PenBuf source = {0}, bad = {0};
    TiledJpeg t = {0};
    uint32_t head, n, *lengths = NULL;
    make_jpeg(&(JpegSpec){.width = 211, .height = 97, .h = 2, .v = 2}, &source);
    CHECK_INT(pen__jpeg_segments(source.data, source.bytes, limits, &head, &lengths, &n, NULL),
              PEN_E_DECODE);
    CHECK_INT(tile_jpeg(source.data, source.bytes, &t), PEN_OK);
    const PenBuf *good = &t.jpeg;
    for (size_t cut = good->bytes - 1; cut > t.head_bytes; cut -= 97)
        CHECK_INT(pen__jpeg_segments(good->data, cut, limits, &head, &lengths, &n, NULL),
                  PEN_E_DECODE);
    pen__buf_add(&bad, good->data, good->bytes);
    pen__buf_add(&bad, "x", 1); /* one byte too many */
    CHECK_INT(pen__jpeg_segments(bad.data, bad.bytes, limits, &head, &lengths, &n, NULL),
              PEN_E_DECODE);
    bad.bytes--;
    bad.data[t.head_bytes + t.segment_bytes[0] - 1] = 0xD3; /* a restart out of turn */
    CHECK_INT(pen__jpeg_segments(bad.data, bad.bytes, limits, &head, &lengths, &n, NULL),
              PEN_E_DECODE);
    CHECK(lengths == NULL);
    tiled_free(&t);
    pen__buf_free(&source);
    pen__buf_free(&bad);
}

TEST(geometry_counts_mcus_straight_through)
{
    PenTileGeometry g;
    PenJpegInfo info = {
        .width = 97, .height = 61, .components = 3, .h_samp = {2, 1, 1}, .v_samp = {2, 1, 1}};
    pen__tile_geometry(&info, &g);
    CHECK_INT(g.mcu_width, 16);
    CHECK_INT(g.mcus_x, 7);
    CHECK_INT(g.mcus_y, 4);
    CHECK_INT(g.n_segments, 4); /* 28 MCUs */
    info = (PenJpegInfo){.width = 97, .height = 61, .components = 1, .h_samp = {2}, .v_samp = {2}};
    pen__tile_geometry(&info, &g);
    CHECK_INT(g.mcu_height, 8);
    CHECK_INT(g.n_segments, 13); /* 13 x 8 */
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(common_sampling_factors_are_taken_out);
    RUN(incomplete_progressive_is_left);
    RUN(quantization_of_16_bits_is_left);
    RUN(truncated_is_an_error_everywhere);
    RUN(bytes_behind_the_end_do_no_harm);
    RUN(stray_bytes_before_a_marker_do_no_harm);
    RUN(damaged_files_are_refused_or_made_as_libjpeg_sees_them);
    RUN(limits_are_errors_before_anything_is_allocated);
    RUN(encode_gives_a_baseline_file);
    RUN(segments_refuse_what_is_not_tiled);
    RUN(geometry_counts_mcus_straight_through);
    return TEST_END();
}
