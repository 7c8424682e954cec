/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of regions: the crop of the whole image, byte for byte, or an error. */
#include "codec/region.h"

#include <spng.h>
#include <webp/encode.h>

#include "codec_images.h"
#include "region_help.h"
#include "test.h"

static const PenLimits *const limits = &pen__limits_default;
static const int32_t colours[] = {PEN_COLOUR_RGB, PEN_COLOUR_GREY};
static PenDecoder *decoder; /* one for all tests, so that what one leaves behind meets the next */
static Collected found;

static uint32_t dice_state = 1;
static uint32_t dice(uint32_t below)
{
    dice_state = dice_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)dice_state * below >> 32);
}

static PenBox random_box(uint32_t width, uint32_t height)
{
    PenBox b = {.w = 1 + dice(width), .h = 1 + dice(height)};
    b.x = dice(width - b.w + 1);
    b.y = dice(height - b.h + 1);
    return b;
}

/* All of it, single pixels and thin strips at the edges, then chance. */
static PenBox nth_box(uint32_t n, uint32_t width, uint32_t height)
{
    uint32_t right = width - 1, bottom = height - 1;
    PenBox fixed[] = {
        {0, 0, width, height}, {0, 0, 1, 1},
        {right, 0, 1, 1},      {0, bottom, 1, 1},
        {right, bottom, 1, 1}, {0, 0, width, 1},
        {0, bottom, width, 1}, {0, 0, 1, height},
        {right, 0, 1, height}, {right / 2, bottom / 2, width - right / 2, height - bottom / 2},
    };
    return n < PEN_LEN(fixed) ? fixed[n] : random_box(width, height);
}

static void check_box(const PenEncoded *e, const PenPixels *whole, PenBox box, int32_t colour)
{
    PenError err = {0};
    int r = find_region(decoder, e, box, colour, &found, &err);
    if (r < 0)
        printf("%s\n", err.message);
    CHECK_INT(r, PEN_OK);
    size_t different = count_different(whole, box, colour, &found);
    if (different)
        printf("%u x %u: box %u, %u, %u x %u, colour %d\n", e->width, e->height, box.x, box.y,
               box.w, box.h, colour);
    CHECK_INT(different, 0);
}

static void check_boxes(const PenEncoded *e, const PenPixels *whole, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        check_box(e, whole, nth_box(i, e->width, e->height), colours[i % 2]);
        CHECK_OK_SO_FAR();
    }
}

static PenEncoded encoded(uint8_t *data, size_t bytes, int codec, const PenPixels *p)
{
    return (PenEncoded){.data = data,
                        .bytes = bytes,
                        .width = p->width,
                        .height = p->height,
                        .codec = (uint8_t)codec,
                        .channels = (uint8_t)p->channels};
}

static void check_file(const PenBuf *b, int codec, uint32_t n_boxes)
{
    PenPixels whole = {0};
    CHECK_INT(pen__image_decode(b->data, b->bytes, limits, &whole, NULL), PEN_OK);
    uint8_t *copy = exact_copy(b->data, b->bytes);
    PenEncoded e = encoded(copy, b->bytes, codec, &whole);
    check_boxes(&e, &whole, n_boxes);
    free(copy);
    pen__pixels_free(&whole);
}

/* ---- jpeg ---- */

