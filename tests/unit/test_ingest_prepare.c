/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "base/attr.h"
#include "codec/jpeg/metadata.h"
#include "codec_images.h"
#include "ingest/prepare/prepare.h"
#include "test.h"

static PenPrepareSettings settings;
static PenError err;

static void ask(int mode)
{
    settings = (PenPrepareSettings){
        .mode = mode, .quality = 90, .index = 1, .limits = pen__limits_default};
}

static void make_file(const JpegSpec *spec, PenBuf *file)
{
    make_jpeg(spec, file);
    CHECK_INT(pen__buf_reserve(file, PEN_SLACK), PEN_OK);
}

/* Prepares a file whose memory stays the caller's. */
static int prepare(const PenBuf *file, size_t bytes, PenPreparedImage *p)
{
    *p = (PenPreparedImage){.source = {.data = file->data, .bytes = bytes, .cap = file->cap}};
    return pen__prepare_image(&settings, (const uint8_t *)"key", 3, 0, p, &err);
}

static void drop(PenPreparedImage *p)
{
    p->source = (PenBuf){0};
    pen__prepared_image_free(p);
}

/* The parts of a file follow each other, up to what is behind its end. */
static void check_parts(const PenPreparedImage *p, size_t tail_bytes)
{
    const PenStoredEntries *e = &p->image.entries;
    CHECK(e->plan.n_entries > 1 && e->coded_bytes >= 2 * (e->plan.n_entries - 1));
    CHECK(e->lead_bytes >= 2 && e->head_bytes > e->lead_bytes);
    CHECK_INT(e->head_bytes + e->scan_bytes + tail_bytes, p->image.bytes);
    CHECK_INT(p->image.data[e->lead_bytes], 0xFF);
    CHECK_INT(p->image.data[e->head_bytes + e->scan_bytes], 0xFF);
    CHECK_INT(p->image.data[e->head_bytes + e->scan_bytes + 1], 0xD9);
}

TEST(kept_files_are_described)
{
    PenBuf file = {0};
    PenPreparedImage p;
    ask(PEN_MODE_KEEP);
    make_file(&(JpegSpec){.width = 97, .height = 61, .h = 2, .v = 1}, &file);
    CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
    CHECK_INT(p.image.how, PEN_HOW_INDEXED);
    CHECK(p.image.data == file.data && !p.no_index);
    CHECK_INT(p.image.entries.h_samp, 2);
    CHECK_INT(p.image.entries.v_samp, 1);
    CHECK_INT(p.image.entries.plan.unit, 12);
    check_parts(&p, 2);
    drop(&p);
    make_file(&(JpegSpec){.width = 97, .height = 61, .channels = 1}, &file);
    CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
    CHECK_INT(p.image.entries.h_samp, 1);
    CHECK_INT(p.image.entries.plan.unit, 48);
    check_parts(&p, 2);
    drop(&p);
    pen__buf_free(&file);
}

/* The numbers of a table have 32 bits. What follows the image is not read. */
TEST(files_of_4_gib_have_no_index)
{
    const size_t bytes = ((size_t)4 << 30) + PEN_SLACK;
    PenBuf file = {0};
    PenPreparedImage p;
    uint8_t *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        SKIP("4 GiB of addresses are not to be had");
    ask(PEN_MODE_KEEP);
    make_file(&(JpegSpec){.width = 97, .height = 61}, &file);
    memcpy(data, file.data, file.bytes);
    PenBuf large = {.data = data, .bytes = bytes, .cap = bytes};
    CHECK_INT(prepare(&large, (size_t)4 << 30, &p), PEN_OK);
    CHECK_INT(p.image.how, PEN_HOW_KEPT);
    CHECK_STR(p.no_index, "over 4 GiB");
    CHECK_INT(p.image.entries.plan.n_entries, 0);
    drop(&p);
    CHECK_INT(prepare(&large, file.bytes + 5, &p), PEN_OK);
    CHECK_INT(p.image.how, PEN_HOW_INDEXED);
    check_parts(&p, 2 + 5);
    drop(&p);
    munmap(data, bytes);
    pen__buf_free(&file);
}

static void check_metadata(const PenPreparedImage *p, const PenBuf *file)
{
    PenBuf meta = {0};
    CHECK_INT(pen__jpeg_metadata(file->data, file->bytes, &meta, &err), PEN_OK);
    CHECK(meta.bytes > 0);
    CHECK_INT(p->image.meta_bytes, meta.bytes);
    CHECK_MEM(p->image.meta, meta.data, meta.bytes);
    pen__buf_free(&meta);
}

