/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <stdarg.h>

#include "ops/language/decimal.h"
#include "ops/operations/op.h"
#include "ops/pipeline/spec.h"
#include "test.h"

PEN_PRINTF(3, 4) static void append(char *text, size_t cap, const char *fmt, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + used, cap - used, fmt, args);
    va_end(args);
}

static void expect_fail(const char *text, const char *message)
{
    PenSpec s = {.n_fields = 7};
    PenError err = {0};
    CHECK_INT(pen__spec_parse(text, &s, &err), PEN_E_INVALID);
    CHECK_STR(err.message, message);
    CHECK_INT(s.n_fields, 7);
}

static void expect_form(const char *text, const char *form)
{
    PenError err = {0};
    char buf[PEN_MAX_TEXT + 1];
    size_t bytes = 0;
    if (pen_pipeline_check(text, buf, sizeof buf, &bytes, &err) != PEN_OK)
        CHECK_STR(err.message, "no error");
    CHECK_STR(buf, form);
    CHECK_INT(bytes, strlen(form));
    /* The full form stands for itself. */
    CHECK_INT(pen_pipeline_check(form, buf, sizeof buf, &bytes, &err), PEN_OK);
    CHECK_STR(buf, form);
}

#define FAILS(text, message) (expect_fail(text, message), (void)0)
#define FORM(text, form) (expect_form(text, form), (void)0)

TEST(spec_full_form_has_every_parameter)
{
    FORM("decode | random_resized_crop 224 scale=0.08,1 | hflip | tensor u8 nhwc",
         "decode mode=rgb | random_resized_crop size=224,224 scale=0.08,1 "
         "ratio=0.75,1.3333333333333333 filter=bilinear | hflip p=0.5 | "
         "tensor dtype=u8 layout=nhwc");
    FORM("decode gray|resize 256|center_crop 224 , 192|tensor nchw",
         "decode mode=gray | resize size=256 filter=bilinear | center_crop size=224,192 | "
         "tensor dtype=auto layout=nchw");
    FORM("decode|resize size = 10,20 filter = box",
         "decode mode=rgb | resize size=10,20 filter=box");
    FORM("decode|color_jitter 0.4 hue=0.1 contrast=2",
         "decode mode=rgb | color_jitter brightness=0.6,1.4 contrast=0,3 saturation=1,1 "
         "hue=-0.1,0.1");
    FORM("decode | random_crop 32 4 fill=7 | normalize 0.5 std=.25 | random_erasing value=1,2,3",
         "decode mode=rgb | random_crop size=32,32 padding=4 fill=7 | normalize mean=0.5 std=0.25 "
         "| random_erasing p=0.5 scale=0.02,0.33 ratio=0.3,3.3 value=1,2,3");
    FORM("a\t:decode; b: tensor i64 ;\"my label\": tensor",
         "a: decode mode=rgb; b: tensor dtype=i64 layout=nhwc; \"my label\": tensor dtype=auto "
         "layout=nhwc");
}

TEST(spec_lists)
{
    FORM("caption: text; meta: json 100; b: bytes max_bytes=7; id: key",
         "caption: text max_bytes=65536; meta: json max_bytes=100; b: bytes max_bytes=7; "
         "id: key max_bytes=4096");
    FAILS("a: key 4097", "pipeline: column 8: key: max_bytes: expected 1 to 4096, found '4097'");
    FAILS("a: txt", "pipeline: column 4: no operation 'txt'; did you mean 'text'?");
}

/* The full form is part of saved states: what earlier builds do not have is left out while it is at
 * its initial value. */
TEST(spec_full_form_is_that_of_earlier_builds)
{
    FORM("decode shrink=off", "decode mode=rgb");
    FORM("decode gray off", "decode mode=gray");
    FORM("decode shrink=auto", "decode mode=rgb shrink=auto");
    FORM("decode auto gray", "decode mode=gray shrink=auto");
}

TEST(spec_words_find_their_parameter)
{
    FORM("random_resized_crop bicubic 8 0.5,1",
         "random_resized_crop size=8,8 scale=0.5,1 ratio=0.75,1.3333333333333333 filter=bicubic");
    FORM("tensor nchw f32", "tensor dtype=f32 layout=nchw");
}

