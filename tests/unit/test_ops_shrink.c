/* SPDX-License-Identifier: Apache-2.0 */
/* decode shrink=auto: which size is chosen, and that the result is what crop and resize make of
 * libjpeg's image of that size, by the definition of the filter. */
#include <math.h>
#include <stdlib.h>

#include "codec_images.h"
#include "ops/run/program.h"
#include "ops/sample/orientation.h"
#include "test.h"

static const PenFieldKind image = {.kind = PEN_KIND_IMAGE};
static const PenFieldKind mask = {.kind = PEN_KIND_MASK};

static PenProgram *program_of(const char *text, const PenFieldKind *kind)
{
    PenSpec s = {0};
    PenProgram *p = NULL;
    PenError err = {0};
    int r = pen__spec_parse(text, &s, &err);
    if (r == PEN_OK)
        r = pen__program_new(&s.fields[0], kind, &p, &err);
    if (r < 0) {
        printf("%s: %s\n", text, err.message);
        abort();
    }
    pen__spec_free(&s);
    return p;
}

static PenSamplePlan plan_of(const PenProgram *p, PenImageShape shape, uint64_t sample)
{
    PenSamplePlan plan;
    memset(&plan, 0x5a, sizeof plan);
    if (pen__sample_plan_make(p, &shape, pen__draw_key(3, 4), sample, &plan, NULL) != PEN_OK)
        abort();
    return plan;
}

static PenSamplePlan of(const char *text, const PenFieldKind *kind, uint32_t w, uint32_t h)
{
    PenProgram *p = program_of(text, kind);
    PenSamplePlan plan = plan_of(p, (PenImageShape){w, h, 1, 1}, 7);
    pen__program_free(&p);
    return plan;
}

/* ---- the size ---- */

TEST(crop_and_result_decide)
{
    static const struct {
        uint32_t w, h, shrink;
    } cases[] = {{256, 256, 3}, {255, 256, 2}, {256, 255, 2}, {4000, 255, 2}, {4000, 3000, 3},
                 {128, 500, 2}, {127, 500, 1}, {64, 64, 1},   {63, 64, 0},    {20, 4000, 0}};
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenSamplePlan r = of("decode shrink=auto | resize 32,32", &image, cases[i].w, cases[i].h);
        CHECK_INT(r.shrink, cases[i].shrink);
    }
    PenSamplePlan r = of("decode auto | resize 32,32", &image, 257, 300);
    CHECK_INT(r.shrink, 3);
    CHECK_INT(r.n_steps, 1);
    CHECK_INT(r.steps[0].u.pass.crop.w, 33);
    CHECK_INT(r.steps[0].u.pass.crop.h, 38);
    CHECK_INT(r.steps[0].u.pass.part.w, 257);
    CHECK_INT(r.steps[0].u.pass.part.h, 300);
    CHECK_INT(r.region.w, 33);
    CHECK_INT(r.region.h, 38);
}

TEST(what_is_decoded_at_its_size)
{
    static const char *const texts[] = {
        "decode | resize 32,32",
        "decode shrink=off | resize 32,32",
        "decode shrink=auto | center_crop 32",
        "decode shrink=auto | resize 32,32 filter=nearest",
        "decode shrink=auto | grayscale 0 | resize 32,32",
        "decode shrink=auto | random_erasing 0 | resize 32,32",
        "decode shrink=auto | resize 700,700 | resize 32,32",
        "decode shrink=auto | center_crop 1000 | resize 32,32", /* with a border */
    };
    for (size_t i = 0; i < PEN_LEN(texts); i++)
        CHECK_INT(of(texts[i], &image, 640, 640).shrink, 0);
    CHECK_INT(of("decode shrink=auto | resize 32,32", &mask, 640, 640).shrink, 0);
    PenProgram *p = program_of("decode shrink=auto | resize 32,32", &image);
    CHECK_INT(plan_of(p, (PenImageShape){640, 640, 1, 0}, 7).shrink, 0); /* no JPEG */
    CHECK_INT(plan_of(p, (PenImageShape){640, 640, 1, 1}, 7).shrink, 3);
    pen__program_free(&p);
}