#define SAMPLING(lh, lv, ch, cv) .h = lh, .v = lv, .chroma_h = ch, .chroma_v = cv
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
        check_file(&b, PEN_CODEC_JPEG, 24);
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
            check_file(&b, PEN_CODEC_JPEG, 12);
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
        check_file(&cut, PEN_CODEC_JPEG, 20);
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
        PenEncoded e = encoded(with.data, with.bytes, PEN_CODEC_JPEG, &p);
        PenBox all = {0, 0, 64, 64};
        CHECK_INT(find_region(decoder, &e, all, PEN_COLOUR_GREY, &found, &err), PEN_OK);
        check_file(&without, PEN_CODEC_JPEG, 2);
        CHECK_OK_SO_FAR();
    }
    /* Nor is the quantisation, which has no standard. */
    size_t dqt = find_marker_offset(without.data, without.bytes, 0xDB, 0);
    memmove(without.data + dqt, without.data + dqt + 69, without.bytes - dqt - 69);
    PenEncoded e = encoded(without.data, without.bytes - 69, PEN_CODEC_JPEG, &p);
    CHECK_INT(find_region(decoder, &e, (PenBox){0, 0, 8, 8}, PEN_COLOUR_GREY, &found, &err),
              PEN_E_DECODE);
    pen__buf_free(&with);
    pen__buf_free(&without);
}

/* ---- tiled jpeg ---- */

static void check_part(const PenTiledJpeg *t, const PenPixels *whole, PenBox box, int32_t colour)
{
    uint8_t *bytes = NULL;
    PenEncoded e = part_of(t, box, dice(3) ? 0 : dice(20), &bytes);
    uint8_t *before = exact_copy(e.data, e.bytes);
    check_box(&e, whole, box, colour);
    CHECK_MEM(e.data, before, e.bytes);
    free(before);
    free(bytes);
}

static void check_tiled(const JpegSpec *spec, uint32_t n_boxes)
{
    PenBuf b = {0};
    PenTiledJpeg t = {0};
    PenPixels whole = {0};
    const char *why = NULL;
    make_jpeg(spec, &b);
    CHECK_INT(pen__jpeg_tile(b.data, b.bytes, limits, &t, &why, NULL), PEN_OK);
    CHECK_INT(pen__image_decode(b.data, b.bytes, limits, &whole, NULL), PEN_OK);
    uint8_t *copy = exact_copy(t.jpeg.data, t.jpeg.bytes);
    PenEncoded e = whole_tiled(&t);
    e.data = copy;
    for (uint32_t i = 0; i < n_boxes; i++) {
        PenBox box = nth_box(i, whole.width, whole.height);
        check_box(&e, &whole, box, colours[i % 2]);
        check_part(&t, &whole, box, colours[i % 2]);
        CHECK_OK_SO_FAR();
    }
    free(copy);
    pen__buf_free(&b);
    pen__tiled_free(&t);
    pen__pixels_free(&whole);
}

static const JpegSpec tileable[] = {{SAMPLING(1, 1, 1, 1)},
                                    {SAMPLING(2, 1, 1, 1)},
                                    {SAMPLING(1, 2, 1, 1)},
                                    {SAMPLING(2, 2, 1, 1)},
                                    {.channels = 1},
                                    {.channels = 1, .h = 2, .v = 2},
                                    {SAMPLING(2, 1, 2, 1), .progressive = true},
                                    {SAMPLING(2, 2, 1, 1), .progressive = true}};

TEST(tiled_whole_and_in_part)
{
    static const uint32_t widths[] = {1, 8, 17, 64, 65, 129, 250, 256};
    static const uint32_t heights[] = {1, 17, 33, 100, 240};
    for (size_t i = 0; i < PEN_LEN(widths) * PEN_LEN(heights); i++)
        for (size_t k = 0; k < PEN_LEN(tileable); k++) {
            JpegSpec spec = tileable[k];
            spec.width = widths[i % PEN_LEN(widths)];
            spec.height = heights[i / PEN_LEN(widths)];
            check_tiled(&spec, 14);
            CHECK_OK_SO_FAR();
        }
}