TEST(spec_wrong_names_are_answered_with_the_nearest)
{
    FAILS("decode | random_resize_crop 224",
          "pipeline: column 10: no operation 'random_resize_crop'; did you mean "
          "'random_resized_crop'?");
    FAILS("decode | flip", "pipeline: column 10: no operation 'flip'; did you mean 'hflip'?");
    FAILS("decode | erasing",
          "pipeline: column 10: no operation 'erasing'; did you mean 'random_erasing'?");
    FAILS("decode | sepia",
          "pipeline: column 10: no operation 'sepia'; 'penstock ops' lists all operations");
    FAILS("hflip probability=1",
          "pipeline: column 7: hflip has no parameter 'probability'; expected p");
    FAILS("random_resized_crop 8 ration=1,2",
          "pipeline: column 23: random_resized_crop has no parameter 'ration'; did you mean "
          "'ratio'?");
    FAILS("resize 8 bilinar",
          "pipeline: column 10: resize: unknown value 'bilinar'; did you mean 'bilinear'?");
    FAILS("resize 8 filter=cubic",
          "pipeline: column 17: resize: no filter 'cubic'; did you mean 'bicubic'?");
    FAILS("resize 8 filter=best",
          "pipeline: column 17: resize: no filter 'best'; expected bilinear, nearest, bicubic, "
          "lanczos, box");
    FAILS("tensor float32",
          "pipeline: column 8: tensor: unknown value 'float32'; expected auto, u8, f16, bf16, f32, "
          "f64, i64, nhwc, nchw, nthwc, ncthw, ntchw");
    FAILS("decode | random_resized_crop(224) | hflip",
          "pipeline: column 10: random_resized_crop: write values after the name, without "
          "parentheses: "
          "'random_resized_crop 224'");
    FAILS("decode | random_resized_crop(224, scale=(0.5, 1))",
          "pipeline: column 10: random_resized_crop: write values after the name, without "
          "parentheses: "
          "'random_resized_crop 224'");
    FAILS("hflip()",
          "pipeline: column 1: hflip: write values after the name, without parentheses: 'hflip'");
    FAILS(
        "hflip (0.5)",
        "pipeline: column 7: hflip: write values after the name, without parentheses: 'hflip 0.5'");
    FAILS("hflip p=(0.5)", "pipeline: column 9: hflip: p: expected a number, found '(0.5)'");
    FAILS("resize size 8", "pipeline: column 8: resize: write size=... to pass it by name");
}

TEST(spec_wrong_values_are_answered_with_their_place)
{
    FAILS("hflip 1.5", "pipeline: column 7: hflip: p: expected 0 to 1, found '1.5'");
    FAILS("hflip -0.1", "pipeline: column 7: hflip: p: expected 0 to 1, found '-0.1'");
    FAILS("hflip 0x1", "pipeline: column 7: hflip: p: expected a number, found '0x1'");
    FAILS("hflip p=often", "pipeline: column 9: hflip: p: expected a number, found 'often'");
    FAILS("resize 2.5", "pipeline: column 8: resize: size: expected an integer, found '2.5'");
    FAILS("resize 0", "pipeline: column 8: resize: size: expected 1 to 16384, found '0'");
    FAILS("resize 1,2,3", "pipeline: column 8: resize: size: expected 1 or 2 values, found 3");
    FAILS("normalize 1,2,3,4,5",
          "pipeline: column 11: normalize: mean: expected 1 to 4 values, found 5");
    FAILS("hflip 0.5,0.5", "pipeline: column 7: hflip: p: expected 1 value, found 2");
    FAILS("random_resized_crop 8 scale=0.5",
          "pipeline: column 29: random_resized_crop: scale: expected 2 values, found 1");
    FAILS("random_resized_crop 8 scale=1,0.5",
          "pipeline: column 29: random_resized_crop: scale: expected the lower number first");
    FAILS("color_jitter hue=0.6",
          "pipeline: column 18: color_jitter: hue: expected -0.5 to 0.5, found '0.6'");
    FAILS("color_jitter hue=-0.1",
          "pipeline: column 18: color_jitter: hue: expected -0.5 to 0.5, found '-0.1'");
    FAILS("normalize std=0",
          "pipeline: column 15: normalize: std: expected 1e-06 to 1000000, found '0'");
    FAILS("random_rotation nan",
          "pipeline: column 17: random_rotation: degrees: expected a number, found 'nan'");
    FAILS("random_affine 5 scale=1,inf",
          "pipeline: column 25: random_affine: scale: expected a number, found 'inf'");
    FAILS("random_rotation 5 center=nan",
          "pipeline: column 26: random_rotation: center: expected a number, found 'nan'");
    FAILS("normalize inf", "pipeline: column 11: normalize: mean: expected a number, found 'inf'");
    FAILS("rand_augment -inf",
          "pipeline: column 14: rand_augment: num_ops: expected a number, found '-inf'");
}

