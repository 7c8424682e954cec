/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation made to fail, once and for ever after: PEN_E_NO_MEMORY or the right result, and
 * nothing left behind. */
#include "base/attr.h"
#include "codec/jpeg/decoder/scan.h"
#include "codec/jpeg/metadata.h"
#include "codec/jpeg/transcode/baseline.h"
#include "codec/jpeg/turbo/turbo.h"
#include "codec/region/region.h"
#include "codec_images.h"
#include "dsp/resample.h"
#include "fault_sweep.h"
#include "lib/fault_sys.h"
#include "lib/tiled_jpeg.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;

static PenBuf baseline, progressive, cmyk, png, mask;

static int do_decode(const PenBuf *b, PenError *err)
{
    PenPixels p = {0};
    int r = pen__image_decode(b->data, b->bytes, limits, &p, err);
    pen__pixels_free(&p);
    return r;
}

static int convert_progressive(PenError *err)
{
    PenBuf b = {0};
    const char *why;
    int r = pen__jpeg_baseline(progressive.data, progressive.bytes, limits, &b, &why, err);
    pen__buf_free(&b);
    return r;
}

static int decode_baseline(PenError *err)
{
    return do_decode(&baseline, err);
}

static int decode_cmyk(PenError *err)
{
    return do_decode(&cmyk, err);
}

static int decode_png(PenError *err)
{
    return do_decode(&png, err);
}

static int decode_mask(PenError *err)
{
    PenPixels p = {0};
    int r = pen__mask_decode(mask.data, mask.bytes, limits, &p, err);
    pen__pixels_free(&p);
    return r;
}

static uint8_t picture[64 * 48 * 3];
static const PenPixels pixels = {.data = picture, .width = 64, .height = 48, .channels = 3};

static int encode_jpeg(PenError *err)
{
    PenBuf b = {0};
    int r = pen__turbo_encode(&pixels, 90, limits, &b, err);
    pen__buf_free(&b);
    return r;
}

static int encode_png(PenError *err)
{
    PenBuf b = {0};
    int r = pen__png_encode(&pixels, &b, err);
    pen__buf_free(&b);
    return r;
}

static int encode_webp(PenError *err)
{
    PenBuf b = {0};
    int r = pen__webp_encode(&pixels, 90, limits, &b, err);
    pen__buf_free(&b);
    return r;
}

static int encode_gray_webp(PenError *err)
{
    PenPixels gray = {.data = picture, .width = 64, .height = 48, .channels = 1};
    PenBuf b = {0};
    int r = pen__webp_encode(&gray, 90, limits, &b, err);
    pen__buf_free(&b);
    return r;
}

static int metadata(PenError *err)
{
    PenBuf meta = {0}, with = {0};
    int r = pen__jpeg_metadata(baseline.data, baseline.bytes, &meta, err);
    if (r == PEN_OK)
        r = pen__jpeg_with_metadata(baseline.data, baseline.bytes, meta.data, meta.bytes, &with,
                                    err);
    pen__buf_free(&meta);
    pen__buf_free(&with);
    return r;
}

static int resample(PenError *err)
{
    uint8_t out[31 * 17 * 3];
    PenRaster from = {picture, 64, 48, 3}, to = {out, 31, 17, 3};
    int r = pen__raster_resample(&from, &to, PEN_FILTER_BILINEAR, err);
    return r < 0 ? r : pen__raster_resample(&from, &to, PEN_FILTER_NEAREST, err);
}

static int ignore_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    (void)ctx, (void)rows, (void)stride, (void)n, (void)reterr;
    return PEN_OK;
}

/* With a new decoder, so that nothing is there yet; the second image is to come out all the same.
 */
static int do_region(const PenEncoded *e, PenError *err)
{
    PenDecoder *d = NULL;
    PenRegion region = {.box = {e->width - 30, e->height - 20, 30, 20},
                        .colour = PEN_COLOUR_GREY,
                        .limits = limits,
                        .rows = ignore_rows};
    int r = pen__decoder_new(&d, err);
    if (r == PEN_OK)
        r = pen__region_decode(d, e, &region, err);
    if (r == PEN_E_NO_MEMORY && d && !fault_is_for_ever() &&
        pen__region_decode(d, e, &region, NULL))
        r = PEN_E_INVALID;
    pen__decoder_free(&d);
    return r;
}

static TiledJpeg tiled;

