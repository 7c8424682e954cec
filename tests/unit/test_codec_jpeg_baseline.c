/* SPDX-License-Identifier: Apache-2.0 */
/* Baseline files made of files with several scans: the same pixels, and an entry index. */
#include "base/attr.h"
#include "codec/jpeg/decoder/scan.h"
#include "codec/jpeg/markers.h"
#include "codec/jpeg/transcode/baseline.h"
#include "codec_images.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;
static PenError err;

static const JpegSpec convertible[] = {
    {.width = 1, .height = 1, .progressive = true},
    {.width = 1, .height = 1, .channels = 1, .progressive = true},
    {.width = 97, .height = 61, .progressive = true},
    {.width = 97, .height = 61, .channels = 1, .progressive = true},
    {.width = 97, .height = 61, .h = 2, .progressive = true},
    {.width = 97, .height = 61, .v = 2, .progressive = true},
    {.width = 97, .height = 61, .h = 2, .v = 2, .progressive = true},
    {.width = 128, .height = 64, .h = 2, .v = 2, .progressive = true},
    {.width = 200, .height = 133, .h = 2, .v = 2, .quality = 100, .progressive = true},
    {.width = 133, .height = 200, .h = 2, .v = 2, .quality = 3, .progressive = true},
    {.width = 97, .height = 61, .h = 2, .v = 2, .restart_interval = 5, .progressive = true},
    {.width = 97, .height = 61, .h = 2, .v = 2, .orientation = 6, .progressive = true},
    {.width = 97, .height = 61, .separate = true},
    {.width = 97, .height = 61, .h = 2, .v = 2, .separate = true},
    {.width = 97, .height = 61, .h = 2, .v = 2, .restart_interval = 7, .separate = true},
    {.width = 97, .height = 61, .h = 2, .v = 2}, /* one scan: as it could be */
};

static const struct {
    JpegSpec spec;
    const char *why;
} kept[] = {
    {{.width = 97, .height = 61, .arithmetic = true, .progressive = true}, "arithmetic"},
    {{.width = 97, .height = 61, .channels = 4, .progressive = true}, "CMYK"},
    {{.width = 97, .height = 61, .channels = 4, .ycck = true, .progressive = true}, "CMYK"},
    {{.width = 97, .height = 61, .rgb = true, .progressive = true}, "not YCbCr"},
    {{.width = 97, .height = 61, .h = 4, .progressive = true}, "sampling"},
};

static void check_same_pixels(const PenBuf *a, const PenBuf *b)
{
    PenPixels p = {0}, q = {0};
    CHECK_INT(reference_decode(a->data, a->bytes, &p), 0);
    CHECK_INT(reference_decode(b->data, b->bytes, &q), 0);
    CHECK_INT(p.width, q.width);
    CHECK_INT(p.height, q.height);
    CHECK_INT(p.channels, q.channels);
    CHECK_MEM(p.data, q.data, (size_t)p.width * p.height * p.channels);
    pen__pixels_free(&p);
    pen__pixels_free(&q);
}

/* Baseline with one scan and no restart markers; a large one gets an entry index. */
static void check_indexable(PenEntryScan *scan, const PenBuf *b)
{
    PenJpegHeader header;
    PenJpegEntries found;
    const char *why = NULL;
    CHECK_INT(pen__jpeg_header(b->data, b->bytes, limits, &header, &err), PEN_OK);
    CHECK_INT(header.info.sof, PEN_MARKER_SOF0);
    CHECK_INT(header.info.scan_components, header.info.components);
    CHECK_INT(header.info.restart_interval, 0);
    int r = pen__entry_scan(scan, &header, b->data, b->bytes, pen__entry_unit(&header.info), &found,
                            &why, &err);
    CHECK_INT(r, header.info.width == 1 ? PEN_END : PEN_OK);
    if (r == PEN_END)
        CHECK_STR(why, "small");
}

