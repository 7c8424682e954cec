/* SPDX-License-Identifier: Apache-2.0 */
/* Operations in brackets: their text, their errors, and which of them run. */
#include "ops/operations/op.h"
#include "ops/pipeline/geometry.h"
#include "ops/run/program.h"
#include "test.h"

static const PenFieldKind image = {.kind = PEN_KIND_IMAGE};
static const PenFieldKind mask = {.kind = PEN_KIND_MASK};

static void expect_form(const char *text, const char *form)
{
    PenError err = {0};
    char buf[1000];
    size_t bytes = 0;
    if (pen_pipeline_check(text, buf, sizeof buf, &bytes, &err) != PEN_OK)
        CHECK_STR(err.message, "no error");
    CHECK_STR(buf, form);
    CHECK_INT(pen_pipeline_check(form, buf, sizeof buf, &bytes, &err), PEN_OK);
    CHECK_STR(buf, form);
}

static void expect_fail(const char *text, const char *message)
{
    PenError err = {0};
    CHECK_INT(pen_pipeline_check(text, NULL, 0, NULL, &err), PEN_E_INVALID);
    CHECK_STR(err.message, message);
}

#define FORM(text, form) (expect_form(text, form), (void)0)
#define FAILS(text, message) (expect_fail(text, "pipeline: " message), (void)0)

TEST(compose_full_form)
{
    FORM("random_apply [hflip]", "random_apply p=0.5 [hflip p=0.5]");
    FORM("random_apply 0.8 [hflip 1|vflip]", "random_apply p=0.8 [hflip p=1 | vflip p=0.5]");
    FORM("random_apply [ hflip ] p=0.8 | vflip", "random_apply p=0.8 [hflip p=0.5] | vflip p=0.5");
    FORM("random_choice [hflip][vflip]p=1,2 ", "random_choice p=1,2 [hflip p=0.5] [vflip p=0.5]");
    FORM("random_choice [hflip | grayscale]",
         "random_choice p=equal [hflip p=0.5 | grayscale p=1]");
    FORM("random_order [hflip | random_apply [grayscale] | random_choice [hflip] [random_order "
         "[vflip]]]",
         "random_order [hflip p=0.5 | random_apply p=0.5 [grayscale p=1] | random_choice p=equal "
         "[hflip p=0.5] [random_order [vflip p=0.5]]]");
    FORM("random_apply [random_apply [random_apply [random_apply [hflip]]]]",
         "random_apply p=0.5 [random_apply p=0.5 [random_apply p=0.5 [random_apply p=0.5 [hflip "
         "p=0.5]]]]");
}

/* Brackets are signs behind the name of a composition alone: names had them before. */
TEST(compose_leaves_brackets_in_names)
{
    FORM("a[0]: decode; [b] = x]: hflip; c: points of=[d]",
         "a[0]: decode mode=rgb; [b] = x]: hflip p=0.5; c: points of=[d] unit=stored clip=no "
         "drop=yes kept=no");
    FORM("a: random_apply [hflip]; [b]: decode",
         "a: random_apply p=0.5 [hflip p=0.5]; [b]: decode mode=rgb");
    FORM("a: random_apply [hflip] | vflip; [b]: decode",
         "a: random_apply p=0.5 [hflip p=0.5] | vflip p=0.5; [b]: decode mode=rgb");
}

