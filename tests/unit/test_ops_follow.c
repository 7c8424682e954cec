/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/sample/follow.h"

#include <math.h>

#include "ops/run/program.h"
#include "test.h"

static const PenImageShape plain = {100, 80, 1, 0};
static const PenFollowRule xyxy = {
    .stored = PEN_COORDS_XYXY, .wanted = PEN_COORDS_XYXY, .clip = 1, .drop = 1, .min_size = 1};

static PenSamplePlan plan_of(const char *text, PenImageShape shape)
{
    PenSamplePlan plan = {.shrink = 0};
    PenSpec s = {0};
    PenProgram *p = NULL;
    PenError err = {0};
    PenFieldKind image = {.kind = PEN_KIND_IMAGE};
    int r = pen__spec_parse(text, &s, &err);
    if (r == PEN_OK)
        r = pen__program_new(&s.fields[0], &image, &p, &err);
    if (r == PEN_OK)
        r = pen__sample_plan_make(p, &shape, pen__draw_key(3, 4), 4, &plan, &err);
    if (r < 0)
        test__fail(__FILE__, __LINE__, "%s: %s", text, err.message);
    pen__program_free(&p);
    pen__spec_free(&s);
    return plan;
}

/* One row; how many are left. */
static uint32_t follow(const PenFollowRule *rule, const char *text, PenImageShape shape, float *row)
{
    PenSamplePlan plan = plan_of(text, shape);
    uint32_t n = 99;
    PenError err = {0};
    int r = pen__follow_rows(rule, &plan, row, 1, NULL, &n, &err);
    if (r < 0)
        test__fail(__FILE__, __LINE__, "%s: %s", text, err.message);
    return n;
}

static void check_row(const float *found, const float *expected, uint32_t n, const char *what)
{
    for (uint32_t i = 0; i < n; i++)
        if (found[i] != expected[i])
            test__fail(__FILE__, __LINE__, "%s: number %u: expected %.9g, found %.9g", what, i,
                       (double)expected[i], (double)found[i]);
}

TEST(follow_crops_resizes_flips)
{
    static const struct {
        const char *text;
        float box[4], expected[4];
    } cases[] = {
        {"decode | center_crop 80,100", {10, 20, 30, 50}, {10, 20, 30, 50}},
        {"decode | center_crop 40,60", {10, 20, 30, 50}, {0, 0, 10, 30}},
        {"decode | center_crop 120,140", {10, 20, 30, 50}, {30, 40, 50, 70}},
        {"decode | resize 40,200", {10, 20, 30, 50}, {20, 10, 60, 25}},
        {"decode | center_crop 80,100 | hflip 1", {10, 20, 30, 50}, {70, 20, 90, 50}},
        {"decode | center_crop 80,100 | vflip 1", {10, 20, 30, 50}, {10, 30, 30, 60}},
        {"decode | hflip 1 | center_crop 80,60", {10, 20, 30, 50}, {50, 20, 60, 50}},
        {"decode | resize 160,200 | center_crop 100", {40, 20, 60, 50}, {30, 10, 70, 70}},
        {"decode | hflip 1 | resize 40,50 | vflip 1", {10, 20, 30, 50}, {35, 15, 45, 30}},
        /* What a first crop has removed does not return with the padding of a second one. */
        {"decode | center_crop 40 | center_crop 80", {0, 0, 100, 80}, {20, 20, 60, 60}},
        {"decode | resize 40,50 | color_jitter 0.5 | resize 80,100 | hflip 1",
         {10, 20, 30, 50},
         {70, 20, 90, 50}},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        float row[4];
        memcpy(row, cases[i].box, sizeof row);
        CHECK_INT(follow(&xyxy, cases[i].text, plain, row), 1);
        check_row(row, cases[i].expected, 4, cases[i].text);
    }
}

/* Coordinates are those of the upright image, whatever lies in the file. */
TEST(follow_upright_coordinates)
{
    for (uint8_t orientation = 1; orientation <= 8; orientation++) {
        PenImageShape stored = {100, 80, orientation, 0};
        if (orientation > 4)
            stored = (PenImageShape){80, 100, orientation, 0};
        float row[4] = {10, 20, 30, 50}, expected[4] = {0, 0, 20, 60};
        CHECK_INT(follow(&xyxy, "decode | center_crop 40,80 | resize 80,80", stored, row), 1);
        check_row(row, expected, 4, "orientation");
    }
}

