/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames of a clip, against the plainest way to say it; and programs of clips. */
#include "ops/operations/frame_choice.h"
#include "ops/operations/op.h"
#include "ops/run/program.h"
#include "test.h"

static uint64_t state = 99;

static uint32_t some(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

static PenDraw draw_of(uint64_t sample)
{
    return pen__draw_start(pen__draw_key(3, 4), sample, PEN_DRAW_ID_clip, 0);
}

/* ---- by number ---- */

static uint64_t start_of(const PenClipRule *r, uint64_t room, uint64_t span, uint32_t clip,
                         PenDraw *draw)
{
    if (r->offset == PEN_OFFSET_RANDOM)
        return pen__draw_below(draw, room + 1);
    if (r->offset == PEN_OFFSET_CENTER)
        return room * (2 * clip + 1) / (2 * r->n);
    return (uint64_t)r->at + clip * span;
}

static PenClipRule some_rule(void)
{
    return (PenClipRule){.frames = 1 + some(20),
                         .n = some(4) ? 1 : 1 + some(5),
                         .stride = 1 + some(6),
                         .offset = (int32_t)some(3),
                         .at = some(30),
                         .pad = (int32_t)some(3)};
}

TEST(clip_frames_by_number)
{
    for (uint64_t i = 0; i < 20000; i++) {
        PenClipRule rule = some_rule();
        PenClipFrames frames = {.n = 1 + some(70)};
        PenDraw draw = draw_of(i), again = draw;
        PenError err = {0};
        uint32_t got[20 * 5 + 1];
        got[rule.frames * rule.n] = 77;
        uint64_t span = (uint64_t)(rule.frames - 1) * rule.stride + 1;
        uint64_t room = span < frames.n ? frames.n - span : 0;
        bool fits = true;
        int r = pen__clip_choose(&rule, &frames, &draw, got, &err);
        for (uint32_t k = 0; k < rule.n; k++) {
            uint64_t at = start_of(&rule, room, (uint64_t)rule.frames * rule.stride, k, &again);
            for (uint32_t t = 0; t < rule.frames; t++, at += rule.stride) {
                uint64_t want = at < frames.n              ? at
                                : rule.pad == PEN_PAD_LOOP ? at % frames.n
                                                           : frames.n - 1;
                fits = fits && at < frames.n;
                if (r == PEN_OK)
                    CHECK_INT(got[k * rule.frames + t], want);
            }
        }
        CHECK_INT(r, rule.pad == PEN_PAD_NONE && !fits ? PEN_E_INVALID : PEN_OK);
        CHECK_INT(got[rule.frames * rule.n], 77);
    }
}

TEST(clip_messages)
{
    PenError err = {0};
    uint32_t got[16];
    PenDraw draw = draw_of(0);
    PenClipRule rule = {.frames = 8, .n = 1, .stride = 2, .pad = PEN_PAD_NONE};
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 14}, &draw, got, &err), PEN_E_INVALID);
    CHECK_STR(
        err.message,
        "clip: frame 14 requested (8 frames, stride 2), but the clip has 14, and pad is none; use "
        "pad=last or pad=loop, or leave the sample out with a subset");
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 15}, &draw, got, &err), PEN_OK);
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 0}, &draw, got, &err), PEN_E_NOT_FOUND);
    CHECK_STR(err.message, "clip: no frames; leave the sample out with a subset");
    rule.seconds = 1;
    rule.parts = 10;
    int64_t times[] = {0, 100000000, 200000000, 100000000};
    PenClipFrames frames = {.n = 3, .times_ns = times};
    CHECK_INT(pen__clip_choose(&rule, &frames, &draw, got, &err), PEN_E_INVALID);
    CHECK_STR(
        err.message,
        "clip: a frame 0.300 s after the start was requested, but the clip has 0.300 s (3 frames), "
        "and pad is none; use pad=last or pad=loop, or leave the sample out with a subset");
    frames.n = 4;
    CHECK_INT(pen__clip_choose(&rule, &frames, &draw, got, &err), PEN_E_INVALID);
    CHECK_STR(err.message, "clip: fps and seconds need increasing timestamps, found 4 frames "
                           "without them; use stride");
    int64_t far[] = {-1, INT64_MAX};
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 2, .times_ns = far}, &draw, got, &err),
              PEN_E_INVALID);
    far[0] = INT64_MAX / 2;
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 2, .times_ns = far}, &draw, got, &err),
              PEN_E_LIMIT);
    CHECK_STR(err.message,
              "clip: expected timestamps of at most 100 days, found 4611686018 s; use stride");
}

