/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/run/program.h"
#include "test.h"

static const PenFieldKind image = {.kind = PEN_KIND_IMAGE};
static const PenFieldKind mask = {.kind = PEN_KIND_MASK};

static int make(const char *text, const PenFieldKind *kind, PenProgram **ret, PenError *err)
{
    PenSpec s = {0};
    int r = pen__spec_parse(text, &s, err);
    if (r == PEN_OK)
        r = pen__program_new(&s.fields[0], kind, ret, err);
    pen__spec_free(&s);
    return r;
}

static void expect_fail(const char *text, const PenFieldKind *kind, const char *message)
{
    PenProgram *p = NULL;
    PenError err = {0};
    CHECK_INT(make(text, kind, &p, &err), PEN_E_INVALID);
    CHECK_STR(err.message, message);
    CHECK(p == NULL);
}

/* "u8 224 224 3 last", the bytes behind it. */
static void expect_result(const char *text, const PenFieldKind *kind, const char *result,
                          uint64_t bytes)
{
    PenProgram *p = NULL;
    PenError err = {0};
    char buf[200];
    if (make(text, kind, &p, &err) != PEN_OK)
        CHECK_STR(err.message, "no error");
    PenTensor t = pen__program_result(p);
    size_t used = (size_t)snprintf(buf, sizeof buf, "%s", pen_dtype_name(t.dtype));
    for (uint32_t i = 0; i < t.n_dims; i++)
        used += (size_t)snprintf(buf + used, sizeof buf - used, " %d", (int)t.shape[i]);
    snprintf(buf + used, sizeof buf - used, "%s", t.channels_last ? " last" : "");
    CHECK_STR(buf, result);
    CHECK_INT(pen__program_bytes(p), bytes);
    CHECK(t.data == NULL);
    pen__program_free(&p);
    CHECK(p == NULL);
}

#define FAILS(text, kind, message) (expect_fail(text, kind, message), (void)0)
#define RESULT(text, kind, result, bytes) (expect_result(text, kind, result, bytes), (void)0)

TEST(program_knows_its_result)
{
    RESULT("decode | center_crop 224 | tensor", &image, "u8 224 224 3 last", 224 * 224 * 3);
    RESULT("decode | center_crop 224", &image, "u8 224 224 3 last", 224 * 224 * 3);
    RESULT("decode | random_resized_crop 10,20 | tensor f32 nchw", &image, "f32 3 10 20",
           4 * 3 * 200);
    RESULT("decode gray | resize 10,20 | tensor bf16", &image, "bf16 10 20 1 last", 2 * 200);
    RESULT("decode gray | random_crop 7 | tensor f16 nchw", &image, "f16 1 7 7", 2 * 49);
    RESULT("decode | center_crop 8 | normalize | random_erasing | tensor f16", &image,
           "f16 8 8 3 last", 2 * 192);
    /* The shorter side is enough where the size is known. */
    RESULT("decode | center_crop 20,30 | resize 10", &image, "u8 10 15 3 last", 450);
    RESULT("decode | resize 256 | center_crop 224 | hflip | vflip | grayscale 0.5", &image,
           "u8 224 224 3 last", 224 * 224 * 3);
    RESULT("decode | center_crop 5,6 | tensor", &mask, "u8 5 6", 30);
    RESULT("decode | center_crop 5,6 | hflip | random_erasing value=255 | tensor i64 nchw", &mask,
           "i64 5 6", 240);
}

TEST(program_of_numbers)
{
    PenFieldKind kind = {.kind = PEN_KIND_NUMBER, .dtype = PEN_I64};
    RESULT("tensor", &kind, "i64", 8);
    RESULT("tensor i64", &kind, "i64", 8);
    FAILS("tensor f32", &kind,
          "pipeline: column 1: tensor: the field holds i64, which cannot be converted to f32; "
          "expected "
          "i64");
    FAILS("tensor | tensor", &kind, "pipeline: column 10: tensor is given twice");
    FAILS("decode | tensor", &kind,
          "pipeline: column 1: decode: the field holds numbers; only one_hot and tensor can be "
          "used on "
          "them");
    kind = (PenFieldKind){
        .kind = PEN_KIND_NUMBER, .dtype = PEN_F64, .n_dims = 2, .dims = {2, 3, 0, 0}};
    RESULT("tensor", &kind, "f64 2 3", 48);
    RESULT("tensor f32", &kind, "f32 2 3", 24);
    FAILS("tensor i64", &kind,
          "pipeline: column 1: tensor: the field holds f64, which cannot be converted to i64; "
          "expected "
          "f64 or f32");

    PenProgram *p = NULL;
    PenError err = {0};
    double wide[6] = {1, -2.5, 1e300, 0.1, 3, 4};
    float narrow[6];
    CHECK_INT(make("tensor f32", &kind, &p, &err), PEN_OK);
    CHECK_INT(pen__program_store_number(p, (const uint8_t *)wide, narrow, NULL), PEN_OK);
    for (int i = 0; i < 6; i++)
        CHECK(narrow[i] == (float)wide[i]);
    pen__program_free(&p);
    CHECK_INT(make("tensor", &kind, &p, &err), PEN_OK);
    double copy[6];
    CHECK_INT(pen__program_store_number(p, (const uint8_t *)wide, copy, NULL), PEN_OK);
    CHECK_MEM(copy, wide, sizeof wide);
    pen__program_free(&p);
}