static int region_tiled(PenError *err)
{
    PenEncoded e = {.data = tiled.jpeg.data,
                    .bytes = tiled.jpeg.bytes,
                    .width = 250,
                    .height = 140,
                    .codec = PEN_STORED_JPEG,
                    .tiled = 1,
                    .head_bytes = tiled.head_bytes,
                    .end_segment = tiled.n_segments,
                    .segment_bytes = tiled.segment_bytes};
    return do_region(&e, err);
}

static int region_indexed(PenError *err)
{
    PenEntryScan *scan = NULL;
    PenJpegHeader h;
    PenJpegEntries found, index;
    PenBuf coded = {0}, entries = {0};
    const char *why;
    int r = pen__jpeg_header(baseline.data, baseline.bytes, limits, &h, err);
    if (r == PEN_OK)
        r = pen__entry_scan_new(&scan, err);
    if (r == PEN_OK)
        r = pen__entry_scan(scan, &h, baseline.data, baseline.bytes, 8, &found, &why, err);
    if (r == PEN_OK)
        r = pen__entries_write(&found, &coded, err);
    if (r == PEN_OK)
        r = pen__entries_parse(coded.data, coded.bytes, &found.plan, found.scan_bytes, &entries,
                               &index, err);
    PenEncoded e = {.data = baseline.data,
                    .bytes = baseline.bytes,
                    .width = 97,
                    .height = 61,
                    .codec = PEN_STORED_JPEG,
                    .head_bytes = (uint32_t)h.info.head_bytes,
                    .entries = &index};
    if (r == PEN_OK)
        r = do_region(&e, err);
    pen__entry_scan_free(&scan);
    pen__buf_free(&coded);
    pen__buf_free(&entries);
    return r;
}

static int region_png(PenError *err)
{
    PenEncoded e = {
        .data = png.data, .bytes = png.bytes, .width = 64, .height = 48, .codec = PEN_STORED_PNG};
    return do_region(&e, err);
}

TEST(every_allocation_may_fail)
{
    static int (*const runs[])(PenError * err) = {
        decode_baseline, decode_cmyk,      decode_png, decode_mask,
        encode_jpeg,     encode_png,       metadata,   resample,
        region_tiled,    region_indexed,   region_png, convert_progressive,
        encode_webp,     encode_gray_webp,
    };
    int points = 0;
    make_jpeg(&(JpegSpec){.width = 250, .height = 140, .h = 2, .v = 2}, &baseline);
    CHECK_INT(tile_jpeg(baseline.data, baseline.bytes, &tiled), PEN_OK);
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .h = 2, .v = 2, .orientation = 2}, &baseline);
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .progressive = true}, &progressive);
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .channels = 4}, &cmyk);
    for (size_t i = 0; i < sizeof picture; i++)
        picture[i] = (uint8_t)(i * i >> 5);
    CHECK_INT(pen__png_encode(&pixels, &png, NULL), PEN_OK);
    CHECK_INT(
        pen__png_encode(&(PenPixels){.data = picture, .width = 64, .height = 48, .channels = 1},
                        &mask, NULL),
        PEN_OK);
    for (size_t i = 0; i < PEN_LEN(runs); i++) {
        int n = 0;
        fault_sweep(runs[i], &n);
        CHECK_OK_SO_FAR();
        CHECK(n > 0);
        points += n;
    }
    printf("faults: %d points\n", points);
    pen__buf_free(&baseline);
    pen__buf_free(&progressive);
    pen__buf_free(&cmyk);
    pen__buf_free(&png);
    pen__buf_free(&mask);
    tiled_free(&tiled);
}

TEST(a_small_file_of_a_huge_image_allocates_nothing)
{
    PenBuf b = {0};
    TiledJpeg t = {0};
    uint32_t head, n, *lengths;
    make_jpeg(&(JpegSpec){.width = 97, .height = 61, .restart_interval = 8}, &b);
    CHECK_INT(tile_jpeg(b.data, b.bytes, &t), PEN_OK);
    size_t sof = find_marker_offset(t.jpeg.data, t.jpeg.bytes, 0xC0, 0);
    memcpy(t.jpeg.data + sof + 5, "\x1F\x00\x1F\x00", 4); /* 7936 x 7936 */
    fault_begin(&(FaultPlan){.at = 0});
    int r = pen__jpeg_segments(t.jpeg.data, t.jpeg.bytes, limits, &head, &lengths, &n, NULL);
    FaultSeen seen = fault_end();
    CHECK_INT(r, PEN_E_DECODE);
    CHECK_INT(seen.calls, 0);
    tiled_free(&t);
    pen__buf_free(&b);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(every_allocation_may_fail);
    RUN(a_small_file_of_a_huge_image_allocates_nothing);
    return TEST_END();
}
