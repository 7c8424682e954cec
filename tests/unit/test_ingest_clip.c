/* SPDX-License-Identifier: Apache-2.0 */
/* Clips from folders of frames, and from lists that name such folders. */
#include "fault_sweep.h"
#include "ingest/plan/plan.h"
#include "ingest/source/frames.h"
#include "ingest/source/list.h"
#include "pack_help.h"

static PenIngestSettings settings;
static const char *source;

static PenIngestSettings *ask(const char *name, int kind)
{
    static char path[4400];
    snprintf(path, sizeof path, "%s", at(name));
    source = path;
    settings = help_settings(&source, 1);
    settings.kind = kind;
    return &settings;
}

static int scan(PenInputs *in, PenError *err)
{
    *in = (PenInputs){.settings = &settings};
    int r = pen__scan_sources(in, err);
    if (r < 0)
        pen__inputs_free(in);
    return r;
}

/* "key label kind offset bytes" of the sample, whose first cell it is. */
static const char *described(const PenInputs *in, uint64_t i)
{
    static char text[512];
    PenInput input;
    PenCell c;
    pen__inputs_get(in, i, &input);
    pen__cell_next(&(const uint8_t *){input.cells}, &c);
    snprintf(text, sizeof text, "%.*s %s %d %d %d", (int)input.key_bytes, (const char *)input.key,
             input.label == PEN_NO_LABEL ? "-" : in->labels.names[input.label], c.kind,
             (int)c.offset, (int)c.bytes);
    return text;
}

/* A clip of n frames, frame i being number base + i. */
static void make_clip(const char *folder, uint32_t base, uint32_t n, const char *pattern)
{
    for (uint32_t i = 0; i < n; i++) {
        char name[256], file[64];
        PenBuf jpeg = {0};
        help_jpeg(base + i, &jpeg);
        snprintf(file, sizeof file, strcmp(pattern, "plain") == 0 ? "%u.jpg" : "%05u.jpg", i + 1);
        snprintf(name, sizeof name, "%s/%s", folder, file);
        help_file(name, jpeg.data, jpeg.bytes);
        pen__buf_free(&jpeg);
    }
}

/* ---- order ----------------------------------------------------------------------------------- */

TEST(frames_are_ordered_by_their_numbers)
{
    static const char *const right[] = {"1.jpg",    "02.jpg", "2.jpg",   "10.jpg",
                                        "10b1.jpg", "a.jpg",  "a00.jpg", "a1.jpg",
                                        "a01b.jpg", "a2.jpg", "a10.jpg", "b"};
    for (size_t i = 0; i < PEN_LEN(right); i++)
        for (size_t k = 0; k < PEN_LEN(right); k++) {
            int order = pen__frames_compare(right[i], right[k]);
            CHECK_INT((order > 0) - (order < 0), (i > k) - (i < k));
        }
}

/* ---- folders --------------------------------------------------------------------------------- */

TEST(folders_with_files_are_clips)
{
    help_text("f/wave/one/1.jpg", "1");
    help_text("f/wave/one/2.jpg", "22");
    help_text("f/wave/one/.hidden", "22");
    help_text("f/clap/deep/er/1.jpg", "333");
    ask("f", PEN_INPUT_FRAMES);
    PenInputs in;
    CHECK_GOES(scan(&in, &err));
    CHECK_INT(in.n, 2);
    CHECK_STR(described(&in, 0), "clap/deep/er clap 5 1 3");
    CHECK_STR(described(&in, 1), "wave/one wave 5 2 3");
    CHECK_STR(in.columns[0].name, "video");
    CHECK_INT(in.columns[0].type, PEN_TYPE_CLIP);
    char name[4400];
    PenInput named;
    pen__inputs_get(&in, 1, &named);
    pen__input_name(&in, &named, name, sizeof name);
    CHECK_STR(name, at("f/wave/one"));
    pen__inputs_free(&in);
    /* Without being told, files in folders are images. */
    ask("f", PEN_INPUT_AUTO);
    CHECK_GOES(scan(&in, &err));
    CHECK_INT(in.n, 3);
    CHECK_INT(in.columns[0].type, PEN_TYPE_IMAGE);
    pen__inputs_free(&in);
}

