/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "ops/run/program.h"
#include "ops/sample/draft.h"
#include "ops/sample/orientation.h"
#include "test.h"

static const PenFieldKind image = {.kind = PEN_KIND_IMAGE};
static const PenFieldKind mask = {.kind = PEN_KIND_MASK};

static int make(const char *text, const PenFieldKind *kind, PenImageShape shape, uint64_t sample,
                PenSamplePlan *ret, PenError *err)
{
    PenSpec s = {0};
    PenProgram *p = NULL;
    int r = pen__spec_parse(text, &s, err);
    memset(ret, 0, sizeof *ret);
    if (r == PEN_OK)
        r = pen__program_new(&s.fields[0], kind, &p, err);
    if (r == PEN_OK)
        r = pen__sample_plan_make(p, &shape, pen__draw_key(3, 4), sample, ret, err);
    pen__program_free(&p);
    pen__spec_free(&s);
    return r;
}

static PenSamplePlan of(const char *text, uint32_t width, uint32_t height)
{
    PenSamplePlan sample_plan;
    PenError err = {0};
    int r = make(text, &image, (PenImageShape){width, height, 1, 0}, 5, &sample_plan, &err);
    if (r < 0)
        test__fail(__FILE__, __LINE__, "%s: %s", text, err.message);
    return sample_plan;
}

#define CHECK_BOX(box, X, Y, W, H)                                                                 \
    do {                                                                                           \
        CHECK_INT((box).x, X);                                                                     \
        CHECK_INT((box).y, Y);                                                                     \
        CHECK_INT((box).w, W);                                                                     \
        CHECK_INT((box).h, H);                                                                     \
    } while (0)

TEST(sample_plan_crop_resize_and_flip_are_one_pass)
{
    PenSamplePlan r = of("decode | random_resized_crop 24 | hflip 1 | vflip 1 | hflip 0", 100, 80);
    CHECK_INT(r.n_steps, 1);
    const PenPass *p = &r.steps[0].u.pass;
    CHECK(p->crop.w < 100 || p->crop.h < 80);
    CHECK_INT(p->width, 24);
    CHECK_INT(p->height, 24);
    CHECK_INT(p->w, 24);
    CHECK_INT(p->h, 24);
    CHECK_INT(p->x, 0);
    CHECK_INT(p->flip_x, 1);
    CHECK_INT(p->flip_y, 1);
    CHECK_BOX(r.region, p->crop.x, p->crop.y, p->crop.w, p->crop.h);
}

TEST(sample_plan_a_crop_behind_a_warp_is_part_of_it)
{
    PenSamplePlan r = of("decode | random_rotation 30,30 | center_crop 20,10 | hflip 1 | vflip 0 | "
                         "center_crop 8,6 | vflip 1",
                         200, 100);
    CHECK_INT(r.n_steps, 2);
    CHECK_INT(r.steps[1].kind, PEN_STEP_WARP);
    const PenWarp *w = &r.steps[1].u.warp;
    CHECK_BOX(w->window, 97, 46, 6, 8);
    CHECK_INT(w->flip_x, 1);
    CHECK_INT(w->flip_y, 1);
    CHECK_INT(w->width, 200);
    CHECK_INT(w->from_height, 100);
    /* Of the image, only what the window needs is decoded. */
    CHECK(w->held.w < 24 && w->held.h < 24);
    CHECK_BOX(w->held, r.region.x, r.region.y, r.region.w, r.region.h);
    CHECK_INT(r.width, 6);
    CHECK_INT(r.height, 8);
}

TEST(sample_plan_a_pass_makes_what_the_warp_needs)
{
    PenSamplePlan r = of("decode | resize 50,50 | hflip 1 | vflip 1 | random_affine 0 scale=2,2 "
                         "center=0,0",
                         200, 100);
    CHECK_INT(r.n_steps, 2);
    const PenPass *p = &r.steps[0].u.pass;
    CHECK_BOX(r.steps[1].u.warp.held, 0, 0, 29, 29);
    CHECK_INT(p->x, 21);
    CHECK_INT(p->y, 21);
    CHECK_INT(p->w, 29);
    CHECK(r.region.x > 75 && r.region.w < 125);
    /* What changes nothing, or only mirrors, is no warp. */
    r = of("decode | random_affine 0 | random_rotation 180,180 | random_rotation 0 | "
           "center_crop 10,20",
           20, 10);
    CHECK_INT(r.n_steps, 1);
    CHECK_INT(r.steps[0].u.pass.flip_x, 1);
    CHECK_INT(r.steps[0].u.pass.flip_y, 1);
}