TEST(spec_missing_twice_and_too_many)
{
    FAILS("decode | resize", "pipeline: column 10: resize needs size, or min_side and max_side: "
                             "'resize 224,224' or 'resize min_side=800 max_side=1333'");
    FAILS("decode | resize 8 max_side=9", "pipeline: column 10: resize: size excludes min_side, "
                                          "max_side, to_multiple_of and enlarge; use "
                                          "min_side for the length of the shorter side");
    FAILS("decode | resize max_side=9 to_multiple_of=10",
          "pipeline: column 10: resize: to_multiple_of: expected at most max_side (9), found 10");
    FAILS("hflip 0.5 p=1", "pipeline: column 11: hflip: p is given twice");
    FAILS("hflip 0.5 1", "pipeline: column 11: hflip: unexpected value '1'; its parameters are: p");
    FAILS("hflip always",
          "pipeline: column 7: hflip: unexpected value 'always'; its parameters are: p");
    FAILS("decode rgb gray",
          "pipeline: column 12: decode: unknown value 'gray'; expected off, auto");
    FAILS("a: decode; a: decode", "pipeline: column 12: field 'a' is given twice");
    FAILS("decode; label: tensor",
          "pipeline: column 1: a pipeline of several fields names each field: 'image: ...'");
}

TEST(spec_wrong_signs)
{
    FAILS("", "pipeline: column 1: expected an operation, found the end");
    FAILS("  ", "pipeline: column 3: expected an operation, found the end");
    FAILS("decode |", "pipeline: column 9: expected an operation, found the end");
    FAILS("decode | | hflip", "pipeline: column 10: expected an operation, found '|'");
    FAILS("decode;", "pipeline: column 8: expected an operation, found the end");
    FAILS("image:", "pipeline: column 7: expected an operation, found the end");
    FAILS("decode = rgb", "pipeline: column 13: expected ':' or 'of=NAME:' after the field of the "
                          "pack, found the end");
    FAILS("decode rgb = 1",
          "pipeline: column 8: decode has no parameter 'rgb'; expected mode, shrink");
    FAILS("hflip p=", "pipeline: column 9: expected a value, found the end");
    FAILS("resize 1,", "pipeline: column 10: expected a value, found the end");
    FAILS("decode\n| hflip",
          "pipeline: column 7: unexpected byte 0x0a; a pipeline is one line of text");
    FAILS("\"image: decode", "pipeline: column 1: the name has no closing quote");
    FAILS("decode \"rgb\"",
          "pipeline: column 8: expected a value, '|', ';' or the end, found 'rgb'");
    /* Columns are characters. */
    FAILS("größe: decode | hflop",
          "pipeline: column 17: no operation 'hflop'; did you mean 'hflip'?");
}

/* A name of any length is cut, between two characters. */
TEST(spec_long_names_are_cut)
{
    char text[200] = "";
    for (int i = 0; i < 60; i++)
        append(text, sizeof text, "ö");
    PenSpec s;
    PenError err = {0};
    CHECK_INT(pen__spec_parse(text, &s, &err), PEN_E_INVALID);
    CHECK(strstr(err.message, "öö...'; 'penstock ops'") != NULL);
}