TEST(clips_without_classes)
{
    help_text("flat/one/1.jpg", "1");
    help_text("flat/two/1.jpg", "1");
    ask("flat", PEN_INPUT_FRAMES);
    PenInputs in;
    CHECK_GOES(scan(&in, &err));
    CHECK_INT(in.has_label, false);
    CHECK_STR(described(&in, 0), "one - 5 1 1");
    pen__inputs_free(&in);
    help_text("flat/class/three/1.jpg", "1");
    CHECK_FAILS(scan(&in, &err), PEN_E_INVALID, "all files in class folders or none");
}

TEST(files_where_no_frames_belong)
{
    PenInputs in;
    help_text("w1/wave/one/1.jpg", "1");
    help_text("w1/2.jpg", "1");
    ask("w1", PEN_INPUT_FRAMES);
    CHECK_FAILS(scan(&in, &err), PEN_E_INVALID, "found files outside any folder");
    help_text("w2/wave/one/1.jpg", "1");
    help_text("w2/wave/2.jpg", "1");
    ask("w2", PEN_INPUT_FRAMES);
    CHECK_FAILS(scan(&in, &err), PEN_E_INVALID, "found files next to folders");
    ask("w2", 7);
    PenIngestResult result;
    settings.out = at("never.pen");
    CHECK_FAILS(pen_ingest_run(&settings, &result, &err), PEN_E_INVALID, "kind 7: expected 0 to 3");
}