TEST(baseline_keeps_pixels_and_is_what_libjpeg_writes)
{
    PenBuf source = {0}, made = {0}, ref = {0};
    PenEntryScan *scan = NULL;
    CHECK_INT(pen__entry_scan_new(&scan, &err), PEN_OK);
    for (size_t i = 0; i < PEN_LEN(convertible); i++) {
        const char *why = "";
        make_jpeg(&convertible[i], &source);
        CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, limits, &made, &why, &err), PEN_OK);
        CHECK_STR(why, "");
        check_same_pixels(&source, &made);
        CHECK_OK_SO_FAR();
        check_indexable(scan, &made);
        CHECK_OK_SO_FAR();
        reference_transcode(source.data, source.bytes, 0, &ref);
        CHECK_INT(made.bytes, ref.bytes);
        CHECK_MEM(made.data, ref.data, ref.bytes);
    }
    pen__entry_scan_free(&scan);
    pen__buf_free(&source);
    pen__buf_free(&made);
    pen__buf_free(&ref);
}

/* The end of a segment of 8 MCUs falls on every bit of a byte. */
TEST(baseline_of_every_small_size)
{
    PenBuf source = {0}, made = {0}, ref = {0};
    for (uint32_t w = 1; w <= 82; w += 3)
        for (int s = 0; s < 4; s++) {
            const char *why = "";
            JpegSpec spec = {.width = w, .height = 83 - w, .h = 1 + s % 2, .v = 1 + s / 2};
            spec.progressive = true;
            make_jpeg(&spec, &source);
            CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, limits, &made, &why, &err),
                      PEN_OK);
            reference_transcode(source.data, source.bytes, 0, &ref);
            CHECK_INT(made.bytes, ref.bytes);
            CHECK_MEM(made.data, ref.data, ref.bytes);
        }
    pen__buf_free(&source);
    pen__buf_free(&made);
    pen__buf_free(&ref);
}

TEST(baseline_leaves_what_it_cannot_do_exactly)
{
    PenBuf source = {0}, made = {0};
    for (size_t i = 0; i < PEN_LEN(kept); i++) {
        const char *why = "";
        make_jpeg(&kept[i].spec, &source);
        CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, limits, &made, &why, &err),
                  PEN_END);
        CHECK_STR(why, kept[i].why);
        CHECK_INT(pen__jpeg_baseline(source.data, source.bytes * 2 / 3, limits, &made, &why, &err),
                  PEN_E_DECODE);
    }
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .progressive = true}, &source);
    const char *why = "";
    source.data[find_marker_offset(source.data, source.bytes, 0xC2, 0) + 4] = 12;
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, limits, &made, &why, &err), PEN_END);
    CHECK_STR(why, "12 bit");
    pen__buf_free(&source);
    pen__buf_free(&made);
}

/* Coefficients of the complete image, and the number of scans. */
TEST(baseline_has_limits)
{
    PenBuf source = {0}, made = {0};
    const char *why = "";
    make_jpeg(&(JpegSpec){.width = 512, .height = 512, .progressive = true}, &source);
    PenLimits small = *limits, few = *limits, tiny = *limits;
    small.max_memory_bytes = 1 << 20; /* coefficients take 1.5 MiB */
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, &small, &made, &why, &err),
              PEN_E_LIMIT);
    few.max_scans = 3;
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, &few, &made, &why, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "scans"));
    tiny.max_pixels = 1000;
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, &tiny, &made, &why, &err), PEN_E_LIMIT);
    CHECK_INT(pen__jpeg_baseline(source.data, source.bytes, limits, &made, &why, &err), PEN_OK);
    pen__buf_free(&source);
    pen__buf_free(&made);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(baseline_keeps_pixels_and_is_what_libjpeg_writes);
    RUN(baseline_of_every_small_size);
    RUN(baseline_leaves_what_it_cannot_do_exactly);
    RUN(baseline_has_limits);
    return TEST_END();
}