static uint32_t expected_shrink(const PenBox *crop, uint32_t side)
{
    uint32_t s = 0;
    while (s < 3 && crop->w >= side << (s + 1) && crop->h >= side << (s + 1))
        s++;
    return s;
}

/* Flips and colours are drawn, and must not matter. */
TEST(nothing_else_that_is_drawn_decides)
{
    PenProgram *with = program_of(
        "decode shrink=auto | hflip | vflip | random_resized_crop 40 0.01,1 | grayscale", &image);
    PenProgram *without = program_of("decode | random_resized_crop 40 0.01,1", &image);
    uint32_t seen[4] = {0};
    for (uint64_t i = 0; i < 400; i++) {
        PenImageShape shape = {500, 400, (uint8_t)(1 + i % 4), 1};
        PenSamplePlan full = plan_of(without, shape, i), r = plan_of(with, shape, i);
        CHECK_INT(r.shrink, expected_shrink(&full.steps[0].u.pass.crop, 40));
        seen[r.shrink]++;
    }
    CHECK(seen[0] && seen[1] && seen[2] && seen[3]);
    pen__program_free(&with);
    pen__program_free(&without);
}

/* ---- the pixels ---- */

static double weight(double x)
{
    return fmax(0, 1 - fabs(x));
}

/* An axis of the upright image at the smaller size. */
typedef struct Axis {
    double from, span; /* the crop */
    uint32_t n;        /* of the result */
} Axis;

/* The crop that the pipeline draws, in pixels of the image, as a part of the smaller image. */
static Axis axis_of(uint32_t crop, uint32_t size, uint32_t side, uint32_t shrink, int mirrored,
                    uint32_t n)
{
    double s = 1u << shrink, ahead = mirrored ? ceil(side / s) * s - side : 0;
    return (Axis){(crop + ahead) / s, size / s, n};
}

/* Pixel x, y of the upright image. */
static const uint8_t *upright(const PenPixels *p, int orientation, uint32_t x, uint32_t y)
{
    PenBox b = pen__turn_box(&(PenImageShape){p->width, p->height, (uint8_t)orientation, 0},
                             (PenBox){x, y, 1, 1});
    return p->data + ((size_t)b.y * p->width + b.x) * p->channels;
}

static double expected(const PenPixels *p, int orientation, const Axis axes[2],
                       const uint32_t at[2], uint32_t channel)
{
    double center[2], wide[2], sum = 0, total = 0;
    uint32_t first[2], end[2];
    for (int i = 0; i < 2; i++) {
        center[i] = axes[i].from + axes[i].span / axes[i].n * (at[i] + 0.5);
        wide[i] = fmax(axes[i].span / axes[i].n, 1);
        first[i] = (uint32_t)floor(axes[i].from);
        end[i] = (uint32_t)ceil(axes[i].from + axes[i].span);
    }
    for (uint32_t y = first[1]; y < end[1]; y++)
        for (uint32_t x = first[0]; x < end[0]; x++) {
            double w =
                weight((x + 0.5 - center[0]) / wide[0]) * weight((y + 0.5 - center[1]) / wide[1]);
            if (w > 0) {
                sum += w * upright(p, orientation, x, y)[channel];
                total += w;
            }
        }
    return sum / total;
}

typedef struct Run {
    const char *text;
    int flip;
    uint32_t side;
} Run;

static const Run runs[] = {
    {"decode shrink=auto | random_resized_crop 20", 0, 20},
    {"decode shrink=auto | random_resized_crop 20 | hflip 1", 1, 20},
    {"decode shrink=auto | hflip 1 | random_resized_crop 20", 1, 20},
};

