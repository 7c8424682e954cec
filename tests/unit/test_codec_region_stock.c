/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of JPEG files without an index, tier by tier: whatever the file is, the pixels or the error
 * of libjpeg. */
#include "base/machine/cpu.h"
#include "codec/jpeg/decoder/decoder_impl.h"
#include "codec/region/region_impl.h"
#include "region_checks.h"

static PenDecoder *turbo, *tiers[PEN_CPU_TIERS];
static uint32_t n_tiers;

static PenDecoder *make_decoder(const char *tier)
{
    PenDecoder *d = NULL;
    if (pen__decoder_new(&d, NULL) != PEN_OK)
        abort();
    if (pen__decoder_use(d, tier, NULL) != PEN_OK)
        pen__decoder_free(&d);
    return d;
}

/* The same status, message and pixels as with libjpeg. */
static void check_same(const PenEncoded *e, PenBox box, int32_t colour)
{
    Collected expected = {0};
    PenError by_turbo = {0};
    int status = find_region(turbo, e, box, colour, &expected, &by_turbo);
    for (uint32_t i = 0; i < n_tiers; i++) {
        PenError err = {0};
        CHECK_INT(find_region(tiers[i], e, box, colour, &found, &err), status);
        CHECK_STR(err.message, by_turbo.message);
        if (status == PEN_OK) {
            CHECK_INT(found.pixels.bytes, expected.pixels.bytes);
            CHECK_MEM(found.pixels.data, expected.pixels.data, expected.pixels.bytes);
        }
    }
    pen__buf_free(&expected.pixels);
}

static PenEncoded stock(const PenBuf *file, uint32_t width, uint32_t height, uint8_t channels)
{
    return (PenEncoded){.data = exact_copy(file->data, file->bytes),
                        .bytes = file->bytes,
                        .width = width,
                        .height = height,
                        .codec = PEN_STORED_JPEG,
                        .channels = channels};
}

static PenEncoded make_stock(const JpegSpec *spec, PenBuf *file)
{
    make_jpeg(spec, file);
    return stock(file, spec->width, spec->height, spec->channels == 1 ? 1 : 3);
}

static const JpegSpec kinds[] = {
    {.width = 397, .height = 283},
    {.width = 397, .height = 283, .h = 2},
    {.width = 397, .height = 283, .v = 2, .optimal = true},
    {.width = 397, .height = 283, .h = 2, .v = 2, .quality = 95},
    {.width = 397, .height = 283, .channels = 1},
    {.width = 397, .height = 283, .h = 2, .v = 2, .restart_interval = 5},
    {.width = 397, .height = 283, .restart_interval = 97},
    {.width = 140, .height = 230, .quality = 100},
    {.width = 640, .height = 470, .quality = 2, .h = 2, .v = 2},
    {.width = 97, .height = 61, .h = 2, .v = 2},
};

/* The own decoder decodes them, down to the last row. */
TEST(boxes)
{
    for (size_t i = 0; i < PEN_LEN(kinds); i++) {
        PenBuf file = {0};
        PenEncoded e = make_stock(&kinds[i], &file);
        for (uint32_t n = 0; n < 12; n++) {
            PenBox box = nth_box(n, e.width, e.height);
            check_same(&e, box, colours[n % 2]);
            for (uint32_t t = 0; t < n_tiers; t++)
                CHECK_INT(tiers[t]->own->given, box.h);
            CHECK_OK_SO_FAR();
        }
        free(e.data);
        pen__buf_free(&file);
    }
}

/* What has no entries is left to libjpeg. */
TEST(other_kinds)
{
    static const JpegSpec others[] = {
        {.width = 90, .height = 80, .progressive = true, .h = 2, .v = 2},
        {.width = 90, .height = 80, .arithmetic = true},
        {.width = 90, .height = 80, .channels = 4},
        {.width = 90, .height = 80, .channels = 4, .ycck = true},
        {.width = 90, .height = 80, .separate = true},
        {.width = 90, .height = 80, .h = 4},
        {.width = 90, .height = 80, .rgb = true},
        {.width = 16, .height = 8},
    };
    for (size_t i = 0; i < PEN_LEN(others); i++) {
        PenBuf file = {0};
        PenEncoded e = make_stock(&others[i], &file);
        for (uint32_t n = 0; n < 6; n++)
            check_same(&e, nth_box(n, e.width, e.height), colours[n % 2]);
        CHECK_OK_SO_FAR();
        free(e.data);
        pen__buf_free(&file);
    }
}

TEST(masks)
{
    for (size_t i = 3; i < 5; i++) {
        PenBuf file = {0};
        PenEncoded e = make_stock(&kinds[i], &file);
        check_same(&e, (PenBox){.w = e.width, .h = e.height}, PEN_COLOUR_MASK);
        free(e.data);
        pen__buf_free(&file);
    }
}