TEST(sample_plan_warps_are_finite)
{
    PenSamplePlan plan = {.n_steps = 0};
    PenSampleDraft d = {.sample_plan = &plan, .width = 8, .height = 8};
    PenWarp warp = {.a = {1, 0, 0, 0, 1, INFINITY, NAN, NAN}};
    PenError err = {0};
    CHECK_INT(pen__draft_warp(&d, &warp, &err), PEN_E_INVALID);
    CHECK_STR(err.message, "a map of 8 x 8 pixels is not finite");
    warp.a[5] = 1;
    CHECK_INT(pen__draft_warp(&d, &warp, &err), PEN_OK);
    warp.perspective = 1;
    CHECK_INT(pen__draft_warp(&d, &warp, &err), PEN_E_INVALID);
}

TEST(sample_plan_two_flips_are_none)
{
    PenSamplePlan r = of("decode | hflip 1 | center_crop 8 | hflip 1", 100, 80);
    CHECK_INT(r.n_steps, 1);
    CHECK_INT(r.steps[0].u.pass.flip_x, 0);
}

TEST(sample_plan_crop_behind_resize_is_a_window)
{
    PenSamplePlan r = of("decode | resize 32 | center_crop 24", 100, 80);
    const PenPass *p = &r.steps[0].u.pass;
    CHECK_INT(r.n_steps, 1);
    CHECK_BOX(p->crop, 0, 0, 100, 80);
    CHECK_INT(p->width, 40);
    CHECK_INT(p->height, 32);
    CHECK_INT(p->x, 8);
    CHECK_INT(p->y, 4);
    CHECK_INT(p->w, 24);
    CHECK_INT(p->h, 24);
    /* Only what the window needs is decoded. */
    CHECK(r.region.x > 10 && r.region.x < 20 && r.region.w < 70);
    CHECK(r.region.y > 2 && r.region.y < 10 && r.region.h < 70);
}

TEST(sample_plan_crops_of_crops_are_one)
{
    PenSamplePlan r = of("decode | center_crop 40 | center_crop 20 | resize 10,10", 100, 80);
    CHECK_INT(r.n_steps, 1);
    CHECK_BOX(r.steps[0].u.pass.crop, 40, 30, 20, 20);
    CHECK_BOX(r.region, 40, 30, 20, 20);
    r = of("decode | resize 50,60 | center_crop 40 | center_crop 20", 100, 80);
    CHECK_INT(r.n_steps, 1);
    CHECK_INT(r.steps[0].u.pass.x, 20);
    CHECK_INT(r.steps[0].u.pass.y, 15);
}

/* The box is drawn on the mirrored image, and decoded from the other side. */
TEST(sample_plan_crop_behind_flip_is_mirrored)
{
    PenSamplePlan a = of("decode | random_crop 20 | hflip 1", 100, 80);
    PenSamplePlan b = of("decode | hflip 1 | random_crop 20", 100, 80);
    CHECK_INT(b.n_steps, 1);
    CHECK_INT(b.region.x, 100 - a.region.x - 20);
    CHECK_INT(b.region.y, a.region.y);
    a = of("decode | random_crop 20 | vflip 1", 100, 80);
    b = of("decode | vflip 1 | random_crop 20", 100, 80);
    CHECK_INT(b.region.x, a.region.x);
    CHECK_INT(b.region.y, 80 - a.region.y - 20);
    /* A resize then takes another pass, but still decodes no more. */
    b = of("decode | hflip 1 | random_resized_crop 20", 100, 80);
    a = of("decode | random_resized_crop 20", 100, 80);
    CHECK_INT(b.n_steps, 2);
    CHECK_INT(b.region.w, a.region.w);
    CHECK_INT(b.region.x, 100 - a.region.x - a.region.w);
}

TEST(sample_plan_second_resize_is_a_second_pass)
{
    PenSamplePlan r = of("decode | resize 32 | random_resized_crop 24", 100, 80);
    CHECK_INT(r.n_steps, 2);
    const PenPass *p = &r.steps[1].u.pass;
    CHECK_INT(r.steps[0].u.pass.w, p->crop.w);
    CHECK_BOX(p->crop, 0, 0, p->crop.w, p->crop.h);
    CHECK_INT(p->width, 24);
    /* The same size again is nothing. */
    r = of("decode | resize 32,40 | resize 32 | resize 32,40 bicubic", 100, 80);
    CHECK_INT(r.n_steps, 1);
    CHECK_INT(r.steps[0].u.pass.filter, PEN_FILTER_BILINEAR);
}