/* A field of the batch may have another name than that of the pack, which is then behind '='. */
TEST(spec_views_have_names)
{
    FORM("a = image: hflip; b=image:hflip | repeat 8",
         "a = image: hflip p=0.5; b = image: hflip p=0.5 | repeat n=8");
    FORM("m = mask of=a: hflip; \"of\" = of of = \"a b\": hflip",
         "m = mask of=a: hflip p=0.5; of = of of=\"a b\": hflip p=0.5");
    FORM("\"my view\" = \"x=y\": hflip", "\"my view\" = \"x=y\": hflip p=0.5");
    FORM("image = image: hflip", "image: hflip p=0.5");
    FORM("mask = mask of=image: hflip", "mask = mask of=image: hflip p=0.5");
    FORM("a = b: hflip; c = b: hflip; b: hflip",
         "a = b: hflip p=0.5; c = b: hflip p=0.5; b: hflip p=0.5");
    FAILS("a = : hflip", "pipeline: column 5: expected a name, found ':'");
    FAILS("a = | hflip", "pipeline: column 5: expected a name, found '|'");
    FAILS("a =", "pipeline: column 4: expected a name, found the end");
    FAILS("a = b",
          "pipeline: column 6: expected ':' or 'of=NAME:' after the field of the pack, found "
          "the end");
    FAILS("a = b view=c: hflip",
          "pipeline: column 7: expected ':' or 'of=NAME:' after the field of "
          "the pack, found 'view'");
    FAILS("a = b of c: hflip",
          "pipeline: column 7: expected ':' or 'of=NAME:' after the field of the "
          "pack, found 'of'");
    FAILS("a = b of=: hflip", "pipeline: column 10: expected a name, found ':'");
    FAILS("a = b of=c d: hflip", "pipeline: column 12: expected ':', found 'd'");
    FAILS("a = b: hflip; a = c: hflip", "pipeline: column 15: field 'a' is given twice");
    FAILS("a = b = c: hflip",
          "pipeline: column 7: expected ':' or 'of=NAME:' after the field of the "
          "pack, found '='");
    FAILS("a = \"b: hflip", "pipeline: column 5: the name has no closing quote");
    FAILS("a = b: hflip; vflip",
          "pipeline: column 15: a pipeline of several fields names each field: 'image: ...'");
}

TEST(spec_limits_are_errors)
{
    static char text[PEN_MAX_TEXT + 2];
    PenSpec s;
    PenError err = {0};
    memset(text, ' ', sizeof text - 1);
    memcpy(text, "decode", 6);
    CHECK_INT(pen__spec_parse(text, &s, &err), PEN_E_LIMIT);
    CHECK_STR(err.message, "pipeline: longer than 16384 bytes");
    text[PEN_MAX_TEXT] = '\0';
    CHECK_INT(pen__spec_parse(text, &s, &err), PEN_OK);
    pen__spec_free(&s);

    snprintf(text, sizeof text, "decode");
    for (int i = 0; i < PEN_MAX_OPS; i++)
        append(text, sizeof text, "|hflip");
    FAILS(text, "pipeline: column 194: more than 32 operations for one field");
    text[0] = '\0';
    for (int i = 0; i < 65; i++)
        append(text, sizeof text, "%sf%d:decode", i ? ";" : "", i);
    FAILS(text, "pipeline: column 695: more than 64 fields");

    /* Short as it is typed, too long in full. */
    text[0] = '\0';
    for (int i = 0; i < 12; i++) {
        append(text, sizeof text, "%sf%d:color_jitter", i ? ";" : "", i);
        for (int k = 1; k < 32; k++)
            append(text, sizeof text, "|color_jitter");
    }
    CHECK_INT(pen__spec_parse(text, &s, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "with all parameters written out it has") != NULL);
}