TEST(damaged_files)
{
    for (size_t i = 0; i < PEN_LEN(kinds); i++) {
        PenBuf file = {0}, damaged = {0};
        make_jpeg(&kinds[i], &file);
        for (uint32_t n = 0; n < 16; n++) {
            damaged.bytes = 0;
            pen__buf_add(&damaged, file.data, file.bytes);
            for (uint32_t k = 0; k < 1 + n % 3; k++)
                damaged.data[2 + dice((uint32_t)file.bytes - 2)] ^= (uint8_t)(1u << dice(8));
            PenEncoded e = stock(&damaged, kinds[i].width, kinds[i].height, 3);
            check_same(&e, nth_box(n % 3 ? n : 0, e.width, e.height), colours[n % 2]);
            free(e.data);
            CHECK_OK_SO_FAR();
        }
        pen__buf_free(&file);
        pen__buf_free(&damaged);
    }
}

/* Cut off anywhere: a box may be complete all the same. */
TEST(truncated_files)
{
    for (size_t i = 0; i < PEN_LEN(kinds); i += 3) {
        PenBuf file = {0};
        make_jpeg(&kinds[i], &file);
        for (uint32_t n = 0; n < 12; n++) {
            PenBuf cut = file;
            cut.bytes -= n < 4 ? n : 1 + dice((uint32_t)file.bytes - 700);
            PenEncoded e = stock(&cut, kinds[i].width, kinds[i].height, 3);
            check_same(&e, (PenBox){.w = e.width, .h = e.height}, PEN_COLOUR_RGB);
            check_same(&e, (PenBox){.w = 20, .h = 20}, PEN_COLOUR_RGB);
            free(e.data);
            CHECK_OK_SO_FAR();
        }
        pen__buf_free(&file);
    }
}

/* Of one component libjpeg reads as many rows of blocks at once as its factor says: what is missing
 * behind the box may be among them. */
TEST(truncated_grey_files)
{
    for (int v = 1; v <= 4; v++) {
        PenBuf file = {0};
        make_jpeg(&(JpegSpec){.width = 200, .height = 208, .channels = 1, .v = v}, &file);
        for (uint32_t n = 1; n < 26; n++) {
            PenBuf cut = file;
            cut.bytes -= (file.bytes - 700) * n / 26;
            /* With an end, or it would be left to libjpeg at once. */
            uint8_t *end = cut.data + cut.bytes - 2, kept[2] = {end[0], end[1]};
            end[0] = 0xFF;
            end[1] = 0xD9;
            PenEncoded e = stock(&cut, 200, 208, 1);
            memcpy(end, kept, 2);
            for (uint32_t h = 1; h < 208; h += 9)
                check_same(&e, (PenBox){.w = 20, .h = h}, PEN_COLOUR_RGB);
            free(e.data);
            CHECK_OK_SO_FAR();
        }
        pen__buf_free(&file);
    }
}

/* libjpeg does not take more than 65,500. */
TEST(sides_that_libjpeg_refuses)
{
    static const uint16_t widths[] = {65500, 65501, 65535};
    for (size_t i = 0; i < PEN_LEN(widths); i++) {
        PenBuf file = {0};
        make_jpeg(&(JpegSpec){.width = 65500, .height = 16, .h = 2, .v = 2}, &file);
        size_t frame = find_marker_offset(file.data, file.bytes, 0xC0, 0);
        file.data[frame + 7] = (uint8_t)(widths[i] >> 8);
        file.data[frame + 8] = (uint8_t)widths[i];
        PenEncoded e = stock(&file, widths[i], 16, 3);
        check_same(&e, (PenBox){.w = widths[i], .h = 16}, PEN_COLOUR_RGB);
        check_same(&e, (PenBox){.w = 50, .h = 10}, PEN_COLOUR_RGB);
        free(e.data);
        pen__buf_free(&file);
    }
}

/* Without a word from a test: only files that are worth it. */
TEST(small_files_are_left_to_libjpeg)
{
    static const JpegSpec small = {.width = 97, .height = 61, .h = 2, .v = 2};
    /* The third has markers that are too close. */
    const JpegSpec *specs[] = {&small, &kinds[3], &kinds[5]};
    for (int i = 0; i < 3; i++) {
        PenBuf file = {0};
        PenDecoder *d = NULL;
        PenEncoded e = make_stock(specs[i], &file);
        if (pen__decoder_new(&d, NULL) != PEN_OK)
            abort();
        PenBox all = {.w = e.width, .h = e.height};
        CHECK_INT(find_region(d, &e, all, PEN_COLOUR_RGB, &found, NULL), PEN_OK);
        CHECK_INT(d->scan != NULL, i == 1 && pen__own_is_on());
        free(e.data);
        pen__decoder_free(&d);
        pen__buf_free(&file);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    turbo = make_decoder("turbo");
    for (int i = 0; i < PEN_CPU_TIERS; i++)
        if ((tiers[n_tiers] = make_decoder(pen__cpu_name(i))))
            n_tiers++;
    RUN(boxes);
    RUN(other_kinds);
    RUN(masks);
    RUN(damaged_files);
    RUN(truncated_files);
    RUN(truncated_grey_files);
    RUN(sides_that_libjpeg_refuses);
    RUN(small_files_are_left_to_libjpeg);
    for (uint32_t i = 0; i < n_tiers; i++)
        pen__decoder_free(&tiers[i]);
    pen__decoder_free(&turbo);
    end_regions();
    return TEST_END();
}