TEST(videos_are_known_by_their_names)
{
    help_text("v/wave/1.mp4", "1234");
    help_text("v/wave/2.AVI", "12345");
    ask("v", PEN_INPUT_AUTO);
    PenInputs in;
    CHECK_GOES(scan(&in, &err));
    CHECK_INT(in.what, PEN_INPUT_VIDEOS);
    CHECK_STR(described(&in, 1), "wave/2.AVI wave 6 0 5");
    pen__inputs_free(&in);
    ask("v", PEN_INPUT_IMAGES);
    CHECK_FAILS(scan(&in, &err), PEN_E_NOT_FOUND,
                "expected images (.jpg, .jpeg, .png, .webp), found only other names (2, such as "
                "wave/1.mp4)");
    pen__inputs_free(&in);
    help_text("v/wave/0.jpg", "1");
    CHECK_GOES(scan(&in, &err));
    CHECK_INT(in.columns[0].type, PEN_TYPE_IMAGE);
    CHECK_INT(in.n, 1);
    CHECK_INT(in.n_ignored, 2);
    pen__inputs_free(&in);
    ask("v", PEN_INPUT_VIDEOS);
    CHECK_GOES(scan(&in, &err));
    CHECK_INT(in.n, 2);
    CHECK_INT(in.n_ignored, 1);
    pen__inputs_free(&in);
    ask("v", PEN_INPUT_AUTO);
    CHECK_FAILS(scan(&in, &err), PEN_E_INVALID,
                "expected images or videos, found both, such as wave/1.mp4; choose with --kind");
    pen__inputs_free(&in);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int list(const char *text, int kind, PenInputs *in, PenError *err)
{
    help_text("lists/list.csv", text);
    ask("lists/list.csv", kind);
    static char root[4400];
    snprintf(root, sizeof root, "%s", at("clips"));
    settings.root = root;
    return scan(in, err);
}

TEST(lists_of_20bn)
{
    help_text("clips/17/00001.jpg", "1");
    help_text("clips/17/00002.jpg", "2");
    help_text("clips/4/00001.jpg", "333");
    PenInputs in;
    CHECK_GOES(list("17;Drumming, Fingers\n4;\"Stop; Sign\"\n", 0, &in, &err));
    CHECK_INT(in.n, 2);
    CHECK_STR(described(&in, 0), "17 Drumming, Fingers 5 2 2");
    CHECK_STR(described(&in, 1), "4 Stop; Sign 5 1 3");
    CHECK_STR(in.columns[0].name, "video");
    CHECK_INT(in.n_columns, 1);
    pen__inputs_free(&in);
    /* Test sets have ids alone. */
    CHECK_GOES(list("17\n4\n", 0, &in, &err));
    CHECK_STR(described(&in, 1), "4 - 5 1 3");
    pen__inputs_free(&in);
    /* With a header, further columns, other separators. */
    CHECK_GOES(list("id\tclass\tage\n4\twave\t12\n", 0, &in, &err));
    CHECK_STR(described(&in, 0), "4 wave 5 1 3");
    CHECK_STR(in.columns[1].name, "age");
    pen__inputs_free(&in);
    CHECK_GOES(list("label,path\nwave,4\n", 0, &in, &err));
    CHECK_STR(described(&in, 0), "4 wave 5 1 3");
    pen__inputs_free(&in);
    CHECK_GOES(list("clip,mask\n4,none\n", 0, &in, &err)); /* no second image of a clip */
    CHECK_INT(in.columns[1].type, 0);
    pen__inputs_free(&in);
}

/* A column that is called like a folder is not a sample. */
TEST(headers_that_look_like_samples)
{
    PenInputs in;
    CHECK_FAILS(list("17,label\n99,x\n", 0, &in, &err), PEN_E_INVALID, "expected a header");
    CHECK_FAILS(list("17,label\n17/00001.jpg,x\n", 0, &in, &err), PEN_E_INVALID, "a header");
    CHECK_GOES(list("17,label\n4,x\n", 0, &in, &err));
    pen__inputs_free(&in);
    CHECK_GOES(list("17", 0, &in, &err));
    CHECK_STR(described(&in, 0), "17 - 5 2 2");
    pen__inputs_free(&in);
    CHECK_GOES(list("17/00001.jpg;x\n17/00002.jpg;y\n", 0, &in, &err)); /* images need none, too */
    CHECK_STR(described(&in, 1), "17/00002.jpg y 1 0 1");
    pen__inputs_free(&in);
}

TEST(separators)
{
    static const struct {
        const char *text;
        char separator;
    } cases[] = {{"a,b;c", ','},   {"a;b,c", ';'},
                 {"a\tb;c", '\t'}, {"\"a,b\";c", ';'},
                 {"a\nb;c", ','},  {"", ','},
                 {"a", ','},       {"\"a\n,b\";c", ';'},
                 {"\"a,b", ','},   {"\"a\"\"\"\tb,", '\t'}};
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        PenSource *from = NULL;
        char found = 0;
        CHECK_GOES(
            pen__source_open_memory("list", cases[i].text, strlen(cases[i].text), &from, &err));
        CHECK_GOES(pen__list_separator(from, &found, &err));
        pen__source_close(&from);
        CHECK_INT(found, cases[i].separator);
    }
}