TEST(clip_lists)
{
    PenError err = {0};
    uint32_t got[4] = {0};
    PenDraw draw = draw_of(0);
    PenClipRule rule = {.frames = 4, .n = 1, .n_indices = 4, .indices = {7, 0, 12, 7}};
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 10}, &draw, got, &err), PEN_OK);
    CHECK_MEM(got, ((uint32_t[]){7, 0, 9, 7}), sizeof got);
    rule.pad = PEN_PAD_LOOP;
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 10}, &draw, got, &err), PEN_OK);
    CHECK_MEM(got, ((uint32_t[]){7, 0, 2, 7}), sizeof got);
    rule.pad = PEN_PAD_NONE;
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 10}, &draw, got, &err), PEN_E_INVALID);
    CHECK_STR(err.message,
              "clip: frame 12 requested, but the clip has 10, and pad is none; use pad=last "
              "or pad=loop, or leave the sample out with a subset");
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 13}, &draw, got, &err), PEN_OK);
}

/* ---- around a frame ---- */

TEST(clip_around_a_frame)
{
    PenError err = {0};
    uint32_t got[4] = {0};
    PenDraw draw = draw_of(0);
    PenClipRule rule = {
        .frames = 4, .n = 1, .stride = 3, .offset = PEN_OFFSET_FRAME, .at = -4, .pad = 0};
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 10, .frame = 6}, &draw, got, &err), 0);
    CHECK_MEM(got, ((uint32_t[]){2, 5, 8, 9}), sizeof got);
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 10, .frame = 0}, &draw, got, &err), 0);
    CHECK_MEM(got, ((uint32_t[]){0, 0, 2, 5}), sizeof got);
    CHECK_INT(pen__clip_choose(&rule, &(PenClipFrames){.n = 10, .frame = 10}, &draw, got, &err),
              PEN_E_INVALID);
    CHECK_STR(err.message, "clip: the sample is frame 10, but the clip has 10; pass the number of "
                           "frames of each sample to frames");
}

/* ---- by time ---- */

/* The nearest by looking at all of them; the first of those. */
static uint32_t nearest(const int64_t *times, uint32_t n, uint64_t place)
{
    uint32_t best = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = (uint64_t)(times[i] - times[0]);
        uint64_t gap = at > place ? at - place : place - at;
        if (gap < least) {
            best = i;
            least = gap;
        }
    }
    return best;
}