/* Every default can be read, and every operation is told apart from the others. */
TEST(spec_table_is_sound)
{
    uint32_t n;
    const PenOp *ops = pen_ops(&n);
    CHECK_INT(n, PEN_N_OPS);
    for (uint32_t i = 0; i < n; i++) {
        char text[200];
        PenSpec s;
        PenError err = {0};
        CHECK(ops[i].n_params <= PEN_MAX_PARAMS && ops[i].help);
        snprintf(text, sizeof text, "%s", ops[i].name);
        for (uint32_t k = 0; k < ops[i].n_params; k++) {
            CHECK(ops[i].params[k].name && ops[i].params[k].help);
            if (!ops[i].params[k].initial)
                append(text, sizeof text,
                       ops[i].params[k].type == PEN_PARAM_OPS ? " [hflip]" : " 1");
        }
        if (strcmp(ops[i].name, "resize") == 0) /* one of two is required */
            append(text, sizeof text, " 1");
        CHECK_INT(pen__spec_parse(text, &s, &err), PEN_OK);
        CHECK(s.fields[0].ops[0].op == &ops[i]);
        pen__spec_free(&s);
    }
}

TEST(spec_names)
{
    const char rest[] = "unit=stored clip=no drop=yes kept=no";
    char form[400], text[400], longest[PEN_MAX_NAME + 2];
    snprintf(form, sizeof form, "points of=auto %s", rest);
    FORM("points", form);
    FORM("points of=auto", form);
    snprintf(form, sizeof form, "points of=image %s", rest);
    FORM("points of=image", form);
    FORM("points of = \"image\"", form);
    /* A word of the parameter is a name when it is quoted. */
    snprintf(form, sizeof form, "points of=\"auto\" %s", rest);
    FORM("points of=\"auto\"", form);
    FORM("labels: keep \"my boxes\"", "labels: keep of=\"my boxes\"");
    FORM("keep boxes | keep of=5", "keep of=boxes | keep of=5");
    FORM("keep 5", "keep of=5");
    FAILS("keep", "pipeline: column 1: keep needs of: field of the pipeline with the operation "
                  "boxes or points");
    FAILS("keep a b", "pipeline: column 8: keep: unexpected value 'b'; its parameters are: of");
    FAILS("keep a,b", "pipeline: column 6: keep: of: expected 1 value, found 2");
    FAILS("keep \"\"", "pipeline: column 6: keep: of: expected a name of 1 to 255 bytes, found ''");
    FAILS("keep of=", "pipeline: column 9: expected a name, found the end");
    FAILS("points image", "pipeline: column 8: points: unknown value 'image'; expected auto, "
                          "stored, absolute, relative, no, yes, yes, no, no, yes");
    FAILS("points 5", "pipeline: column 8: points: unexpected value '5'; its parameters are: of "
                      "unit clip drop kept");
    memset(longest, 'x', sizeof longest);
    longest[PEN_MAX_NAME] = '\0';
    snprintf(text, sizeof text, "keep %s", longest);
    snprintf(form, sizeof form, "keep of=%s", longest);
    FORM(text, form);
    append(text, sizeof text, "y");
    FAILS(text, "pipeline: column 6: keep: of: expected a name of 1 to 255 bytes, found "
                "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'");
}

/* Where a number can be a word, and lists of numbers. */
TEST(spec_numbers_or_words)
{
    FORM("clip", "clip frames=16 stride=2 offset=random pad=last n=1 fps=0 seconds=0 indices=none "
                 "times=no");
    FORM("clip 8 1 center loop 3",
         "clip frames=8 stride=1 offset=center pad=loop n=3 fps=0 seconds=0 indices=none times=no");
    FORM("clip 8 1 12 none yes",
         "clip frames=8 stride=1 offset=12 pad=none n=1 fps=0 seconds=0 indices=none times=yes");
    FORM(
        "clip fps=7.5 offset=0.25",
        "clip frames=16 stride=2 offset=0.25 pad=last n=1 fps=7.5 seconds=0 indices=none times=no");
    FORM("clip indices=9,3,3,0 pad=none",
         "clip frames=16 stride=2 offset=random pad=none n=1 fps=0 seconds=0 indices=9,3,3,0 "
         "times=no");
    FAILS("clip offset=middle",
          "pipeline: column 13: clip: no offset 'middle'; expected random, center");
    FAILS("clip offset=centre",
          "pipeline: column 13: clip: no offset 'centre'; did you mean 'center'?");
    FAILS("clip offset=-1",
          "pipeline: column 13: clip: offset: expected 0 to 1000000000, found '-1'");
    FAILS("clip offset=1,2", "pipeline: column 13: clip: offset: expected 1 value, found 2");
    FAILS("clip indices=1,none",
          "pipeline: column 16: clip: indices: expected a number, found 'none'");
    FAILS("clip indices=1.5",
          "pipeline: column 14: clip: indices: expected an integer, found '1.5'");
    FAILS("clip frames=0", "pipeline: column 13: clip: frames: expected 1 to 4096, found '0'");
    char text[400] = "clip indices=0";
    for (int i = 1; i < 64; i++)
        append(text, sizeof text, ",%d", i);
    CHECK_INT(pen_pipeline_check(text, NULL, 0, NULL, NULL), PEN_OK);
    append(text, sizeof text, ",64");
    FAILS(text, "pipeline: column 14: clip: indices: expected 1 to 64 values, found more than 64");
}

