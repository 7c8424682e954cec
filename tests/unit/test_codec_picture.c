/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of regions of decoded pictures: the crop of the entire picture converted first, and all
 * operations give what they give on the same pixels stored raw. */
#include "codec/picture/picture.h"

#include <stdlib.h>

#include "fault_sweep.h"
#include "ops/run/program.h"
#include "picture_help.h"
#include "region_checks.h"

static PenVideoPicture random_format(uint32_t width, uint32_t height)
{
    static const uint8_t depths[] = {8, 10, 12}, matrices[] = {1, 2, 3, 4, 5, 6, 7, 9, 10};
    return (PenVideoPicture){.width = width,
                             .height = height,
                             .n_planes = dice(5) ? 3 : 1,
                             .depth = depths[dice(3)],
                             .shift_x = dice(2),
                             .shift_y = dice(2),
                             .range = dice(3),
                             .matrix = matrices[dice(PEN_LEN(matrices))]};
}

static void check_format(PenVideoPicture format, uint32_t boxes)
{
    PenVideoPicture p = make_picture(format, TEST_SAMPLES_ANY);
    PenEncoded e = encoded_picture(&p);
    PenPixels whole;
    convert_picture(&p, &whole);
    check_boxes(&e, &whole, boxes);
    if (test__now.state == TEST_FAILED)
        printf("%u planes of %u bits, shifts %u and %u\n", p.n_planes, p.depth, p.shift_x,
               p.shift_y);
    free(whole.data);
    free_picture(&p);
}

TEST(every_format)
{
    for (uint32_t i = 0; i < 3 * 4; i++)
        for (uint32_t planes = 1; planes <= 3; planes += 2) {
            PenVideoPicture format = random_format(150 + dice(20), 60 + dice(20));
            format.n_planes = planes;
            format.depth = (uint8_t[]){8, 10, 12}[i / 4];
            format.shift_x = i & 1;
            format.shift_y = i >> 1 & 1;
            check_format(format, 60);
            CHECK_OK_SO_FAR();
        }
}

TEST(small_sizes)
{
    for (uint32_t i = 0; i < 300; i++) {
        check_format(random_format(1 + dice(40), 1 + dice(40)), 14);
        CHECK_OK_SO_FAR();
    }
}

/* ---- operations ----------------------------------------------------------------------------- */

static PenDecodeContext *context;

static uint8_t *run_plan(const PenProgram *program, const PenEncoded *e, uint8_t orientation,
                         uint64_t sample)
{
    PenImageShape shape = {e->width, e->height, orientation, 0};
    PenSamplePlan plan;
    PenError err = {0};
    uint8_t *dst = calloc(pen__program_bytes(program), 1);
    if (!dst)
        abort();
    int r = pen__sample_plan_make(program, &shape, pen__draw_key(1, 2), sample, &plan, &err);
    if (r == PEN_OK)
        r = pen__sample_run(context, program, &plan, e, limits, dst, &err);
    if (r < 0)
        test__fail(__FILE__, __LINE__, "%s", err.message);
    return dst;
}

static void check_pipeline(const char *text, const PenVideoPicture *p, const PenPixels *whole)
{
    PenEncoded picture = encoded_picture(p);
    PenEncoded raw = {.data = whole->data,
                      .bytes = (size_t)whole->width * whole->height * whole->channels,
                      .width = whole->width,
                      .height = whole->height,
                      .codec = PEN_STORED_RAW,
                      .channels = (uint8_t)whole->channels};
    PenSpec spec;
    PenProgram *program = NULL;
    PenFieldKind field = {.kind = PEN_KIND_IMAGE};
    CHECK_INT(pen__spec_parse(text, &spec, NULL), PEN_OK);
    CHECK_INT(pen__program_new(&spec.fields[0], &field, &program, NULL), PEN_OK);
    for (uint8_t orientation = 1; orientation <= 8; orientation++) {
        uint8_t *found_bytes = run_plan(program, &picture, orientation, orientation);
        uint8_t *expected = run_plan(program, &raw, orientation, orientation);
        if (memcmp(found_bytes, expected, pen__program_bytes(program)) != 0)
            test__fail(__FILE__, __LINE__, "%s, orientation %u", text, orientation);
        free(found_bytes);
        free(expected);
    }
    pen__program_free(&program);
    pen__spec_free(&spec);
}