TEST(sample_plan_centre_is_torchvisions)
{
    static const struct {
        uint32_t have, want;
        int64_t at;
    } cases[] = {
        {500, 224, 138}, {375, 224, 76}, {373, 224, 74},  {225, 224, 0},   {226, 224, 1},
        {227, 224, 2},   {224, 224, 0},  {100, 224, -62}, {101, 224, -61}, {223, 224, 0},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        char text[60];
        snprintf(text, sizeof text, "decode | center_crop 10,%u", cases[i].want);
        PenSamplePlan r = of(text, cases[i].have, 10);
        const PenPass *p = &r.steps[0].u.pass;
        CHECK_INT(p->x + p->crop.x, cases[i].at);
        CHECK_INT(p->w, cases[i].want);
    }
}

TEST(sample_plan_short_side_is_torchvisions)
{
    PenSamplePlan r = of("decode | resize 256 | center_crop 8", 500, 375);
    CHECK_INT(r.steps[0].u.pass.width, 341);
    CHECK_INT(r.steps[0].u.pass.height, 256);
    r = of("decode | resize 256 | center_crop 8", 333, 500);
    CHECK_INT(r.steps[0].u.pass.width, 256);
    CHECK_INT(r.steps[0].u.pass.height, 384);
}

TEST(sample_plan_borders_are_filled)
{
    PenSamplePlan r = of("decode | random_crop 32 padding=4 fill=9", 32, 32);
    const PenPass *p = &r.steps[0].u.pass;
    CHECK_INT(r.n_steps, 1);
    CHECK_INT(p->fill, 9);
    CHECK(p->x >= -4 && p->x <= 4 && p->y >= -4 && p->y <= 4);
    CHECK_INT(r.region.w, 32 - (p->x < 0 ? -p->x : p->x));
    CHECK_INT(r.region.h, 32 - (p->y < 0 ? -p->y : p->y));
    /* Behind a crop more room must not show what was cut off. */
    r = of("decode | center_crop 32 | random_crop 40 padding=4", 100, 80);
    CHECK_INT(r.n_steps, 1);
    CHECK_BOX(r.steps[0].u.pass.crop, 34, 24, 32, 32);
    r = of("decode | resize 60,60 | center_crop 32 | random_crop 40 padding=4", 100, 80);
    CHECK_INT(r.n_steps, 2);
    CHECK_INT(r.steps[1].u.pass.x, -4);
    /* Nothing of the image is to be seen: one pixel is decoded, to know that it can be. */
    r = of("decode | center_crop 4000 | random_crop 2", 3, 3);
    CHECK_BOX(r.region, 0, 0, 1, 1);
}

TEST(sample_plan_colours_divide_passes)
{
    PenSamplePlan r = of("decode | resize 20,20 | grayscale | hflip 1 | center_crop 8", 100, 80);
    CHECK_INT(r.n_steps, 3);
    CHECK_INT(r.steps[1].kind, PEN_STEP_GREY);
    CHECK_INT(r.steps[2].u.pass.flip_x, 1);
    CHECK_INT(r.steps[2].u.pass.w, 8);
    r = of("decode | grayscale | center_crop 8 | color_jitter 0.1 0.1 0.1 0.1", 100, 80);
    CHECK_INT(r.n_steps, 7);
    CHECK_INT(r.steps[0].kind, PEN_STEP_PASS);
    uint32_t seen = 0;
    for (int i = 3; i < 7; i++)
        seen |= 1u << r.steps[i].kind;
    CHECK_INT(seen, 1u << PEN_STEP_BRIGHTNESS | 1u << PEN_STEP_CONTRAST |
                        1u << PEN_STEP_SATURATION | 1u << PEN_STEP_HUE);
    r = of("decode | center_crop 8 | color_jitter 0 0.1", 100, 80);
    CHECK_INT(r.n_steps, 2);
    CHECK_INT(r.steps[1].kind, PEN_STEP_CONTRAST);
}