TEST(compose_errors)
{
    FAILS("random_apply", "column 1: random_apply needs operations in brackets: 'random_apply "
                          "[hflip]'");
    FAILS("hflip | random_apply hflip",
          "column 22: random_apply: put its operations in brackets: 'random_apply [hflip]'");
    FAILS("random_apply[hflip]", "column 1: write a space before '['");
    FAILS("random_apply [", "column 15: expected an operation, found the end");
    FAILS("random_apply [hflip", "column 20: expected a value, '|' or ']', found the end");
    FAILS("random_apply [hflip |", "column 22: expected an operation, found the end");
    FAILS("random_apply []", "column 15: expected an operation, found ']'");
    FAILS("random_apply [hflip;vflip]", "column 20: expected a value, '|' or ']', found ';'");
    FAILS("random_apply [hflip]]",
          "column 21: expected a value, '[', '|', ';' or the end, found ']'");
    FAILS("random_apply [random_apply [hflip] =]",
          "column 36: expected a value, '[', '|' or ']', found '='");
    FAILS("random_apply [hflip [vflip]]", "column 21: expected a value, '|' or ']', found '['");
    FAILS("random_apply [hflip] [vflip]", "column 1: random_apply: expected one bracket, found 2; "
                                          "separate operations by '|'");
    FAILS("random_apply [random_apply [random_apply [random_apply [random_apply [hflip]]]]]",
          "column 70: more than 4 brackets inside each other");
    FAILS("random_apply ops=1 [hflip]", "column 14: random_apply has no parameter 'ops'; expected "
                                        "p");
    FAILS("random_order 4 [hflip]", "column 14: random_order takes no parameter, found '4'");
    FAILS("random_choice p=1,2 [hflip]", "column 1: random_choice: p has 2 numbers for 1 bracket");
    FAILS("random_choice [hflip] [vflip] p=1",
          "column 1: random_choice: p has 1 number for 2 brackets");
    FAILS("random_choice [hflip] p=0",
          "column 1: random_choice: p: expected a number above 0, found none");
    FAILS("random_choice [hflip] p=-1",
          "column 25: random_choice: p: expected 0 to 1000000, found '-1'");
    FAILS("random_apply [hflip] p=1 p=1", "column 26: random_apply: p is given twice");
    FAILS("random_apply [[hflip]]", "column 15: expected an operation, found '['");
}

TEST(compose_holds_what_keeps_the_size)
{
#define RULE                                                                                       \
    " cannot be inside random_apply: operations in brackets change colors or move pixels, and "    \
    "keep the size of the image"
    FAILS("random_apply [hflip | decode]", "column 23: decode" RULE);
    FAILS("random_apply [resize 8]", "column 15: resize" RULE);
    FAILS("random_apply [random_crop 8]", "column 15: random_crop" RULE);
    FAILS("random_apply [center_crop 8]", "column 15: center_crop" RULE);
    FAILS("random_apply [three_crop 8]", "column 15: three_crop" RULE);
    FAILS("random_apply [clip]", "column 15: clip" RULE);
    FAILS("random_apply [normalize]", "column 15: normalize" RULE);
    FAILS("random_apply [tensor]", "column 15: tensor" RULE);
    FAILS("random_apply [repeat 2]", "column 15: repeat" RULE);
    FAILS("random_apply [text]", "column 15: text" RULE);
    FAILS("random_apply [boxes]", "column 15: boxes" RULE);
#undef RULE
}

static PenProgram *program(const char *text, const PenFieldKind *kind)
{
    PenSpec s = {0};
    PenProgram *p = NULL;
    PenError err = {0};
    int r = pen__spec_parse(text, &s, &err);
    if (r == PEN_OK)
        r = pen__program_new(&s.fields[0], kind, &p, &err);
    if (r < 0)
        test__fail(__FILE__, __LINE__, "%s: %s", text, err.message);
    pen__spec_free(&s);
    return p;
}

static void program_fails(const char *text, const PenFieldKind *kind, const char *message)
{
    PenSpec s = {0};
    PenProgram *p = NULL;
    PenError err = {0};
    CHECK_INT(pen__spec_parse(text, &s, &err), PEN_OK);
    CHECK_INT(pen__program_new(&s.fields[0], kind, &p, &err), PEN_E_INVALID);
    CHECK_STR(err.message, message);
    pen__spec_free(&s);
}

TEST(compose_programs)
{
    program_fails("decode | random_crop 8 | normalize | random_apply [hflip] | tensor f32", &image,
                  "pipeline: column 38: random_apply after normalize: only random_erasing and "
                  "tensor can follow; move it before normalize");
    program_fails("random_apply [hflip]", &image,
                  "pipeline: column 1: random_apply: an image must be decoded first: 'decode | "
                  "random_apply'");
    program_fails("decode gray | random_crop 8 | random_apply [hflip | grayscale]", &image,
                  "pipeline: column 53: grayscale needs colors, but 'decode gray' removes them; "
                  "use 'decode rgb'");
    program_fails("decode | random_crop 8 | random_apply [grayscale]", &mask,
                  "pipeline: column 26: random_apply: a mask holds class numbers, not colors; "
                  "remove this operation");
    program_fails(
        "random_apply [hflip]", &(PenFieldKind){.kind = PEN_KIND_NUMBER, .dtype = PEN_I64},
        "pipeline: column 1: random_apply: the field holds numbers; only one_hot and tensor can be "
        "used on them");
    PenProgram *p = program("decode | random_crop 8 | random_apply [hflip | grayscale]", &mask);
    pen__program_free(&p);
}