/* A field without operations: numbers are given as they are. */
TEST(program_without_operations)
{
    PenSpecField none = {.column = 1};
    PenFieldKind kind = {
        .kind = PEN_KIND_NUMBER, .dtype = PEN_F32, .n_dims = 1, .dims = {5, 0, 0, 0}};
    PenProgram *p = NULL;
    PenError err = {0};
    CHECK_INT(pen__program_new(&none, &kind, &p, &err), PEN_OK);
    CHECK_INT(pen__program_bytes(p), 20);
    pen__program_free(&p);
    CHECK_INT(pen__program_new(&none, &image, &p, &err), PEN_E_INVALID);
    CHECK_STR(err.message,
              "pipeline: column 1: an image needs operations that start with 'decode'");
}

TEST(program_order_of_operations)
{
    FAILS("center_crop 8 | tensor", &image,
          "pipeline: column 1: center_crop: an image must be decoded first: 'decode | "
          "center_crop'");
    FAILS("tensor", &mask,
          "pipeline: column 1: tensor: a mask must be decoded first: 'decode | tensor'");
    FAILS("decode | decode", &image, "pipeline: column 10: decode is given twice");
    FAILS("decode | center_crop 8 | tensor | hflip", &image,
          "pipeline: column 35: hflip after tensor: only repeat, pad_batch, mixup and cutmix can "
          "follow; move it before tensor");
    FAILS("decode | center_crop 8 | normalize | hflip | tensor f32", &image,
          "pipeline: column 38: hflip after normalize: only random_erasing and tensor can follow; "
          "move it before normalize");
    FAILS("decode | center_crop 8 | normalize | normalize | tensor f32", &image,
          "pipeline: column 38: normalize after normalize: only random_erasing and tensor can "
          "follow; move it before normalize");
}

/* -1 in the shape, and the most bytes that a result can have. */
TEST(program_of_different_sizes)
{
    RESULT("decode | resize min_side=8 max_side=10", &image, "u8 -1 -1 3 last", 8 * 10 * 3);
    RESULT("decode | resize min_side=8,9,4 max_side=10 | tensor f32 nchw", &image, "f32 3 -1 -1",
           9 * 10 * 12);
    RESULT("decode | resize max_side=10 | normalize | tensor f16", &image, "f16 -1 -1 3 last",
           10 * 10 * 6);
    RESULT("decode | resize min_side=20 max_side=10", &image, "u8 -1 -1 3 last", 10 * 10 * 3);
    RESULT("decode | resize min_side=21 max_side=90 to_multiple_of=16", &mask, "u8 -1 -1", 16 * 80);
    RESULT("decode | resize min_side=8 max_side=10 | pad_batch 16", &mask, "u8 -1 -1", 16 * 16);
    RESULT("decode | resize min_side=8 max_side=10 | tensor i64 | pad_batch value=-1", &mask,
           "i64 -1 -1", 10 * 10 * 8);
    RESULT("decode | resize min_side=8 | center_crop 4", &image, "u8 4 4 3 last", 4 * 4 * 3);
    RESULT("decode | center_crop 30,50 | resize min_side=8 max_side=10", &image, "u8 6 10 3 last",
           6 * 10 * 3);
    RESULT("decode | center_crop 30,40 | resize min_side=6,8 max_side=10", &image,
           "u8 -1 -1 3 last", 8 * 10 * 3);
    FAILS("decode | resize max_side=8 | repeat 2", &image,
          "pipeline: column 30: repeat needs results of one size; add 'center_crop H,W' or 'resize "
          "H,W', or use several views");
    FAILS("decode | center_crop 8 | pad_batch", &image,
          "pipeline: column 26: pad_batch: all results have 8 x 8 pixels; remove it");
    FAILS("decode | resize max_side=8 | pad_batch | pad_batch", &image,
          "pipeline: column 42: pad_batch after pad_batch: pad_batch must be the last operation; "
          "move it behind pad_batch");
    FAILS("decode | resize max_side=8 | pad_batch value=-1", &image,
          "pipeline: column 30: pad_batch: value: expected an integer from 0 to 255");
    FAILS("decode | resize max_side=8 | tensor i64 | pad_batch value=0.5", &mask,
          "pipeline: column 43: pad_batch: value: expected an integer");
}