/* Every row alone, for one of every distance between rows that begin a segment. */
TEST(tiled_row_by_row)
{
    for (uint32_t mcus = 1; mcus <= 8; mcus++)
        for (size_t k = 0; k < 4; k++) {
            JpegSpec spec = tileable[k];
            PenBuf b = {0};
            PenTiledJpeg t = {0};
            PenPixels whole = {0};
            const char *why = NULL;
            spec.width = mcus * 8 * (uint32_t)spec.h - 3;
            spec.height = 140;
            make_jpeg(&spec, &b);
            CHECK_INT(pen__jpeg_tile(b.data, b.bytes, limits, &t, &why, NULL), PEN_OK);
            CHECK_INT(pen__image_decode(b.data, b.bytes, limits, &whole, NULL), PEN_OK);
            for (uint32_t y = 0; y < spec.height; y++) {
                PenBox box = {.x = 1, .y = y, .w = 2, .h = 1};
                check_part(&t, &whole, box, PEN_COLOUR_RGB);
                CHECK_OK_SO_FAR();
            }
            pen__buf_free(&b);
            pen__tiled_free(&t);
            pen__pixels_free(&whole);
        }
}

/* A tiled picture of 250 x 240, for the tests of what is wrong. */
static PenTiledJpeg a_tiled_jpeg(void)
{
    PenBuf b = {0};
    PenTiledJpeg t = {0};
    const char *why = NULL;
    make_jpeg(&(JpegSpec){.width = 250, .height = 240, SAMPLING(2, 2, 1, 1)}, &b);
    if (pen__jpeg_tile(b.data, b.bytes, limits, &t, &why, NULL) != PEN_OK)
        abort();
    pen__buf_free(&b);
    return t;
}

static int find_status(const PenEncoded *e, PenBox box)
{
    PenError err = {0};
    int r = find_region(decoder, e, box, PEN_COLOUR_RGB, &found, &err);
    if (r < 0 && (err.status != r || !err.message[0]))
        return 99;
    return r;
}

TEST(tiled_segments_that_are_not_there)
{
    PenTiledJpeg t = a_tiled_jpeg();
    PenBox box = {.x = 20, .y = 100, .w = 50, .h = 60};
    uint8_t *bytes = NULL;
    PenEncoded e = part_of(&t, box, 0, &bytes), other = e;
    CHECK_INT(find_status(&e, box), PEN_OK);
    other.first_segment++;
    CHECK_INT(find_status(&other, box), PEN_E_INVALID);
    other = e;
    other.end_segment--;
    CHECK_INT(find_status(&other, box), PEN_E_INVALID);
    other = e;
    other.segment_bytes = NULL;
    CHECK_INT(find_status(&other, box), PEN_E_INVALID);
    other = e;
    other.tiled = 0;
    CHECK_INT(find_status(&other, box), PEN_E_INVALID);
    free(bytes);
    pen__tiled_free(&t);
}

/* Tables that lie: never a wrong pixel said to be right, never a byte outside. */
TEST(tiled_hostile_tables)
{
    PenTiledJpeg t = a_tiled_jpeg();
    PenPixels whole = {0};
    CHECK_INT(pen__image_decode(t.jpeg.data, t.jpeg.bytes, limits, &whole, NULL), PEN_OK);
    uint8_t *copy = exact_copy(t.jpeg.data, t.jpeg.bytes);
    uint32_t *lengths = malloc(t.n_segments * sizeof *lengths);
    CHECK(lengths);
    int fine = 0, refused = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        static const uint32_t awkward[] = {0, 1, 2, 0x7FFFFFFF, 0xFFFFFFFF, 65536};
        PenBox box = random_box(whole.width, whole.height);
        PenEncoded e = whole_tiled(&t);
        e.data = copy;
        e.segment_bytes = lengths;
        memcpy(lengths, t.segment_bytes, t.n_segments * sizeof *lengths);
        uint32_t at = dice(t.n_segments), by = dice(9);
        lengths[at] = i % 3 ? lengths[at] + by - 4 : awkward[dice(PEN_LEN(awkward))];
        if (i % 5 == 0)
            e.head_bytes += dice(9) - 4;
        int r = find_status(&e, box);
        CHECK(r == PEN_OK || r == PEN_E_DECODE);
        if (r == PEN_OK)
            CHECK_INT(count_different(&whole, box, PEN_COLOUR_RGB, &found), 0);
        *(r == PEN_OK ? &fine : &refused) += 1;
    }
    CHECK(fine > 100 && refused > 100);
    free(lengths);
    free(copy);
    pen__pixels_free(&whole);
    pen__tiled_free(&t);
}