TEST(videos_of_lists_have_times)
{
    help_text("clips/a.mp4", "1234");
    PenInputs in;
    PenInput input;
    PenCell c;
    CHECK_GOES(list("path,label,start,end,note\na.mp4,x,1.5,3,n\na.mp4,x,,,n\na.mp4,x,7,,n\n"
                    "a.mp4,x,,8.25,n\n",
                    0, &in, &err));
    CHECK_INT(in.n, 4);
    CHECK_STR(described(&in, 0), "a.mp4#t=1.5,3 x 6 1500000000 4");
    CHECK_STR(described(&in, 1), "a.mp4 x 6 0 4");
    CHECK_STR(described(&in, 2), "a.mp4#t=7 x 6 -1589934592 4"); /* cut to 32 bits by the test */
    CHECK_STR(described(&in, 3), "a.mp4#t=,8.25 x 6 0 4");
    pen__inputs_get(&in, 0, &input);
    pen__cell_next(&input.cells, &c);
    CHECK_INT(c.end, 3000000000);
    CHECK(help_is(c.text, c.text_bytes, "a.mp4"));
    pen__inputs_get(&in, 2, &input);
    pen__cell_next(&input.cells, &c);
    CHECK_INT(c.end == PEN_NO_END, 1);
    CHECK_INT(c.offset, 7000000000);
    CHECK_INT(in.n_columns, 2); /* video, note */
    pen__inputs_free(&in);
    CHECK_GOES(list("a.mp4;x;0;2\n", 0, &in, &err)); /* without a header */
    CHECK_STR(described(&in, 0), "a.mp4#t=0,2 x 6 0 4");
    pen__inputs_free(&in);
    CHECK_FAILS(list("path,start\na.mp4,now\n", 0, &in, &err), PEN_E_INVALID,
                "line 2, column 2: expected a time in seconds, found \"now\"");
    CHECK_FAILS(list("path,start\na.mp4,-1\n", 0, &in, &err), PEN_E_INVALID, "a time in seconds");
    CHECK_FAILS(list("path,start,end\na.mp4,2,2\n", 0, &in, &err), PEN_E_INVALID,
                "line 2, column 3: expected an end after the start");
}

TEST(bad_lists_of_clips)
{
    PenInputs in;
    mkdir(at("clips/empty"), 0777);
    help_text("clips/deep/er/1.jpg", "1");
    CHECK_FAILS(list("17;x\n4;x\n99;y\n", 0, &in, &err), PEN_E_NOT_FOUND,
                "line 3, column 1: no such folder");
    CHECK_FAILS(list("17;x\n4;x\na.mp4;y\n", 0, &in, &err), PEN_E_INVALID,
                "line 3, column 1: expected the path of a folder of frames");
    CHECK_FAILS(list("17;x\nempty;y\n", 0, &in, &err), PEN_E_INVALID,
                "clips/empty: expected frames, found an empty folder");
    CHECK_FAILS(list("17;x\ndeep;y\n", 0, &in, &err), PEN_E_INVALID, "found a folder");
    CHECK_FAILS(list("98;x\n99;y\n", 0, &in, &err), PEN_E_INVALID, "expected a header");
    CHECK_FAILS(list("98;x\n99;y\n", PEN_INPUT_FRAMES, &in, &err), PEN_E_NOT_FOUND, "line 1, ");
    CHECK_GOES(list("17;x;1\n", 0, &in, &err)); /* a third column is a value called start */
    pen__inputs_free(&in);
}

/* ---- whole runs ------------------------------------------------------------------------------ */

static PenIngestSettings ask_run(const char *out)
{
    PenIngestSettings s = help_ingest("set/list.csv", out);
    static char root[4400];
    snprintf(root, sizeof root, "%s", at("set/frames"));
    s.root = root;
    s.order = PEN_PACK_SOURCE;
    s.mode = PEN_MODE_KEEP;
    return s;
}

TEST(frames_are_kept_byte_for_byte)
{
    PenError e = {0};
    PenIngestResult result;
    PenPack *pack = NULL;
    PenIngestSettings s = ask_run("kept.pen");
    s.fps = 12;
    CHECK_GOES(pen_ingest_run(&s, &result, &err));
    CHECK_INT(pen_pack_open(s.out, NULL, &pack, &e), PEN_OK);
    CHECK_INT(pen_pack_info(pack)->fields[0].type, PEN_TYPE_CLIP);
    CHECK(strstr(pen_pack_info(pack)->settings, "\"fps\":12"));
    static const uint32_t counts[] = {12, 1, 3};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t n = 0;
        CHECK_INT(pen_pack_frame_count(pack, i, 0, &n, &e), PEN_OK);
        CHECK_INT(n, counts[i]);
        for (uint32_t f = 0; f < n; f++) {
            PenBuf jpeg = {0};
            static uint8_t data[1 << 17];
            size_t bytes = 0;
            PenImage image;
            PenFrameRange range = {.first = f, .step = 1, .n = 1};
            help_jpeg(100 * i + f, &jpeg);
            CHECK_INT(pen_pack_read_frames(pack, i, 0, &range, data, sizeof data, &bytes, &e),
                      PEN_OK);
            CHECK_INT(bytes, jpeg.bytes);
            CHECK_MEM(data, jpeg.data, bytes);
            CHECK_INT(pen_pack_image(pack, i, 0, f, &image, &e), PEN_OK);
            CHECK_INT(image.timestamp_ns, (int64_t)((double)f * 1e9 / 12 + 0.5));
            pen__buf_free(&jpeg);
        }
    }
    pen_pack_close(&pack);
}