TEST(clip_frames_by_time)
{
    for (uint64_t i = 0; i < 20000; i++) {
        int64_t times[40] = {some(1000)};
        uint32_t n = 2 + some(38), got[100];
        PenClipRule rule = some_rule();
        PenClipFrames frames = {.n = n, .times_ns = times};
        PenDraw draw = draw_of(i), again = draw;
        for (uint32_t k = 1; k < n; k++)
            times[k] = times[k - 1] + 1 + (some(3) ? some(80000000) : 0);
        rule.seconds = some(2) ? 1 : 0.001 * (1 + some(3000));
        rule.parts = rule.seconds == 1 ? 1 + some(60) : rule.frames;
        rule.at = 0.01 * some(300);
        uint64_t all = (uint64_t)(times[n - 1] - times[0]), length = all + all / (n - 1);
        int r = pen__clip_choose(&rule, &frames, &draw, got, NULL);
        bool fits = true;
        for (uint32_t k = 0; k < rule.n; k++) {
            uint64_t span = (uint64_t)(rule.frames * 1e9 * rule.seconds / rule.parts + 0.5);
            uint64_t from = start_of(&rule, span < length ? length - span : 0, span, k, &again);
            if (rule.offset == PEN_OFFSET_GIVEN)
                from = (uint64_t)(rule.at * 1e9 + 0.5) + k * span;
            for (uint32_t t = 0; t < rule.frames; t++) {
                uint64_t place = from + (uint64_t)(t * 1e9 * rule.seconds / rule.parts + 0.5);
                fits = fits && place < length;
                if (place >= length)
                    place = rule.pad == PEN_PAD_LOOP ? place % length : length - 1;
                if (r == PEN_OK)
                    CHECK_INT(got[k * rule.frames + t], nearest(times, n, place));
            }
        }
        CHECK_INT(r, rule.pad == PEN_PAD_NONE && !fits ? PEN_E_INVALID : PEN_OK);
    }
}

/* Times that were rounded on their way do not shift frames. */
TEST(clip_times_may_be_rounded)
{
    int64_t times[60];
    uint32_t got[60];
    for (int rounding = -1; rounding <= 1; rounding++) {
        for (int i = 0; i < 60; i++)
            times[i] = (int64_t)i * 1000000000 / 30 + (i ? rounding : 0);
        PenClipRule rule = {.frames = 60, .n = 1, .pad = PEN_PAD_NONE, .seconds = 1, .parts = 30};
        PenDraw draw = draw_of(1);
        CHECK_INT(
            pen__clip_choose(&rule, &(PenClipFrames){.n = 60, .times_ns = times}, &draw, got, NULL),
            PEN_OK);
        for (uint32_t i = 0; i < 60; i++)
            CHECK_INT(got[i], i);
    }
}

/* Frames that are all at one time but one: the first of those. */
TEST(clip_times_may_be_equal)
{
    int64_t times[5] = {0, 1000, 1000, 1000, 2000};
    uint32_t got[3];
    PenClipRule rule = {.frames = 3, .n = 1, .seconds = 1, .parts = 1e6};
    PenDraw draw = draw_of(1);
    rule.offset = PEN_OFFSET_GIVEN;
    CHECK_INT(
        pen__clip_choose(&rule, &(PenClipFrames){.n = 5, .times_ns = times}, &draw, got, NULL),
        PEN_OK);
    CHECK_MEM(got, ((uint32_t[]){0, 1, 4}), sizeof got);
    rule.at = 0.4e-6;
    CHECK_INT(
        pen__clip_choose(&rule, &(PenClipFrames){.n = 5, .times_ns = times}, &draw, got, NULL),
        PEN_OK);
    CHECK_MEM(got, ((uint32_t[]){0, 1, 4}), sizeof got);
}

/* ---- programs ---- */

static const PenFieldKind clip = {.kind = PEN_KIND_CLIP};
static const PenFieldKind image = {.kind = PEN_KIND_IMAGE};

static PenProgram *make(const char *text, const PenFieldKind *kind, PenError *err)
{
    PenSpec s = {0};
    PenProgram *p = NULL;
    int r = pen__spec_parse(text, &s, err);
    if (r == PEN_OK)
        r = pen__program_new(&s.fields[0], kind, &p, err);
    pen__spec_free(&s);
    return r == PEN_OK ? p : NULL;
}