/* Heads that do not fit: another size, interval, kind, sampling. */
TEST(tiled_hostile_heads)
{
    PenTiledJpeg t = a_tiled_jpeg();
    PenEncoded e = whole_tiled(&t);
    PenBox box = {.x = 3, .y = 130, .w = 100, .h = 20};
    uint8_t *head = t.jpeg.data;
    size_t sof = find_marker_offset(head, t.head_bytes, 0xC0, 0);
    size_t dri = find_marker_offset(head, t.head_bytes, 0xDD, 0);
    const struct {
        size_t at;
        uint8_t value;
    } lies[] = {{sof + 6, 239},   {sof + 8, 249},   {sof + 1, 0xC1}, {dri + 5, 4},    {dri + 4, 1},
                {sof + 11, 0x42}, {sof + 14, 0x21}, {0, 0},          {sof + 11, 0x14}};
    CHECK_INT(find_status(&e, box), PEN_OK);
    for (size_t i = 0; i < PEN_LEN(lies); i++) {
        uint8_t was = head[lies[i].at];
        head[lies[i].at] = lies[i].value;
        CHECK_INT(find_status(&e, box), PEN_E_DECODE);
        head[lies[i].at] = was;
    }
    e.head_bytes = (uint32_t)t.jpeg.bytes + 1;
    CHECK_INT(find_status(&e, box), PEN_E_DECODE);
    e = whole_tiled(&t);
    e.end_segment++;
    CHECK_INT(find_status(&e, box), PEN_E_DECODE);
    e = whole_tiled(&t);
    CHECK_INT(find_status(&e, box), PEN_OK);
    pen__tiled_free(&t);
}