/* An image that is decoded at a smaller size has its boxes at the same places, to the bit. */
TEST(follow_shrunk_image)
{
    static const char *const texts[] = {
        "random_resized_crop 24 | hflip 1", "hflip 1 | random_resized_crop 24 | vflip 1",
        "resize 31 | center_crop 24",       "vflip 1 | random_crop 300 | resize 24,50 | hflip 1",
        "resize 60,50 | resize 97,33",      "center_crop 201,333 | resize 24,31",
    };
    for (uint32_t k = 0; k < PEN_LEN(texts) * 9; k++) {
        PenImageShape shape = {643, 487, (uint8_t)(k % 9), 1};
        char full[100], small[100];
        float a[4] = {101.3f, 97, 377.7f, 401.1f}, b[4] = {101.3f, 97, 377.7f, 401.1f};
        snprintf(full, sizeof full, "decode | %s", texts[k / 9]);
        snprintf(small, sizeof small, "decode shrink=auto | %s", texts[k / 9]);
        CHECK(plan_of(small, shape).shrink > 0);
        CHECK_INT(follow(&xyxy, full, shape, a), 1);
        CHECK_INT(follow(&xyxy, small, shape, b), 1);
        check_row(b, a, 4, small);
    }
}

TEST(follow_formats)
{
    static const struct {
        PenCoordinates coordinates;
        int relative;
        float stored[4], expected[4]; /* of the same box, before and after */
    } cases[] = {
        {PEN_COORDS_XYXY, 0, {10, 20, 30, 60}, {70, 10, 90, 30}},
        {PEN_COORDS_XYWH, 0, {10, 20, 20, 40}, {70, 10, 20, 20}},
        {PEN_COORDS_CXCYWH, 0, {20, 40, 20, 40}, {80, 20, 20, 20}},
        {PEN_COORDS_XYXY, 1, {0.1f, 0.25f, 0.3f, 0.75f}, {0.7f, 0.25f, 0.9f, 0.75f}},
        {PEN_COORDS_XYWH, 1, {0.1f, 0.25f, 0.2f, 0.5f}, {0.7f, 0.25f, 0.2f, 0.5f}},
        {PEN_COORDS_CXCYWH, 1, {0.2f, 0.5f, 0.2f, 0.5f}, {0.8f, 0.5f, 0.2f, 0.5f}},
    };
    for (size_t i = 0; i < PEN_LEN(cases) * PEN_LEN(cases); i++) {
        size_t from = i / PEN_LEN(cases), to = i % PEN_LEN(cases);
        PenFollowRule rule = xyxy;
        rule.stored = cases[from].coordinates;
        rule.stored_relative = cases[from].relative;
        rule.wanted = cases[to].coordinates;
        rule.wanted_relative = cases[to].relative;
        float row[4];
        memcpy(row, cases[from].stored, sizeof row);
        CHECK_INT(follow(&rule, "decode | resize 40,100 | hflip 1", plain, row), 1);
        for (uint32_t k = 0; k < 4; k++)
            CHECK(fabsf(row[k] - cases[to].expected[k]) < 1e-5f);
    }
}

TEST(follow_drops_what_is_not_visible)
{
    static const char *const crop = "decode | center_crop 40"; /* of x 30 to 70, y 20 to 60 */
    static const struct {
        float box[4];
        double min_size, min_area, min_visibility;
        uint32_t kept;
    } cases[] = {
        {{0, 0, 30, 80}, 0, 0, 0, 0},     {{0, 0, 30.25f, 80}, 0, 0, 0, 1},
        {{70, 0, 90, 80}, 0, 0, 0, 0},    {{30, 20, 70, 60}, 40, 1600, 1, 1},
        {{0, 0, 30.5f, 80}, 1, 0, 0, 0},  {{0, 0, 31, 80}, 1, 0, 0, 1},
        {{20, 20, 40, 60}, 0, 0, 0.5, 1}, {{20, 20, 40, 60}, 0, 0, 0.51, 0},
        {{20, 20, 40, 60}, 0, 400, 0, 1}, {{20, 20, 40, 60}, 0, 401, 0, 0},
        {{40, 30, 40, 50}, 0, 0, 0, 0},   {{-1e30f, -1e30f, 1e30f, 1e30f}, 40, 0, 0, 1},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenFollowRule rule = xyxy;
        float row[4];
        rule.min_size = cases[i].min_size;
        rule.min_area = cases[i].min_area;
        rule.min_visibility = cases[i].min_visibility;
        for (rule.clip = 0; rule.clip < 2; rule.clip++) {
            memcpy(row, cases[i].box, sizeof row);
            CHECK_INT(follow(&rule, crop, plain, row), cases[i].kept);
        }
    }
}