TEST(files_of_several_scans_are_converted)
{
    static const JpegSpec specs[] = {
        {.width = 97, .height = 61, .h = 2, .v = 2, .progressive = true, .orientation = 6},
        {.width = 97, .height = 61, .h = 2, .v = 2, .separate = true, .orientation = 3},
    };
    PenBuf file = {0};
    PenPreparedImage p;
    for (size_t i = 0; i < PEN_LEN(specs); i++) {
        make_file(&specs[i], &file);
        ask(PEN_MODE_KEEP);
        CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
        CHECK_INT(p.image.how, PEN_HOW_KEPT);
        CHECK_STR(p.no_index, i ? "several scans" : "progressive");
        drop(&p);
        settings.progressive = PEN_PROGRESSIVE_CONVERT;
        CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
        CHECK_INT(p.image.how, PEN_HOW_CONVERTED);
        CHECK(p.image.data == p.encoded.data && !p.no_index);
        CHECK_INT(p.image.source_bytes, file.bytes);
        CHECK_INT(p.image.orientation, specs[i].orientation);
        check_parts(&p, 2);
        check_metadata(&p, &file);
        drop(&p);
    }
    pen__buf_free(&file);
}

/* What cannot be converted is kept, and the reason is not that it is progressive. */
TEST(other_files_are_not_converted)
{
    static const struct {
        JpegSpec spec;
        const char *why;
    } cases[] = {
        {{.width = 97, .height = 61, .channels = 4, .progressive = true}, "CMYK"},
        {{.width = 97, .height = 61, .arithmetic = true, .progressive = true}, "arithmetic"},
        {{.width = 60, .height = 8, .progressive = true}, "small"},
        {{.width = 97, .height = 61, .h = 4}, "sampling"},
    };
    PenBuf file = {0};
    PenPreparedImage p;
    ask(PEN_MODE_KEEP);
    settings.progressive = PEN_PROGRESSIVE_CONVERT;
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        make_file(&cases[i].spec, &file);
        CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
        CHECK_INT(p.image.how, PEN_HOW_KEPT);
        CHECK(p.image.data == file.data && !p.encoded.data);
        CHECK_STR(p.no_index, cases[i].why);
        drop(&p);
    }
    make_file(&(JpegSpec){.width = 97, .height = 61, .progressive = true}, &file);
    CHECK_INT(prepare(&file, file.bytes - 20, &p), PEN_E_DECODE);
    drop(&p);
    settings.limits.max_scans = 3;
    CHECK_INT(prepare(&file, file.bytes, &p), PEN_E_LIMIT);
    drop(&p);
    pen__buf_free(&file);
}

TEST(conversion_needs_mode_keep_with_an_index)
{
    ask(PEN_MODE_KEEP);
    settings.progressive = PEN_PROGRESSIVE_CONVERT;
    CHECK_INT(pen__prepare_settings_check(&settings, &err), PEN_OK);
    settings.index = 0;
    CHECK_INT(pen__prepare_settings_check(&settings, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "no_index"));
    ask(PEN_MODE_ENCODE);
    settings.progressive = PEN_PROGRESSIVE_CONVERT;
    CHECK_INT(pen__prepare_settings_check(&settings, &err), PEN_E_INVALID);
    settings.progressive = 2;
    CHECK_INT(pen__prepare_settings_check(&settings, &err), PEN_E_INVALID);
}

/* In mode encode: files of lower quality, converted ones, small ones, and what --no-index gives. */
TEST(encoded_files_need_no_index)
{
    static const struct {
        JpegSpec spec;
        int quality, how, how_plain; /* that is asked for, with an index, without */
        const char *why;
    } cases[] = {
        {{.width = 97, .height = 61}, 90, PEN_HOW_KEPT_QUALITY, PEN_HOW_KEPT, NULL},
        {{.width = 97, .height = 61, .progressive = true},
         90,
         PEN_HOW_CONVERTED,
         PEN_HOW_KEPT,
         NULL},
        {{.width = 97, .height = 61, .channels = 4}, 90, PEN_HOW_KEPT, PEN_HOW_KEPT, "CMYK"},
        {{.width = 60, .height = 8}, 90, PEN_HOW_KEPT, PEN_HOW_KEPT, "small"},
        {{.width = 97, .height = 61, .progressive = true},
         60,
         PEN_HOW_ENCODED,
         PEN_HOW_ENCODED,
         NULL},
        {{.width = 60, .height = 8}, 60, PEN_HOW_ENCODED, PEN_HOW_ENCODED, "small"},
    };
    PenBuf file = {0};
    PenPreparedImage p;
    for (size_t i = 0; i < PEN_LEN(cases) * 2; i++) {
        size_t n = i / 2;
        ask(PEN_MODE_ENCODE);
        settings.quality = cases[n].quality;
        settings.index = i % 2 == 0;
        make_file(&cases[n].spec, &file);
        CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
        CHECK_INT(p.image.how, settings.index ? cases[n].how : cases[n].how_plain);
        CHECK_STR(p.no_index ? p.no_index : "", settings.index && cases[n].why ? cases[n].why : "");
        CHECK_INT(p.image.entries.plan.n_entries > 0, settings.index && !cases[n].why);
        CHECK_INT(p.image.segments.n_segments, 0);
        CHECK_INT(p.image.data == file.data,
                  p.image.how == PEN_HOW_KEPT || p.image.how == PEN_HOW_KEPT_QUALITY);
        drop(&p);
    }
    pen__buf_free(&file);
}