/* Every restart marker is looked at: a wrong one is damage though libjpeg could go on. */
TEST(tiled_wrong_restart_markers)
{
    PenTiledJpeg t = a_tiled_jpeg();
    PenEncoded e = whole_tiled(&t), plain = e;
    plain.tiled = 0;
    PenBox box = {.x = 0, .y = 130, .w = 250, .h = 60};
    PenCut cut = {PEN_CODEC_JPEG, 3, 2, 2, 250, 240};
    uint32_t first, last;
    pen__region_segments(&cut, box.y, box.h, &first, &last);
    CHECK(first > 0 && last + 1 < t.n_segments);
    size_t at = t.head_bytes;
    for (uint32_t s = 0; s < last; s++) {
        at += t.segment_bytes[s];
        uint8_t *marker = t.jpeg.data + at - 1, was = *marker;
        CHECK(was >= 0xD0 && was <= 0xD7);
        for (uint8_t by = 1; by < 8; by++) {
            *marker = (uint8_t)(0xD0 + (was + by) % 8);
            CHECK_INT(find_status(&e, box), s + 1 < first ? PEN_OK : PEN_E_DECODE);
            CHECK_INT(find_status(&plain, box), PEN_E_DECODE);
        }
        *marker = was;
    }
    CHECK_INT(find_status(&e, box), PEN_OK);
    CHECK_INT(find_status(&plain, box), PEN_OK);
    pen__tiled_free(&t);
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
            PenEncoded e = encoded(copy, n, PEN_CODEC_JPEG, &p);
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
    PenEncoded e = encoded(b.data, b.bytes, PEN_CODEC_JPEG, &p);
    PenBox box = {0, 0, 10, 10};
    CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_RGB, &found, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, "97 x 60") && strstr(err.message, "97 x 61"));
    b.bytes = 0;
    PenPixels q;
    make_pixels(13, 9, 3, 1, &q);
    CHECK_INT(pen__png_encode(&q, &b, NULL), PEN_OK);
    e = encoded(b.data, b.bytes, PEN_CODEC_PNG, &p);
    CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_RGB, &found, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, "97 x 60") && strstr(err.message, "13 x 9"));
    /* The codec is checked before the size. */
    e.codec = PEN_CODEC_JPEG;
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
    PenEncoded e = encoded(b.data, b.bytes, PEN_CODEC_JPEG, &p);
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
    PenTiledJpeg t = a_tiled_jpeg();
    PenPixels whole = {0};
    CHECK_INT(pen__image_decode(t.jpeg.data, t.jpeg.bytes, limits, &whole, NULL), PEN_OK);
    PenEncoded raw = encoded(whole.data, (size_t)250 * 240 * 3, PEN_CODEC_RAW, &whole);
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
            CHECK_INT(found.rows, (call - 1) * 16);
            CHECK_INT(found.calls, call);
            found.fail_at = 0;
            check_box(&images[i], &whole, box, PEN_COLOUR_GREY);
            CHECK_OK_SO_FAR();
        }
    pen__pixels_free(&whole);
    pen__tiled_free(&t);
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
        PenEncoded e = encoded(copy, row * 47, PEN_CODEC_RAW, &p);
        check_boxes(&e, &p, 40);
        CHECK_OK_SO_FAR();
        /* Only the rows of the box are there. */
        for (uint32_t i = 0; i < 20; i++) {
            PenBox box = random_box(61, 47);
            PenCut cut = {.codec = PEN_CODEC_RAW, .width = 61, .height = 47};
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
        check_file(&b, PEN_CODEC_PNG, 30);
        CHECK_OK_SO_FAR();
        PenEncoded e = encoded(b.data, b.bytes / 2, PEN_CODEC_PNG, &p);
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
            check_file(&b, PEN_CODEC_WEBP, 20);
            check_mask(&b, PEN_CODEC_WEBP, &p);
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
    check_file(&b, PEN_CODEC_PNG, 20);
    check_mask(&b, PEN_CODEC_PNG, &size);
    PenEncoded e = encoded(b.data, b.bytes, PEN_CODEC_PNG, &size);
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
        check_mask(&b, PEN_CODEC_PNG, &p);
        JpegSpec spec = {.width = 61, .height = 47, .channels = (int)channels};
        make_jpeg(&spec, &b);
        check_mask(&b, PEN_CODEC_JPEG, &p);
        CHECK_OK_SO_FAR();
        PenEncoded raw = encoded(p.data, (size_t)61 * 47 * channels, PEN_CODEC_RAW, &p);
        CHECK_INT(find_region(decoder, &raw, (PenBox){1, 2, 3, 4}, PEN_COLOUR_MASK, &found, NULL),
                  channels == 1 ? PEN_OK : PEN_E_DECODE);
        pen__pixels_free(&p);
    }
    pen__buf_free(&b);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    if (pen__decoder_new(&decoder, NULL) < 0)
        return 1;
    RUN(jpeg_of_every_kind);
    RUN(jpeg_of_small_sizes);
    RUN(jpeg_with_missing_scans);
    RUN(jpeg_tables_are_not_inherited);
    RUN(tiled_whole_and_in_part);
    RUN(tiled_row_by_row);
    RUN(tiled_segments_that_are_not_there);
    RUN(tiled_hostile_tables);
    RUN(tiled_hostile_heads);
    RUN(tiled_wrong_restart_markers);
    RUN(truncated_jpegs);
    RUN(another_size_is_an_error_that_says_both);
    RUN(boxes_outside_are_invalid);
    RUN(the_callback_may_stop);
    RUN(raw_pixels);
    RUN(png_files);
    RUN(webp_files);
    RUN(palettes);
    RUN(masks);
    pen__decoder_free(&decoder);
    pen__decoder_free(&decoder);
    pen__buf_free(&found.pixels);
    return TEST_END();
}