static void expect_shape(const char *text, const char *shape)
{
    PenError err = {0};
    PenProgram *p = make(text, &clip, &err);
    char buf[100];
    if (!p)
        CHECK_STR(err.message, "no error");
    PenTensor t = pen__program_result(p);
    size_t used = (size_t)snprintf(buf, sizeof buf, "%s", pen_dtype_name(t.dtype));
    uint64_t bytes = pen_dtype_bytes(t.dtype);
    for (uint32_t i = 0; i < t.n_dims; i++) {
        used += (size_t)snprintf(buf + used, sizeof buf - used, " %d", (int)t.shape[i]);
        bytes *= (uint64_t)t.shape[i];
    }
    snprintf(buf + used, sizeof buf - used, "%s", t.channels_last ? " last" : "");
    CHECK_STR(buf, shape);
    CHECK_INT(pen__program_bytes(p), bytes);
    CHECK_INT(t.channels_last ? t.channels_last : 2, 2);
    pen__program_free(&p);
}

TEST(clip_shapes)
{
    expect_shape("decode | clip | center_crop 5,6", "u8 16 5 6 3 last");
    expect_shape("decode | clip 4 | center_crop 5,6 | tensor f32 nthwc", "f32 4 5 6 3 last");
    expect_shape("decode | clip 4 | center_crop 5,6 | tensor f32 nchw", "f32 3 4 5 6");
    expect_shape("decode | clip 4 | center_crop 5,6 | tensor f16 ncthw", "f16 3 4 5 6");
    expect_shape("decode | clip 4 | center_crop 5,6 | tensor f16 ntchw", "f16 4 3 5 6");
    expect_shape("decode gray | clip 4 n=2 | center_crop 5,6 | tensor u8 ncthw", "u8 2 1 4 5 6");
    expect_shape("decode | clip 4 n=2 | resize 9 | three_crop 5,6 | normalize | tensor bf16",
                 "bf16 6 4 5 6 3 last");
    expect_shape("decode | clip 4 | three_crop 7 | resize 3,5", "u8 3 4 3 5 3 last");
    expect_shape("decode | clip indices=3,1,4,1,5 | center_crop 8", "u8 5 8 8 3 last");
}

static void expect_fail(const char *text, const PenFieldKind *kind, const char *message)
{
    PenError err = {0};
    CHECK(make(text, kind, &err) == NULL);
    CHECK_STR(err.message, message);
}

TEST(clip_programs_that_are_wrong)
{
    expect_fail("decode | clip 4 | five_crop 8", &clip,
                "pipeline: column 19: five_crop: the field holds a clip; use three_crop");
    expect_fail("decode", &clip,
                "pipeline: column 1: select frames of the clip: 'decode | clip 16 | ...'");
    expect_fail("decode | center_crop 8", &clip,
                "pipeline: column 10: center_crop: select frames of the clip first: 'decode | "
                "clip 16 | center_crop'");
    expect_fail("clip | decode", &clip,
                "pipeline: column 1: clip: a clip must be decoded first: 'decode | clip'");
    expect_fail("decode | clip | clip | center_crop 8", &clip,
                "pipeline: column 17: clip must directly follow decode: 'decode | clip ...'");
    expect_fail("decode | clip | center_crop 8", &image,
                "pipeline: column 10: clip: the field holds an image, not a clip");
    expect_fail("decode | three_crop 8", &image,
                "pipeline: column 10: three_crop: the field holds an image, not a clip");
    expect_fail("decode | clip | three_crop 8 | three_crop 8", &clip,
                "pipeline: column 32: three_crop: only one of three_crop, five_crop and ten_crop "
                "can be used, once");
    expect_fail("decode | center_crop 8 | tensor ncthw", &image,
                "pipeline: column 26: tensor: this layout is for clips, and the field holds an "
                "image; expected nhwc or nchw");
    expect_fail(
        "decode | clip fps=8 seconds=2 | center_crop 8", &clip,
        "pipeline: column 10: clip: fps and seconds are mutually exclusive; pass one of them");
    expect_fail("decode | clip fps=0.0009 | center_crop 8", &clip,
                "pipeline: column 10: clip: fps: expected 0 or at least 0.001 (a frame in 1000 s)");
    expect_fail("decode | clip indices=3 n=2 | center_crop 8", &clip,
                "pipeline: column 10: clip: indices select one clip; remove n=2");
    expect_fail(
        "decode | clip indices=3 fps=2 | center_crop 8", &clip,
        "pipeline: column 10: clip: indices select frames by number; remove fps and seconds");
    expect_fail("decode | clip offset=1.5 | center_crop 8", &clip,
                "pipeline: column 10: clip: offset: expected random, center or an integer "
                "(seconds go with fps and seconds)");
    expect_fail("decode | clip", &clip,
                "pipeline: column 10: clips of different sizes do not fit into one batch; add "
                "'center_crop H,W' or 'resize H,W'");
    expect_fail("decode | clip | center_crop 8 | tensor i64", &clip,
                "pipeline: column 33: tensor: a clip cannot be i64; expected u8, f16, bf16 or f32");
}