TEST(a_broken_frame_makes_a_broken_clip)
{
    PenIngestResult result;
    help_text("set/frames/b/00001.jpg", "no image");
    PenIngestSettings s = ask_run("broken.pen");
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_DECODE, "set/frames/b/00001.jpg: ");
    s.skip_bad = 1;
    s.max_bad = 1;
    CHECK_GOES(pen_ingest_run(&s, &result, &err));
    CHECK_INT(result.n_samples, 2);
    CHECK_INT(result.n_bad, 1);
    make_clip("set/frames/b", 100, 1, "");
}

TEST(missing_clips_can_be_left_out)
{
    PenIngestResult result;
    help_text("set/more.csv", "a;x\nnone;y\nempty;y\ndeep;z\n");
    mkdir(at("set/frames/empty"), 0777);
    help_text("set/frames/deep/er/1.jpg", "x");
    PenIngestSettings s = ask_run("missing.pen");
    const char *more = at("set/more.csv");
    s.sources = &more;
    s.kind = PEN_INPUT_FRAMES; /* as the second is missing, nothing else tells */
    s.skip_bad = 1;
    s.max_bad = 10;
    CHECK_GOES(pen_ingest_run(&s, &result, &err));
    CHECK_INT(result.n_samples, 1);
    CHECK_INT(result.n_bad, 3);
    PenBuf report = {0};
    CHECK(read_whole_file(at("missing.pen-bad.jsonl"), &report));
    CHECK(memmem(report.data, report.bytes, "\"none\"", 6));
    CHECK(memmem(report.data, report.bytes, "expected frames, found none", 27));
    CHECK(memmem(report.data, report.bytes, "found a folder", 14));
    pen__buf_free(&report);
}

/* The plan says what was there; what is read later must be the same. */
TEST(clips_that_change_are_noticed)
{
    PenIngestResult result;
    PenIngestSettings s = ask_run("changed.pen");
    CHECK_GOES(pen_ingest_plan(&s, &result, &err));
    CHECK_INT(result.n_samples, 3);
    s.n_tasks = 1; /* a task takes the plan as it is */
    make_clip("set/frames/b", 100, 2, "");
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_INVALID, "expected 1 frames, found 2");
    CHECK_INT(unlink(at("set/frames/b/00002.jpg")), 0);
    PenBuf other = {0};
    help_jpeg(100, &other);
    CHECK_INT(pen__buf_add(&other, "", 1), 0);
    help_file("set/frames/b/00001.jpg", other.data, other.bytes);
    pen__buf_free(&other);
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_INVALID, "changed since the plan");
    make_clip("set/frames/b", 100, 1, "");
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_INVALID, "run 'penstock plan' again");
    s.n_tasks = 0;
    CHECK_GOES(pen_ingest_run(&s, &result, &err)); /* planned anew, as the sources are now */
}

/* ---- K --------------------------------------------------------------------------------------- */

static uint64_t samples_per_block(int mode)
{
    PenError err = {0};
    PenIngestResult result = {0};
    PenIngestSettings s = ask_run("k.pen");
    s.block_samples = 0;
    s.mode = mode;
    int r = pen_ingest_plan(&s, &result, &err);
    PenGcResult gc;
    if (r < 0 || pen_ingest_gc(s.out, NULL, NULL, 1, &gc, &err) < 0)
        test__fail(__FILE__, __LINE__, "%s", err.message);
    return result.block_samples;
}