static void check_webp(const PenPreparedImage *p, uint32_t width, uint32_t height)
{
    PenPixels pixels;
    CHECK_INT(p->image.codec, PEN_STORED_WEBP);
    CHECK_INT(p->image.how, PEN_HOW_ENCODED);
    CHECK_INT(p->image.channels, 3);
    CHECK_INT(p->image.entries.plan.n_entries, 0);
    CHECK_INT(p->image.meta_bytes, 0);
    CHECK_INT(pen__image_decode(p->image.data, p->image.bytes, &settings.limits, &pixels, &err),
              PEN_OK);
    CHECK_INT(pixels.width, width);
    CHECK_INT(pixels.height, height);
    CHECK_INT(pixels.channels, 3);
    pen__pixels_free(&pixels);
}

/* JPEGs of this quality or lower stay, as with the other codec. */
TEST(encodes_webp)
{
    PenBuf file = {0};
    PenPreparedImage p;
    for (int gray = 0; gray < 2; gray++) {
        ask(PEN_MODE_ENCODE);
        settings.codec = PEN_ENCODING_WEBP;
        make_file(
            &(JpegSpec){.width = 97, .height = 61, .channels = gray ? 1 : 3, .orientation = 6},
            &file);
        CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
        CHECK_INT(p.image.how, PEN_HOW_KEPT_QUALITY);
        drop(&p);
        settings.max_side = 50;
        CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
        CHECK_INT(p.image.orientation, 6);
        check_webp(&p, 50, 31);
        drop(&p);
        settings.max_side = 0;
        settings.quality = 60;
        CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
        check_webp(&p, 97, 61);
        drop(&p);
    }
    settings.codec = 2;
    CHECK_INT(pen__prepare_settings_check(&settings, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "codec 2: expected 0 or 1"));
    pen__buf_free(&file);
}

/* The threshold is the last size that is raw, and the resized image counts. */
TEST(small_images_are_raw)
{
    PenBuf file = {0};
    PenPreparedImage p;
    ask(PEN_MODE_SMART);
    settings.quality = 60;
    make_file(&(JpegSpec){.width = 97, .height = 61}, &file);
    for (int i = 0; i < 2; i++) {
        settings.smart_threshold = 97 * 61 * 3 - (uint64_t)i;
        CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
        CHECK_INT(p.image.how, i ? PEN_HOW_ENCODED : PEN_HOW_RAW);
        CHECK_INT(p.image.codec, i ? PEN_STORED_JPEG : PEN_STORED_RAW);
        drop(&p);
    }
    settings.max_side = 96;
    CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
    CHECK_INT(p.image.how, PEN_HOW_RAW);
    CHECK_INT(p.image.width, 96);
    drop(&p);
    settings.smart_threshold = 100;
    settings.codec = PEN_ENCODING_WEBP;
    CHECK_INT(prepare(&file, file.bytes, &p), PEN_OK);
    check_webp(&p, 96, 60);
    drop(&p);
    pen__buf_free(&file);
}

/* Frames of a video come as pixels. */
TEST(frames_are_encoded_by_size)
{
    uint8_t pixels[16 * 8 * 3] = {0};
    const PenPixels frame = {pixels, 16, 8, 3};
    PenPreparedImage p = {0};
    ask(PEN_MODE_SMART);
    settings.codec = PEN_ENCODING_WEBP;
    for (int i = 0; i < 2; i++) {
        settings.smart_threshold = sizeof pixels - (size_t)i;
        CHECK_INT(pen__prepare_pixels(&settings, (const uint8_t *)"key", 3, &frame, &p, &err),
                  PEN_OK);
        CHECK_INT(p.image.codec, i ? PEN_STORED_WEBP : PEN_STORED_RAW);
        pen__prepared_image_free(&p);
    }
}

TEST(tiles_are_not_written)
{
    ask(PEN_MODE_TILE);
    CHECK_INT(pen__prepare_settings_check(&settings, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "use the mode keep (the default) or encode"));
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(kept_files_are_described);
    RUN(files_of_4_gib_have_no_index);
    RUN(files_of_several_scans_are_converted);
    RUN(other_files_are_not_converted);
    RUN(conversion_needs_mode_keep_with_an_index);
    RUN(encoded_files_need_no_index);
    RUN(encodes_webp);
    RUN(small_images_are_raw);
    RUN(frames_are_encoded_by_size);
    RUN(tiles_are_not_written);
    return TEST_END();
}