/* All 24 orders come, about as often; factors fill their range. */
TEST(sample_plan_jitter_is_uniform)
{
    uint32_t n[1 << 8] = {0}, found = 0;
    int32_t low = INT32_MAX, high = 0;
    enum { N = 4800 };
    PenSpec s = {0};
    PenProgram *p = NULL;
    PenImageShape shape = {100, 80, 1, 0};
    CHECK_INT(pen__spec_parse("decode | center_crop 8 | color_jitter 0.4 0.1 0.1 0.1", &s, NULL),
              0);
    CHECK_INT(pen__program_new(&s.fields[0], &image, &p, NULL), 0);
    for (uint64_t i = 0; i < N; i++) {
        PenSamplePlan r;
        CHECK_INT(pen__sample_plan_make(p, &shape, pen__draw_key(0, 0), i, &r, NULL), 0);
        uint32_t order = 0;
        for (int k = 1; k < 5; k++) {
            order = order << 2 | (uint32_t)(r.steps[k].kind - PEN_STEP_BRIGHTNESS);
            if (r.steps[k].kind == PEN_STEP_BRIGHTNESS) {
                low = PEN_MIN(low, r.steps[k].u.factor);
                high = PEN_MAX(high, r.steps[k].u.factor);
            }
        }
        n[order]++;
    }
    pen__program_free(&p);
    pen__spec_free(&s);
    double chi = 0;
    for (int i = 0; i < 256; i++) {
        found += n[i] > 0;
        chi += n[i] ? ((double)n[i] - 200) * ((double)n[i] - 200) / 200 : 0;
    }
    CHECK_INT(found, 24);
    CHECK(chi < 49.8); /* 23 degrees, 0.001 */
    CHECK(low >= 65536 * 6 / 10 && low < 65536 * 61 / 100);
    CHECK(high <= 65536 * 14 / 10 && high > 65536 * 139 / 100);
}

static int same_box(PenBox a, PenBox b)
{
    return a.x == b.x && a.y == b.y && a.w == b.w && a.h == b.h;
}

static int same_step(const PenStep *a, const PenStep *b)
{
    const PenPass *p = &a->u.pass, *q = &b->u.pass;
    if (a->kind != b->kind)
        return 0;
    if (a->kind == PEN_STEP_PASS)
        return same_box(p->crop, q->crop) && p->w == q->w && p->h == q->h &&
               p->flip_x == q->flip_x && p->x == q->x && p->y == q->y;
    if (a->kind == PEN_STEP_ERASE)
        return same_box(a->u.erase.box, b->u.erase.box);
    return a->u.factor == b->u.factor;
}

static int same(const PenSamplePlan *a, const PenSamplePlan *b)
{
    int equal = a->n_steps == b->n_steps && same_box(a->region, b->region);
    for (uint32_t i = 0; equal && i < a->n_steps; i++)
        equal = same_step(&a->steps[i], &b->steps[i]);
    return equal;
}

TEST(sample_plan_depends_on_its_arguments_alone)
{
    const char *text = "decode | random_resized_crop 24 | hflip | color_jitter 0.4 0.4 0.4 0.1 | "
                       "random_erasing | tensor";
    PenSamplePlan a, b;
    PenImageShape shape = {100, 80, 1, 0};
    uint32_t differ = 0;
    for (uint64_t i = 0; i < 50; i++) {
        CHECK_INT(make(text, &image, shape, i, &a, NULL), PEN_OK);
        CHECK_INT(make(text, &image, shape, i, &b, NULL), PEN_OK);
        CHECK(same(&a, &b));
        CHECK_INT(make(text, &image, shape, i + 1, &b, NULL), PEN_OK);
        differ += !same(&a, &b);
    }
    CHECK_INT(differ, 50);
}

/* Also when the image's pipeline has more in it. */
TEST(sample_plan_mask_shares_its_images_draws)
{
    PenImageShape shape = {100, 80, 1, 0};
    for (uint64_t i = 0; i < 50; i++) {
        PenSamplePlan a, b;
        CHECK_INT(make("decode | random_resized_crop 24 bicubic | color_jitter 0.4 | hflip | "
                       "random_erasing",
                       &image, shape, i, &a, NULL),
                  PEN_OK);
        CHECK_INT(
            make("decode | random_resized_crop 24 bicubic | hflip", &mask, shape, i, &b, NULL),
            PEN_OK);
        const PenPass *p = &a.steps[0].u.pass, *q = &b.steps[0].u.pass;
        CHECK_BOX(q->crop, p->crop.x, p->crop.y, p->crop.w, p->crop.h);
        CHECK_INT(p->filter, PEN_FILTER_BICUBIC);
        CHECK_INT(q->filter, PEN_FILTER_NEAREST);
        CHECK_INT(q->flip_x, a.n_steps > 2 && a.steps[2].kind == PEN_STEP_PASS);
    }
}

/* A second flip is drawn by itself. */
TEST(sample_plan_occurrences_are_drawn_apart)
{
    uint32_t n[4] = {0};
    for (uint64_t i = 0; i < 200; i++) {
        PenSamplePlan r;
        CHECK_INT(make("decode | center_crop 8 | hflip | grayscale 1 | hflip", &image,
                       (PenImageShape){100, 80, 1, 0}, i, &r, NULL),
                  PEN_OK);
        int second = r.n_steps > 2;
        n[r.steps[0].u.pass.flip_x * 2 + second]++;
    }
    for (int i = 0; i < 4; i++)
        CHECK(n[i] > 25 && n[i] < 75);
}