TEST(spec_check_cuts_to_the_buffer)
{
    char buf[8];
    size_t bytes = 0;
    memset(buf, 'x', sizeof buf);
    CHECK_INT(pen_pipeline_check("decode", buf, 7, &bytes, NULL), PEN_OK);
    CHECK_STR(buf, "decode");
    CHECK_INT(buf[7], 'x');
    CHECK_INT(bytes, strlen("decode mode=rgb"));
    CHECK_INT(pen_pipeline_check("decode", NULL, 0, NULL, NULL), PEN_OK);
    CHECK_INT(pen_pipeline_check(NULL, NULL, 0, NULL, NULL), PEN_E_INVALID);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 11;
}

/* Any number is written so that it is read as the same one. */
TEST(decimal_writes_what_it_reads)
{
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        char buf[PEN_DECIMAL_TEXT];
        double v = (double)(int64_t)(next_random(&state) - (1ull << 52)), back = 0;
        for (uint64_t k = next_random(&state) % 40; k > 0; k--)
            v /= 7;
        pen__decimal_write(v, buf);
        CHECK_INT(pen__decimal_parse(buf, strlen(buf), &back), 0);
        CHECK(back == v);
    }
}

TEST(decimal_takes_only_decimals)
{
    static const char *const bad[] = {"",      ".",   "-",   "e5",    "1e",  "1e+",   "1x", " 1",
                                      "0x1p3", "inf", "nan", "1e999", "+-1", "1.2.3", "1,5"};
    double v = 0;
    for (size_t i = 0; i < PEN_LEN(bad); i++)
        CHECK_INT(pen__decimal_parse(bad[i], strlen(bad[i]), &v), -1);
    CHECK_INT(pen__decimal_parse("-.5e1", 5, &v), 0);
    CHECK(v == -5);
    CHECK_INT(pen__decimal_parse("2.", 2, &v), 0);
    CHECK(v == 2);
}

/* Where the decimal point is a comma. */
TEST(decimal_is_the_same_in_every_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    char buf[PEN_DECIMAL_TEXT];
    double v = 0;
    const char *set = NULL;
    for (size_t i = 0; i < PEN_LEN(names) && !set; i++)
        set = setlocale(LC_ALL, names[i]);
    pen__decimal_write(0.1, buf);
    int r = pen__decimal_parse("0.25", 4, &v);
    setlocale(LC_ALL, "C");
    CHECK_STR(buf, "0.1");
    CHECK_INT(r, 0);
    CHECK(v == 0.25);
    if (!set)
        SKIP("no locale with a decimal comma is installed");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(spec_full_form_has_every_parameter);
    RUN(spec_lists);
    RUN(spec_full_form_is_that_of_earlier_builds);
    RUN(spec_words_find_their_parameter);
    RUN(spec_wrong_names_are_answered_with_the_nearest);
    RUN(spec_wrong_values_are_answered_with_their_place);
    RUN(spec_missing_twice_and_too_many);
    RUN(spec_wrong_signs);
    RUN(spec_long_names_are_cut);
    RUN(spec_views_have_names);
    RUN(spec_limits_are_errors);
    RUN(spec_table_is_sound);
    RUN(spec_names);
    RUN(spec_numbers_or_words);
    RUN(spec_check_cuts_to_the_buffer);
    RUN(decimal_writes_what_it_reads);
    RUN(decimal_takes_only_decimals);
    RUN(decimal_is_the_same_in_every_locale);
    return TEST_END();
}