/* A box that only touches the crop has no area there, at any scale. */
TEST(follow_edges_are_exact)
{
    PenFollowRule rule = xyxy;
    rule.min_size = 0;
    for (uint32_t size = 1; size < 200; size++) {
        char text[80];
        snprintf(text, sizeof text, "decode | center_crop 33 | resize %u,%u | hflip 1", size, size);
        PenSamplePlan plan = plan_of(text, plain);
        float x = (float)plan.steps[0].u.pass.crop.x, y = (float)plan.steps[0].u.pass.crop.y;
        float rows[5][4] = {{0, 0, x, 80},
                            {x + 33, 0, 100, 80},
                            {0, 0, 100, y},
                            {0, y + 33, 100, 80},
                            {x, y, x + 33, y + 33}};
        float all[4] = {0, 0, (float)size, (float)size};
        int64_t kept[5];
        uint32_t n = 0;
        CHECK_INT(pen__follow_rows(&rule, &plan, rows[0], 5, kept, &n, NULL), PEN_OK);
        CHECK_INT(n, 1);
        CHECK_INT(kept[0], 4);
        check_row(rows[0], all, 4, text);
    }
}

TEST(follow_without_clip_or_drop)
{
    static const char *const crop = "decode | center_crop 40";
    PenFollowRule rule = xyxy;
    float a[4] = {0, 30, 50, 40}, expected[4] = {-30, 10, 20, 20};
    rule.clip = 0;
    CHECK_INT(follow(&rule, crop, plain, a), 1);
    check_row(a, expected, 4, "no clip");
    rule.clip = 1;
    rule.drop = 0;
    float b[4] = {80, 30, 90, 40}, edge[4] = {40, 10, 40, 20};
    CHECK_INT(follow(&rule, crop, plain, b), 1);
    check_row(b, edge, 4, "no drop");
    /* Nothing of the image is to be seen, not even next to the crop. */
    PenSamplePlan plan = plan_of("decode | center_crop 40 | vflip 1", plain);
    plan.steps[0].u.pass.y = -90;
    float c[4] = {40, 30, 50, 40}, bottom[4] = {10, 0, 20, 0};
    uint32_t n = 0;
    CHECK_INT(pen__follow_rows(&rule, &plan, c, 1, NULL, &n, NULL), PEN_OK);
    check_row(c, bottom, 4, "no image");
}

TEST(follow_keeps_the_order)
{
    PenSamplePlan plan = plan_of("decode | center_crop 40", plain);
    float rows[4][4] = {{0, 0, 10, 10}, {30, 20, 40, 30}, {90, 0, 99, 9}, {40, 40, 60, 60}};
    float expected[8] = {0, 0, 10, 10, 10, 20, 30, 40};
    int64_t kept[4] = {0};
    uint32_t n = 0;
    CHECK_INT(pen__follow_rows(&xyxy, &plan, rows[0], 4, kept, &n, NULL), PEN_OK);
    CHECK_INT(n, 2);
    CHECK_INT(kept[0], 1);
    CHECK_INT(kept[1], 3);
    check_row(rows[0], expected, 8, "kept");
    CHECK_INT(pen__follow_rows(&xyxy, &plan, NULL, 0, NULL, &n, NULL), PEN_OK);
    CHECK_INT(n, 0);
}

TEST(follow_boxes_that_are_none)
{
    static const float inf = INFINITY, nan = NAN, most = 3e38f;
    const float rows[][4] = {{nan, 0, 50, 50},      {0, 0, 50, nan}, {-inf, 0, 50, 50},
                             {0, 0, inf, 50},       {60, 0, 40, 50}, {0, 60, 50, 50},
                             {-inf, -inf, inf, inf}};
    PenSamplePlan plan = plan_of("decode | center_crop 40 | resize 80,80", plain);
    PenFollowRule all = xyxy;
    all.drop = 0;
    for (size_t i = 0; i < PEN_LEN(rows); i++) {
        float row[4];
        PenError err = {0};
        uint32_t n = 9;
        memcpy(row, rows[i], sizeof row);
        CHECK_INT(pen__follow_rows(&xyxy, &plan, row, 1, NULL, &n, &err), PEN_OK);
        CHECK_INT(n, 0);
        memcpy(row, rows[i], sizeof row);
        CHECK_INT(pen__follow_rows(&all, &plan, row, 1, NULL, &n, &err), PEN_E_DECODE);
        CHECK(strstr(err.message, "box 0: expected finite numbers"));
    }
    /* In the result a number is beyond float32: without clip it is no box either. */
    float row[4] = {-most, 0, 50, 50};
    uint32_t n = 9;
    all.clip = 0;
    CHECK_INT(pen__follow_rows(&all, &plan, row, 1, NULL, &n, NULL), PEN_E_DECODE);
    all.drop = 1;
    row[0] = -most;
    CHECK_INT(pen__follow_rows(&all, &plan, row, 1, NULL, &n, NULL), PEN_OK);
    CHECK_INT(n, 0);
    float clipped[4] = {-most, 0, most, 50}, expected[4] = {0, 0, 80, 60};
    CHECK_INT(pen__follow_rows(&xyxy, &plan, clipped, 1, NULL, &n, NULL), PEN_OK);
    CHECK_INT(n, 1);
    check_row(clipped, expected, 4, "huge");
}