/* Of alternatives the longest counts, of the others all: 1 + 1 + 4 n steps. */
TEST(compose_counts_the_worst_case)
{
#define JITTER "color_jitter"
#define THREE JITTER " | " JITTER " | " JITTER
#define SEVEN THREE " | " THREE " | " JITTER
    PenProgram *p =
        program("decode | random_crop 8 | random_choice [" SEVEN "] [" SEVEN "] [hflip]", &image);
    pen__program_free(&p);
    p = program("decode | random_crop 8 | random_order [" SEVEN "]", &image);
    pen__program_free(&p);
    program_fails("decode | random_crop 8 | random_order [" SEVEN " | " JITTER "]", &image,
                  "pipeline: column 26: random_order: too many operations for one image: more than "
                  "32 steps");
    program_fails("decode | random_crop 8 | random_choice [hflip] [" SEVEN "] [hflip] [" SEVEN
                  " | random_apply [" JITTER "]]",
                  &image,
                  "pipeline: column 26: random_choice: too many operations for one image: more "
                  "than 32 steps");
}

enum { DRAWS = 20000 };

static PenSamplePlan plan_of(const PenProgram *p, uint64_t sample)
{
    static PenSamplePlan plan;
    PenError err = {0};
    PenImageShape shape = {40, 30, 1, 0};
    if (pen__sample_plan_make(p, &shape, pen__draw_key(3, 4), sample, &plan, &err) < 0)
        test__fail(__FILE__, __LINE__, "%s", err.message);
    return plan;
}

/* Within five standard deviations. */
static void expect_share(uint32_t found, double p)
{
    double want = DRAWS * p, off = (double)found - want;
    CHECK(off * off <= 25 * DRAWS * p * (1 - p));
}

TEST(compose_apply_draws_with_its_probability)
{
    PenProgram *p =
        program("decode | random_crop 8 | random_apply p=0.8 [grayscale | hflip 1]", &image);
    uint32_t n = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        PenSamplePlan plan = plan_of(p, i);
        n += plan.n_steps > 1;
        CHECK_INT(plan.n_steps, plan.n_steps > 1 ? 3 : 1); /* the flip is a pass behind the grey */
    }
    expect_share(n, 0.8);
    pen__program_free(&p);
}

TEST(compose_choice_draws_by_weight)
{
    static const double weights[4] = {0.2, 0, 0.3, 0.5};
    uint32_t n[4] = {0};
    PenProgram *p = program("decode | random_crop 8 | random_choice p=2,0,3,5 [grayscale] [vflip] "
                            "[hflip 1] [color_jitter hue=0.1]",
                            &image);
    for (uint64_t i = 0; i < DRAWS; i++) {
        PenSamplePlan plan = plan_of(p, i);
        const PenPass *pass = &plan.steps[0].u.pass;
        int32_t kind = plan.n_steps > 1 ? plan.steps[1].kind : 0;
        n[kind == PEN_STEP_GREY ? 0 : kind == PEN_STEP_HUE ? 3 : pass->flip_x ? 2 : 1]++;
    }
    for (int i = 0; i < 4; i++)
        expect_share(n[i], weights[i]);
    pen__program_free(&p);
}

TEST(compose_order_draws_each_order)
{
    uint32_t n[6] = {0};
    PenProgram *p = program("decode | random_crop 8 | random_order [grayscale | color_jitter "
                            "hue=0.1 | color_jitter contrast=0.1]",
                            &image);
    for (uint64_t i = 0; i < DRAWS; i++) {
        PenSamplePlan plan = plan_of(p, i);
        int32_t a = plan.steps[1].kind, b = plan.steps[2].kind;
        CHECK_INT(plan.n_steps, 4);
        n[a == PEN_STEP_GREY  ? (b == PEN_STEP_HUE ? 0 : 1)
          : a == PEN_STEP_HUE ? (b == PEN_STEP_GREY ? 2 : 3)
                              : (b == PEN_STEP_GREY ? 4 : 5)]++;
    }
    for (int i = 0; i < 6; i++)
        expect_share(n[i], 1.0 / 6);
    pen__program_free(&p);
}