TEST(program_needs_a_bounded_size)
{
    const char *why =
        "pipeline: column 23: the size of the images has no bound; add 'center_crop H,W' or "
        "'resize H,W', or for images of different sizes 'resize min_side=800 max_side=1333'";
    FAILS("decode | resize 256 | tensor", &image, why);
    FAILS("decode | hflip | tensor", &image,
          "pipeline: column 18: the size of the images has no bound; add 'center_crop H,W' or "
          "'resize H,W', or for images of different sizes 'resize min_side=800 max_side=1333'");
    FAILS("decode | center_crop 1,16384 | resize 2", &image,
          "pipeline: column 32: the result would have 32768 x 2 pixels; at most 16384 per side are "
          "allowed");
}

TEST(program_types_that_do_not_fit)
{
    FAILS(
        "decode | center_crop 8 | normalize | tensor u8", &image,
        "pipeline: column 38: tensor: a normalized image cannot be u8; expected f32, f16 or bf16");
    FAILS(
        "decode | center_crop 8 | normalize", &image,
        "pipeline: column 26: tensor: a normalized image cannot be u8; expected f32, f16 or bf16");
    FAILS("decode | center_crop 8 | tensor i64", &image,
          "pipeline: column 26: tensor: an image cannot be i64; expected u8, f16, bf16 or f32");
    FAILS("decode | center_crop 8 | tensor f32", &mask,
          "pipeline: column 26: tensor: a mask cannot be f32; expected u8 or i64");
    FAILS("decode | center_crop 8 | color_jitter 0.4 | tensor", &mask,
          "pipeline: column 26: color_jitter: a mask holds class numbers, not colors; remove this "
          "operation");
    FAILS("decode | center_crop 8 | normalize | tensor", &mask,
          "pipeline: column 26: normalize: a mask holds class numbers, not colors; remove this "
          "operation");
    FAILS(
        "decode gray | grayscale | center_crop 8", &image,
        "pipeline: column 15: grayscale needs colors, but 'decode gray' removes them; use 'decode "
        "rgb'");
    FAILS("decode gray | center_crop 8 | normalize | tensor f32", &image,
          "pipeline: column 31: normalize: mean has 3 numbers for 1 channel; pass one, or one for "
          "each channel");
    FAILS("decode | center_crop 8 | normalize std=1,2 | tensor f32", &image,
          "pipeline: column 26: normalize: std has 2 numbers for 3 channels; pass one, or one for "
          "each channel");
    FAILS("decode | center_crop 8 | random_erasing value=256", &image,
          "pipeline: column 26: random_erasing: value: expected integers from 0 to 255; for "
          "other values, move it after normalize");
    FAILS("decode | center_crop 8 | random_erasing value=0.5", &image,
          "pipeline: column 26: random_erasing: value: expected integers from 0 to 255; for "
          "other values, move it after normalize");
}

TEST(program_limits)
{
    FAILS("decode|center_crop 8|normalize|random_erasing|random_erasing|random_erasing|"
          "random_erasing|random_erasing|tensor f32",
          &image, "pipeline: column 92: more than 4 random_erasing after normalize");
    FAILS("decode|center_crop 8|color_jitter|color_jitter|color_jitter|color_jitter|color_jitter|"
          "color_jitter|color_jitter|color_jitter|color_jitter",
          &image,
          "pipeline: column 113: color_jitter: too many operations for one image: more than "
          "32 steps");
}

TEST(program_colours)
{
    static const struct {
        const char *text;
        const PenFieldKind *kind;
        int colour;
    } cases[] = {
        {"decode | center_crop 8", &image, PEN_COLOUR_RGB},
        {"decode gray | center_crop 8", &image, PEN_COLOUR_GREY},
        {"decode rgb | center_crop 8", &mask, PEN_COLOUR_MASK},
        {"decode gray | center_crop 8", &mask, PEN_COLOUR_MASK},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenProgram *p = NULL;
        CHECK_INT(make(cases[i].text, cases[i].kind, &p, NULL), PEN_OK);
        CHECK_INT(pen__program_colour(p), cases[i].colour);
        pen__program_free(&p);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(program_knows_its_result);
    RUN(program_of_numbers);
    RUN(program_without_operations);
    RUN(program_order_of_operations);
    RUN(program_of_different_sizes);
    RUN(program_needs_a_bounded_size);
    RUN(program_types_that_do_not_fit);
    RUN(program_limits);
    RUN(program_colours);
    return TEST_END();
}