TEST(operations)
{
    static const char *const texts[] = {
        "decode | resize 64,48 | tensor u8 nhwc",
        "decode | resize 40 | center_crop 32 | normalize | tensor f32",
        "decode | random_resized_crop 48 scale=0.1,0.6 | hflip | tensor u8",
        "decode | random_crop 33 | vflip | tensor f16 nhwc",
        "decode | random_resized_crop 48 | color_jitter | tensor u8 nhwc",
        "decode gray | resize 40,40 | tensor u8 nhwc",
    };
    CHECK_INT(pen__decode_context_new(&context, NULL), PEN_OK);
    for (uint32_t i = 0; i < 6; i++) {
        PenVideoPicture format = random_format(161 + i, 121 + i);
        PenVideoPicture p = make_picture(format, TEST_SAMPLES_TAME);
        PenPixels whole;
        convert_picture(&p, &whole);
        for (size_t k = 0; k < PEN_LEN(texts); k++)
            check_pipeline(texts[k], &p, &whole);
        free(whole.data);
        free_picture(&p);
        CHECK_OK_SO_FAR();
    }
    pen__decode_context_free(&context);
}

/* ---- errors --------------------------------------------------------------------------------- */

static const PenVideoPicture good = {
    .width = 30, .height = 20, .n_planes = 3, .depth = 8, .shift_x = 1, .shift_y = 1, .matrix = 1};

static void check_refused(const PenVideoPicture *p, int status, const char *message)
{
    PenEncoded e = encoded_picture(p);
    PenError err = {0};
    CHECK_INT(find_region(decoder, &e, (PenBox){0, 0, 1, 1}, PEN_COLOUR_RGB, &found, &err), status);
    if (!strstr(err.message, message))
        printf("%s\n", err.message);
    CHECK(strstr(err.message, message));
}

#define CHECK_REFUSED(change, status, message)                                                     \
    do {                                                                                           \
        PenVideoPicture p = picture;                                                               \
        change;                                                                                    \
        check_refused(&p, status, message);                                                        \
        CHECK_OK_SO_FAR();                                                                         \
    } while (0)

TEST(pictures_that_are_refused)
{
    PenVideoPicture picture = make_picture(good, TEST_SAMPLES_ANY);
    CHECK_REFUSED(p.depth = 9, PEN_E_UNSUPPORTED, "8, 10 or 12 bits, found 9");
    CHECK_REFUSED(p.depth = 0, PEN_E_UNSUPPORTED, "found 0");
    CHECK_REFUSED(p.n_planes = 2, PEN_E_UNSUPPORTED, "found 2 planes");
    CHECK_REFUSED(p.n_planes = 4, PEN_E_UNSUPPORTED, "found 4 planes");
    CHECK_REFUSED(p.shift_x = 2, PEN_E_UNSUPPORTED, "1/4 x 1/2");
    CHECK_REFUSED(p.shift_y = 255, PEN_E_UNSUPPORTED, "1/2 x 1/2147483648");
    CHECK_REFUSED(p.range = 3, PEN_E_DECODE, "found 3");
    CHECK_REFUSED(p.matrix = 0, PEN_E_UNSUPPORTED, "found 0 (RGB)");
    CHECK_REFUSED(p.matrix = 8, PEN_E_UNSUPPORTED, "found 8 (YCgCo)");
    CHECK_REFUSED(p.matrix = 14, PEN_E_UNSUPPORTED, "found 14");
    CHECK_REFUSED(p.planes[2] = NULL, PEN_E_DECODE, "15 bytes in plane 2, found 0");
    CHECK_REFUSED(p.strides[1] = 14, PEN_E_DECODE, "15 bytes in plane 1, found 14");
    CHECK_REFUSED(p.strides[1] = -14, PEN_E_DECODE, "15 bytes in plane 1, found -14");
    CHECK_REFUSED((p.depth = 10, p.strides[0] = 59), PEN_E_DECODE, "60 bytes in plane 0, found 59");
    CHECK_REFUSED(p.width = 0, PEN_E_DECODE, "found 0 x 20");
    CHECK_REFUSED(p.height = 0, PEN_E_DECODE, "found 30 x 0");
    CHECK_REFUSED(
        (p.width = p.height = 1 << 14, p.strides[0] = p.strides[1] = p.strides[2] = 1 << 14),
        PEN_E_LIMIT, "found 16384 x 16384");
    free_picture(&picture);
}