/* The draws of an operation are the same in brackets and outside of them. */
TEST(compose_inner_operations_keep_their_draws)
{
    PenProgram *plain = program("decode | random_crop 8 | color_jitter 0.4 0.4 0.4 0.1", &image);
    PenProgram *in = program("decode | random_crop 8 | random_apply p=0.5 [color_jitter 0.4 0.4 "
                             "0.4 0.1]",
                             &image);
    for (uint64_t i = 0; i < 100; i++) {
        PenSamplePlan a = plan_of(plain, i), b = plan_of(in, i);
        CHECK_INT(a.n_steps, 5);
        CHECK(b.n_steps == 1 || b.n_steps == 5);
        for (uint32_t k = 0; k < b.n_steps; k++)
            CHECK_INT(a.steps[k].kind, b.steps[k].kind);
        for (uint32_t k = 1; k < b.n_steps; k++)
            CHECK_INT(a.steps[k].u.factor, b.steps[k].u.factor);
    }
    pen__program_free(&plain);
    pen__program_free(&in);
}

/* A mask lacks the compositions that change colours alone, and moves as its image does. */
TEST(compose_masks_follow)
{
    PenProgram *a = program("decode | random_crop 8 | random_apply [grayscale] | random_apply "
                            "[color_jitter 0.4 | hflip 1] | random_choice [vflip 1] [grayscale]",
                            &image);
    PenProgram *b = program("decode | random_crop 8 | random_apply [color_jitter 0.4 | hflip 1] | "
                            "random_choice [vflip 1] [grayscale]",
                            &mask);
    uint32_t flips = 0;
    for (uint64_t i = 0; i < 200; i++) {
        PenSamplePlan of_image = plan_of(a, i), of_mask = plan_of(b, i);
        uint8_t x = 0, y = 0;
        for (uint32_t k = 0; k < of_image.n_steps; k++)
            if (of_image.steps[k].kind == PEN_STEP_PASS) {
                x ^= of_image.steps[k].u.pass.flip_x;
                y ^= of_image.steps[k].u.pass.flip_y;
            }
        CHECK_INT(of_mask.n_steps, 1);
        CHECK_INT(of_mask.steps[0].u.pass.flip_x, x);
        CHECK_INT(of_mask.steps[0].u.pass.flip_y, y);
        flips += x;
    }
    CHECK(flips > 50 && flips < 150);
    pen__program_free(&a);
    pen__program_free(&b);
}

static bool differs(const char *text, const PenOp **ret)
{
    PenSpec s = {0};
    PenError err = {0};
    const PenSpecOp *a = NULL, *b = NULL;
    if (pen__spec_parse(text, &s, &err) < 0)
        return false;
    bool found = pen__geometry_differs(&s.fields[0], &s.fields[1], &a, &b);
    *ret = a ? a->op : NULL;
    pen__spec_free(&s);
    return found;
}

TEST(compose_geometry_of_masks)
{
    const PenOp *op = NULL;
    CHECK(!differs("a: decode | random_apply [grayscale] | random_apply [hflip]; b: decode | "
                   "random_apply [hflip]",
                   &op));
    CHECK(differs("a: decode | random_apply [hflip]; b: decode | hflip", &op));
    CHECK(op && pen__op_number(op) == PEN_OP_random_apply);
    CHECK(differs("a: decode | random_apply [hflip]; b: decode | random_apply 0.6 [hflip]", &op));
    CHECK(differs("a: decode | random_apply [hflip]; b: decode | random_apply [hflip 1]", &op));
    CHECK(differs("a: decode | random_choice [hflip] [vflip]; b: decode | random_choice [hflip | "
                  "vflip]",
                  &op));
    CHECK(differs("a: decode | random_order [hflip | grayscale]; b: decode | random_order [hflip]",
                  &op));
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(compose_full_form);
    RUN(compose_leaves_brackets_in_names);
    RUN(compose_errors);
    RUN(compose_holds_what_keeps_the_size);
    RUN(compose_programs);
    RUN(compose_counts_the_worst_case);
    RUN(compose_apply_draws_with_its_probability);
    RUN(compose_choice_draws_by_weight);
    RUN(compose_order_draws_each_order);
    RUN(compose_inner_operations_keep_their_draws);
    RUN(compose_masks_follow);
    RUN(compose_geometry_of_masks);
    return TEST_END();
}