TEST(sample_plan_erasing_behind_normalize_is_on_the_result)
{
    PenSamplePlan r =
        of("decode | center_crop 50 | random_erasing 1 | normalize | random_erasing 1 | "
           "random_erasing 0 | tensor f32",
           100, 80);
    CHECK_INT(r.n_steps, 2);
    CHECK_INT(r.steps[1].kind, PEN_STEP_ERASE);
    CHECK_INT(r.n_erase, 2);
    CHECK(r.erase[0].w > 0 && r.erase[0].x + r.erase[0].w <= 50);
    CHECK_INT(r.erase[1].w, 0);
    CHECK(r.erase[0].x != r.steps[1].u.erase.box.x || r.erase[0].w != r.steps[1].u.erase.box.w);
}

/* Each orientation, by where the corner pixel of the upright image is stored. */
TEST(sample_plan_orientation_moves_the_region)
{
    static const struct {
        uint32_t x, y; /* of a stored 100 x 80 image */
    } corner[9] = {{0, 0}, {0, 0}, {99, 0}, {99, 79}, {0, 79}, {0, 0}, {0, 79}, {99, 79}, {99, 0}};
    for (uint8_t o = 1; o <= 8; o++) {
        PenImageShape shape = {100, 80, o, 0};
        PenBox b = pen__turn_box(&shape, (PenBox){0, 0, 1, 1});
        CHECK_BOX(b, corner[o].x, corner[o].y, 1, 1);
        b = pen__turn_box(&shape, (PenBox){2, 3, 10, 20});
        CHECK_INT(b.w, o < 5 ? 10 : 20);
        CHECK_INT(b.h, o < 5 ? 20 : 10);
        CHECK(b.x + b.w <= 100 && b.y + b.h <= 80);
        PenSamplePlan r;
        CHECK_INT(make("decode | center_crop 10,20", &image, shape, 0, &r, NULL), PEN_OK);
        CHECK_INT(r.region.w, o < 5 ? 20 : 10);
        CHECK_INT(r.steps[0].u.pass.crop.x, o < 5 ? 40 : 30);
    }
}

TEST(sample_plan_errors_say_what_to_do)
{
    PenSamplePlan r;
    PenError err = {0};
    CHECK_INT(make("decode | random_crop 32 padding=2", &image, (PenImageShape){100, 20, 1, 0}, 0,
                   &r, &err),
              PEN_E_INVALID);
    CHECK_STR(err.message, "random_crop: the image has 100 x 20 pixels and a padding of 2, less "
                           "than the crop of 32 x 32; add resize before it, or more padding");
    CHECK_INT(make("decode | resize 224 | center_crop 8", &image, (PenImageShape){1, 60000, 1, 0},
                   0, &r, &err),
              PEN_E_LIMIT);
    CHECK_STR(err.message,
              "resize: 1 x 60000 would become 224 x 13440000; the longest side allowed "
              "is 65535");
    CHECK_INT(make("decode | center_crop 8", &image, (PenImageShape){0, 5, 1, 0}, 0, &r, &err),
              PEN_E_INVALID);
    CHECK_STR(err.message, "expected an image, found 0 x 5 pixels");
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(sample_plan_crop_resize_and_flip_are_one_pass);
    RUN(sample_plan_a_crop_behind_a_warp_is_part_of_it);
    RUN(sample_plan_a_pass_makes_what_the_warp_needs);
    RUN(sample_plan_warps_are_finite);
    RUN(sample_plan_two_flips_are_none);
    RUN(sample_plan_crop_behind_resize_is_a_window);
    RUN(sample_plan_crops_of_crops_are_one);
    RUN(sample_plan_crop_behind_flip_is_mirrored);
    RUN(sample_plan_second_resize_is_a_second_pass);
    RUN(sample_plan_centre_is_torchvisions);
    RUN(sample_plan_short_side_is_torchvisions);
    RUN(sample_plan_borders_are_filled);
    RUN(sample_plan_colours_divide_passes);
    RUN(sample_plan_jitter_is_uniform);
    RUN(sample_plan_depends_on_its_arguments_alone);
    RUN(sample_plan_mask_shares_its_images_draws);
    RUN(sample_plan_occurrences_are_drawn_apart);
    RUN(sample_plan_erasing_behind_normalize_is_on_the_result);
    RUN(sample_plan_orientation_moves_the_region);
    RUN(sample_plan_errors_say_what_to_do);
    return TEST_END();
}