TEST(large_clips_are_blocks_of_their_own)
{
    PenBuf frame = {0};
    help_jpeg(100, &frame);
    /* 3 clips of 16 frames; a PNG's size follows from its pixels when raw. */
    uint64_t kept = samples_per_block(PEN_MODE_KEEP), raw = samples_per_block(PEN_MODE_RAW);
    CHECK(kept > raw && raw > 1);
    /* 3 MiB of frames in each clip: two of them are more than a block's 4 MiB. */
    static uint8_t noise[1 << 20];
    memcpy(noise, frame.data, frame.bytes);
    for (int i = 0; i < 9; i++) {
        char name[64];
        snprintf(name, sizeof name, "set/frames/%c/big%d.jpg", 'a' + i / 3, i);
        help_file(name, noise, sizeof noise);
    }
    CHECK_INT(samples_per_block(PEN_MODE_KEEP), 1);
    for (int i = 0; i < 9; i++) {
        char name[64];
        snprintf(name, sizeof name, "set/frames/%c/big%d.jpg", 'a' + i / 3, i);
        unlink(at(name));
    }
    pen__buf_free(&frame);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static int count_frame(void *ctx, PenBuf *data, PenError *err)
{
    (void)err;
    *(uint64_t *)ctx += data->bytes;
    return PEN_OK;
}

/* A plan made, and all clips read by it. */
static int read_once(PenError *err)
{
    PenIngestSettings s = ask_run("fault.pen");
    PenPlanRequest request = {.settings = &s, .settings_text = "{}"};
    PenPlan *plan = NULL;
    PenPartReader *reader = NULL;
    PenBuf scratch = {0};
    PenItem item;
    uint64_t bytes = 0;
    int r = pen__plan_make(&request, at("fault-plan"), err);
    if (r == 0)
        r = pen__plan_open(at("fault-plan"), &plan, err);
    if (r == 0)
        r = pen__part_reader_open(plan, &reader, err);
    for (uint64_t i = 0; r == 0 && i < 3; i++) {
        r = pen__plan_item(plan, i, &item, &scratch, err);
        if (r == 0)
            r = pen__part_frames(reader, &item.parts[0], count_frame, &bytes, NULL, err);
    }
    pen__buf_free(&scratch);
    pen__part_reader_close(&reader);
    pen__plan_close(&plan);
    return r;
}

static int scan_once(PenError *err)
{
    PenInputs in;
    int r = list("17;x\n4;y\n", 0, &in, err);
    if (r == 0)
        pen__inputs_free(&in);
    return r;
}

TEST(every_call_fails)
{
    int points = 0;
    fault_sweep(scan_once, &points);
    printf("every_call_fails: scan: %d points\n", points);
    CHECK(points > 40);
    fault_sweep(read_once, &points);
    printf("every_call_fails: read: %d points\n", points);
    CHECK(points > 100);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    make_clip("set/frames/a", 0, 12, "plain"); /* 10.jpg sorts before 2.jpg by bytes */
    make_clip("set/frames/b", 100, 1, "");
    make_clip("set/frames/c", 200, 3, "");
    help_text("set/list.csv", "a;x\nb;y\nc;y\n");
    RUN(frames_are_ordered_by_their_numbers);
    RUN(folders_with_files_are_clips);
    RUN(clips_without_classes);
    RUN(files_where_no_frames_belong);
    RUN(videos_are_known_by_their_names);
    RUN(lists_of_20bn);
    RUN(headers_that_look_like_samples);
    RUN(separators);
    RUN(videos_of_lists_have_times);
    RUN(bad_lists_of_clips);
    RUN(frames_are_kept_byte_for_byte);
    RUN(a_broken_frame_makes_a_broken_clip);
    RUN(missing_clips_can_be_left_out);
    RUN(clips_that_change_are_noticed);
    RUN(large_clips_are_blocks_of_their_own);
    RUN(every_call_fails);
    help_end();
    return TEST_END();
}