/* The first of several clips has an image's draws, the others have others; crops share them. */
TEST(clip_views_have_draws)
{
    static PenSamplePlan alone, views[4];
    PenError err = {0};
    PenProgram *one = make("decode | random_resized_crop 8 | color_jitter 0.5", &image, &err);
    PenProgram *p =
        make("decode | clip n=2 | random_resized_crop 8 | color_jitter 0.5", &clip, &err);
    PenImageShape shape = {100, 80, 1, 0};
    PenDrawKey key = pen__draw_key(1, 2);
    CHECK(one && p);
    CHECK_INT(pen__sample_plan_make(one, &shape, key, 5, &alone, &err), PEN_OK);
    for (uint32_t v = 0; v < 2; v++)
        CHECK_INT(pen__sample_plan_make_view(p, &shape, key, 5, v, &views[v], &err), PEN_OK);
    CHECK_MEM(&views[0].steps[0].u.pass.crop, &alone.steps[0].u.pass.crop, sizeof(PenBox));
    CHECK_INT(views[0].steps[1].u.factor, alone.steps[1].u.factor);
    CHECK(memcmp(&views[1].steps[0].u.pass.crop, &alone.steps[0].u.pass.crop, sizeof(PenBox)) != 0);
    CHECK(views[1].steps[1].u.factor != alone.steps[1].u.factor);
    pen__program_free(&one);
    pen__program_free(&p);
}

static PenBox crop_of(const PenProgram *p, PenImageShape shape, uint32_t view)
{
    static PenSamplePlan r;
    PenError err = {0};
    if (pen__sample_plan_make_view(p, &shape, pen__draw_key(1, 2), 0, view, &r, &err) < 0)
        return (PenBox){0};
    return r.region;
}

TEST(clip_three_crops)
{
    static const uint32_t along[] = {0, 20, 40};
    PenError err = {0};
    PenProgram *p = make("decode | clip | three_crop 60", &clip, &err);
    CHECK(p);
    for (uint32_t v = 0; v < 3; v++) {
        PenBox wide = crop_of(p, (PenImageShape){100, 70, 1, 0}, v);
        CHECK_INT(wide.x, along[v]);
        CHECK_INT(wide.y, 5);
        CHECK_INT(wide.w, 60);
        CHECK_INT(wide.h, 60);
        PenBox tall = crop_of(p, (PenImageShape){60, 100, 1, 0}, v);
        CHECK_INT(tall.x, 0);
        CHECK_INT(tall.y, along[v]);
        CHECK_INT(tall.h, 60);
        /* What is smaller has a border and nothing to choose. */
        PenBox small = crop_of(p, (PenImageShape){50, 40, 1, 0}, v);
        CHECK_INT(small.x, 0);
        CHECK_INT(small.w, 50);
    }
    pen__program_free(&p);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(clip_frames_by_number);
    RUN(clip_messages);
    RUN(clip_lists);
    RUN(clip_around_a_frame);
    RUN(clip_frames_by_time);
    RUN(clip_times_may_be_rounded);
    RUN(clip_times_may_be_equal);
    RUN(clip_shapes);
    RUN(clip_programs_that_are_wrong);
    RUN(clip_views_have_draws);
    RUN(clip_three_crops);
    return TEST_END();
}