static PenFollowRule points_rule(uint32_t points, int drop)
{
    return (PenFollowRule){
        .stored = PEN_COORDS_POINTS, .wanted = PEN_COORDS_POINTS, .points = points, .drop = drop};
}

TEST(follow_points)
{
    PenSamplePlan plan = plan_of("decode | center_crop 40 | resize 80,80 | hflip 1", plain);
    PenFollowRule rule = points_rule(1, 1);
    /* Of x 30 to 70, y 20 to 60; points on its edge are in it. */
    float rows[5][2] = {{30, 20}, {29.5f, 30}, {70, 60}, {50, 61}, {40, 30}};
    float expected[6] = {80, 0, 0, 80, 60, 20};
    int64_t kept[5];
    uint32_t n = 0;
    CHECK_INT(pen__follow_width(&rule), 2);
    CHECK_INT(pen__follow_rows(&rule, &plan, rows[0], 5, kept, &n, NULL), PEN_OK);
    CHECK_INT(n, 3);
    CHECK_INT(kept[1], 2);
    check_row(rows[0], expected, 6, "points");
    /* Rows of several points: one of them has to be visible. */
    rule = points_rule(2, 1);
    float pairs[2][4] = {{0, 0, 50, 40}, {0, 0, 10, 10}}, one[4] = {140, -40, 40, 40};
    CHECK_INT(pen__follow_rows(&rule, &plan, pairs[0], 2, kept, &n, NULL), PEN_OK);
    CHECK_INT(n, 1);
    check_row(pairs[0], one, 4, "pairs");
    rule = points_rule(2, 0);
    rule.clip = rule.wanted_relative = 1;
    float clipped[4] = {0, 0, 50, 40}, edge[4] = {1, 0, 0.5f, 0.5f};
    CHECK_INT(pen__follow_rows(&rule, &plan, clipped, 1, NULL, &n, NULL), PEN_OK);
    check_row(clipped, edge, 4, "clipped");
}

/* Points that are not known are often NaN. */
TEST(follow_points_that_are_not_numbers)
{
    PenSamplePlan plan = plan_of("decode | center_crop 40 | vflip 1", plain);
    PenFollowRule rule = points_rule(2, 1);
    rule.clip = 1;
    float rows[2][4] = {{NAN, NAN, NAN, NAN}, {50, 40, -NAN, 40}};
    int64_t kept[2];
    uint32_t n = 0, bits;
    CHECK_INT(pen__follow_rows(&rule, &plan, rows[0], 2, kept, &n, NULL), PEN_OK);
    CHECK_INT(n, 1);
    CHECK_INT(kept[0], 1);
    memcpy(&bits, &rows[0][2], 4);
    CHECK_INT(bits, 0x7fc00000);
    rule.drop = rule.clip = 0;
    float far[4] = {INFINITY, -INFINITY, 50, 40};
    CHECK_INT(pen__follow_rows(&rule, &plan, far, 1, NULL, &n, NULL), PEN_OK);
    CHECK(isinf(far[0]) && far[0] > 0 && isinf(far[1]) && far[1] > 0);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(follow_crops_resizes_flips);
    RUN(follow_upright_coordinates);
    RUN(follow_shrunk_image);
    RUN(follow_formats);
    RUN(follow_drops_what_is_not_visible);
    RUN(follow_edges_are_exact);
    RUN(follow_without_clip_or_drop);
    RUN(follow_keeps_the_order);
    RUN(follow_boxes_that_are_none);
    RUN(follow_points);
    RUN(follow_points_that_are_not_numbers);
    return TEST_END();
}