/* The crop in pixels of the image; one behind a flip is a box of the mirrored image. */
static PenBox crop_of(const Run *run, PenImageShape shape, uint64_t sample)
{
    char text[100];
    snprintf(text, sizeof text, "decode |%s", strchr(run->text, '|') + 1);
    PenProgram *p = program_of(text, &image);
    PenBox crop = plan_of(p, shape, sample).steps[0].u.pass.crop;
    pen__program_free(&p);
    return crop;
}

static void check_pixels(const Run *run, const PenPixels *small, PenImageShape shape,
                         uint64_t sample, const PenSamplePlan *plan, const uint8_t *found)
{
    PenBox crop = crop_of(run, shape, sample);
    PenBox upright = pen__turn_upright(&shape);
    Axis axes[2] = {axis_of(crop.x, crop.w, upright.w, plan->shrink,
                            pen__turn_mirrors_x(shape.orientation), run->side),
                    axis_of(crop.y, crop.h, upright.h, plan->shrink,
                            pen__turn_mirrors_y(shape.orientation), run->side)};
    for (uint32_t i = 0; i < run->side * run->side; i++)
        for (uint32_t c = 0; c < 3; c++) {
            uint32_t x = i % run->side, at[2] = {run->flip ? run->side - 1 - x : x, i / run->side};
            double e = expected(small, shape.orientation, axes, at, c);
            if (fabs(found[3 * i + c] - e) > 1.2) {
                test__fail(__FILE__, __LINE__,
                           "'%s' of %u x %u, orientation %u, 1/%u: pixel %u: %d, not %g", run->text,
                           shape.width, shape.height, shape.orientation, 1u << plan->shrink, i,
                           found[3 * i + c], e);
                return;
            }
        }
}

static void check_run(const Run *run, const PenEncoded *e, int orientation, uint64_t sample)
{
    PenDecodeContext *k = NULL;
    PenProgram *p = program_of(run->text, &image);
    PenImageShape shape = {e->width, e->height, (uint8_t)orientation, 1};
    PenSamplePlan plan = plan_of(p, shape, sample);
    PenImageHeader header;
    PenPixels small = {0};
    uint8_t found[20 * 20 * 3];
    CHECK_INT(reference_shrink(e->data, e->bytes, 1u << plan.shrink, &small), 0);
    CHECK_INT(pen__decode_context_new(&k, NULL), PEN_OK);
    CHECK_INT(pen__image_header(e, &pen__limits_default, &header, NULL), PEN_OK);
    CHECK(pen__sample_plan_memory(p, &plan, &header) > 0);
    CHECK_INT(pen__sample_run(k, p, &plan, e, &pen__limits_default, found, NULL), PEN_OK);
    check_pixels(run, &small, shape, sample, &plan, found);
    pen__pixels_free(&small);
    pen__decode_context_free(&k);
    pen__program_free(&p);
}

TEST(pixels_of_the_smaller_image)
{
    static const struct {
        uint32_t w, h;
    } sizes[] = {{203, 149}, {96, 200}, {345, 331}};
    for (size_t s = 0; s < PEN_LEN(sizes); s++) {
        PenBuf b = {0};
        make_jpeg(&(JpegSpec){.width = sizes[s].w, .height = sizes[s].h, .h = 2, .v = 2}, &b);
        PenEncoded e = {.data = b.data,
                        .bytes = b.bytes,
                        .width = sizes[s].w,
                        .height = sizes[s].h,
                        .codec = PEN_STORED_JPEG,
                        .channels = 3};
        for (int o = 1; o <= 8; o++)
            for (uint64_t i = 0; i < 9; i++) {
                check_run(&runs[i % PEN_LEN(runs)], &e, o, i);
                CHECK_OK_SO_FAR();
            }
        pen__buf_free(&b);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(crop_and_result_decide);
    RUN(what_is_decoded_at_its_size);
    RUN(nothing_else_that_is_drawn_decides);
    RUN(pixels_of_the_smaller_image);
    return TEST_END();
}