/* The size that a plan was made for, and everything that is only for files. */
TEST(requests_that_are_refused)
{
    PenVideoPicture p = make_picture(good, TEST_SAMPLES_ANY);
    PenEncoded e = encoded_picture(&p);
    PenBox box = {0, 0, 30, 20};
    PenRegion shrunk = {.box = {0, 0, 1, 1}, .colour = PEN_COLOUR_RGB, .shrink = 1};
    PenError err = {0};
    CHECK_INT(find_status(&e, box), PEN_OK);
    CHECK_INT(find_status(&e, (PenBox){1, 0, 30, 20}), PEN_E_INVALID);
    CHECK_INT(find_shrunk(decoder, &e, &shrunk, &found, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "found 1 for picture"));
    CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_MASK, &found, &err), PEN_E_DECODE);
    CHECK(strstr(err.message, "mask: expected 1 channel"));
    e.width = 31;
    CHECK_INT(find_status(&e, box), PEN_E_DECODE);
    e = encoded_picture(&p);
    e.partial = 1;
    CHECK_INT(find_status(&e, box), PEN_E_INVALID);
    e = encoded_picture(&p);
    e.picture = NULL;
    CHECK_INT(find_status(&e, box), PEN_E_INVALID);
    e = encoded_picture(&p);
    found.fail_at = 2;
    CHECK_INT(find_status(&e, box), PEN_E_CANCELLED);
    CHECK_INT(found.rows, 16);
    found.fail_at = 0;
    free_picture(&p);
}

/* A gray picture can be a mask. */
TEST(masks)
{
    PenVideoPicture format = good;
    format.n_planes = 1;
    format.range = PEN_VIDEO_RANGE_FULL;
    PenVideoPicture p = make_picture(format, TEST_SAMPLES_ANY);
    PenEncoded e = encoded_picture(&p);
    PenBox box = {3, 5, 20, 2};
    CHECK_INT(find_region(decoder, &e, box, PEN_COLOUR_MASK, &found, NULL), PEN_OK);
    for (uint32_t i = 0; i < 2; i++)
        CHECK_MEM(found.pixels.data + i * 20, plane_row(&p, 0, 5 + i) + 3, 20);
    free_picture(&p);
}

static int ignore_rows(void *ctx, const uint8_t *rows, size_t stride, uint32_t n, PenError *reterr)
{
    (void)ctx, (void)rows, (void)stride, (void)n, (void)reterr;
    return PEN_OK;
}

static PenVideoPicture swept;

static int decode_swept(PenError *err)
{
    PenEncoded e = encoded_picture(&swept);
    PenDecoder *d = NULL;
    PenRegion region = {
        .box = {0, 0, 30, 20}, .colour = PEN_COLOUR_GREY, .limits = limits, .rows = ignore_rows};
    int r = pen__decoder_new(&d, err);
    if (r == PEN_OK)
        r = pen__region_decode(d, &e, &region, err);
    pen__decoder_free(&d);
    return r;
}

TEST(no_memory)
{
    int points = 0;
    swept = make_picture(good, TEST_SAMPLES_ANY);
    fault_sweep(decode_swept, &points);
    CHECK_INT(points, 6); /* the decoder, its rows, the gray rows; once and for ever */
    free_picture(&swept);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    if (!start_regions())
        return 1;
    RUN(every_format);
    RUN(small_sizes);
    RUN(operations);
    RUN(pictures_that_are_refused);
    RUN(requests_that_are_refused);
    RUN(masks);
    RUN(no_memory);
    end_regions();
    return TEST_END();
}
