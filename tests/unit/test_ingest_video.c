/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of videos are those that ffmpeg writes: not one byte of the pixels handed over differs,
 * for whole videos, parts of them, fewer or more frames a second, turned and variable ones. Videos
 * are made by ffmpeg; those of ../shared/data/videos are read too when they are there,
 * all of them whole with PENSTOCK_FULL=1. */
#include <glob.h>

#include "video_help.h"

#define CONVERT "scale=flags=bicubic+accurate_rnd+full_chroma_int+bitexact,format=rgb24"

static bool has_ffmpeg;

/* The same by another way: a file of raw pixels, no tee and no pipes. `before` are options of the
 * input, `filter` comes before the conversion. */
static void make_expected(const char *path, const char *before, const char *filter, PenBuf *ret)
{
    shell("for mode in -fps_mode -vsync; do ffmpeg -y -nostdin -loglevel error -flags +bitexact %s "
          "-i '%s' -map 0:V:0 -vf '%s%s' $mode passthrough -f rawvideo '%s' && break; done",
          before, path, filter, CONVERT, at("raw"));
    CHECK(read_whole_file(at("raw"), ret));
}

static void check_pixels(const char *path, const Got *got, const PenBuf *expected)
{
    if (got->pixels.bytes != expected->bytes ||
        memcmp(got->pixels.data, expected->data, expected->bytes) != 0)
        test__fail(__FILE__, __LINE__, "%s: %zu bytes, expected %zu", path, got->pixels.bytes,
                   expected->bytes);
}

static void check_same(const char *path, const Got *got, const char *before, const char *filter)
{
    PenBuf expected = {0};
    make_expected(path, before, filter, &expected);
    check_pixels(path, got, &expected);
    pen__buf_free(&expected);
}

static const char *const made[] = {"h264.mp4", "mpeg4.avi", "vp8.webm", "grey.mkv"};

static void make_videos(void)
{
    static const char *const options[] = {"-c:v libx264 -bf 2", "-c:v mpeg4 -q:v 3",
                                          "-c:v libvpx -b:v 500k -pix_fmt yuv420p",
                                          "-c:v ffv1 -pix_fmt gray"};
    for (size_t i = 0; i < PEN_LEN(made); i++)
        shell("ffmpeg -y -loglevel error -f lavfi -i testsrc=size=74x50:rate=25:duration=1.2 "
              "-pix_fmt yuv420p %s '%s'",
              options[i], at(made[i]));
    /* The option is of version 6; before that the old name of the metadata is understood. */
    shell("ffmpeg -y -loglevel error -display_rotation 90 -i '%s' -c copy '%s' || "
          "ffmpeg -y -loglevel error -i '%s' -metadata:s:v rotate=90 -c copy '%s'",
          at("h264.mp4"), at("turned.mp4"), at("h264.mp4"), at("turned.mp4"));
    /* Every third frame is gone, and the times stay. */
    shell("ffmpeg -y -loglevel error -f lavfi -i testsrc=size=74x50:rate=30:duration=1 -vf "
          "\"select='mod(n,3)'\" -vsync vfr -c:v libx264 '%s'",
          at("variable.mp4"));
    /* Farther and farther apart: no rate has ticks for all of them. */
    shell("for mode in -fps_mode -vsync; do ffmpeg -y -loglevel error -f lavfi -i "
          "testsrc=size=74x50:rate=25:duration=0.8 -vf settb=1/1000,'setpts=3*N*N' "
          "$mode passthrough -enc_time_base 1/1000 -c:v libx264 '%s' && break; done",
          at("uneven.mkv"));
}

TEST(whole_videos)
{
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    for (size_t i = 0; i < PEN_LEN(made); i++) {
        Got got;
        read_video(&got, at(made[i]), 0, 0, PEN_NO_END);
        CHECK_STR(got.err.message, "");
        CHECK_INT(got.width, 74);
        CHECK_INT(got.n, 30);
        for (uint64_t f = 0; f < got.n; f++)
            CHECK_INT(time_of(&got, f), (int64_t)f * 40000000);
        check_same(at(made[i]), &got, "", "");
        free_got(&got);
    }
}

static int spawn_without_landlock(const PenSpawn *what, PenSpawned *ret)
{
    PenConfine confine = *what->confine;
    PenSpawn copy = *what;
    confine.no_landlock = true;
    copy.confine = &confine;
    return pen__sys_real.spawn(&copy, ret);
}

static void read_both_ways(const char *name)
{
    Got got;
    PenBuf expected = {0};
    PenSys sys = pen__sys_real;
    make_expected(at(name), "", "", &expected);
    for (int i = 0; i < 2; i++) {
        pen__sys = i ? &sys : &pen__sys_real;
        sys.spawn = spawn_without_landlock;
        read_video(&got, at(name), 0, 0, PEN_NO_END);
        pen__sys = &pen__sys_real;
        if (got.r < 0)
            test__fail(__FILE__, __LINE__, "%s", got.err.message);
        CHECK_INT(got.n, 10);
        check_pixels(at(name), &got, &expected);
        free_got(&got);
    }
    pen__buf_free(&expected);
}

/* Decoders and demuxers of many kinds need nothing that the confinement refuses, with Landlock and
 * without; some of them start threads. */
TEST(formats_confined)
{
    static const struct {
        const char *codec, *options, *name;
    } cases[] = {{"libaom-av1", "-cpu-used 8", "av1.mkv"},
                 {"libvpx-vp9", "", "vp9.webm"},
                 {"libx265", "-x265-params log-level=0", "hevc.mp4"},
                 {"mjpeg", "", "mjpeg.mov"},
                 {"prores", "", "prores.mov"},
                 {"gif", "", "gif.gif"},
                 {"mpeg2video", "", "mpeg2.mpg"},
                 {"mpeg1video", "", "mpeg1.ts"},
                 {"flv", "", "flv.flv"},
                 {"libtheora", "", "theora.ogv"},
                 {"wmv2", "", "wmv2.wmv"},
                 {"apng", "-plays 1", "apng.apng"},
                 {"libopenjpeg", "", "jpeg2000.mxf"},
                 {"rawvideo", "", "raw.nut"}};
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        if (!can_encode(cases[i].codec))
            continue;
        shell("ffmpeg -y -loglevel error -f lavfi -i testsrc=size=74x50:rate=25:duration=0.4 "
              "-c:v %s %s '%s'",
              cases[i].codec, cases[i].options, at(cases[i].name));
        read_both_ways(cases[i].name);
    }
}

TEST(parts_of_videos)
{
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    Got got;
    read_video(&got, at("h264.mp4"), 0, 310000000, 700000000);
    CHECK_INT(got.r, PEN_OK);
    CHECK_INT(got.n, 10); /* 0.32 to 0.68 */
    CHECK_INT(time_of(&got, 0), 0);
    CHECK_INT(time_of(&got, 9), 360000000);
    check_same(at("h264.mp4"), &got, "-ss 0.31 -t 0.39", "");
    free_got(&got);
    read_video(&got, at("h264.mp4"), 0, 0, 700000000);
    CHECK_INT(got.n, 18);
    free_got(&got);
    read_video(&got, at("h264.mp4"), 0, 1000000000, PEN_NO_END);
    CHECK_INT(got.n, 5);
    check_same(at("h264.mp4"), &got, "-ss 1", "");
    free_got(&got);
    read_video(&got, at("h264.mp4"), 0, 9000000000, PEN_NO_END); /* behind its end */
    CHECK_INT(got.r, PEN_E_DECODE);
    CHECK(strstr(got.err.message, "expected frames, found none"));
    free_got(&got);
}

TEST(other_rates)
{
    static const struct {
        double fps;
        const char *text;
        uint64_t n;
    } cases[] = {{10, "10", 12}, {12.5, "25/2", 15}, {50, "50", 60}, {7, "7", 8}};
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        Got got;
        char filter[64];
        read_video(&got, at("mpeg4.avi"), cases[i].fps, 0, PEN_NO_END);
        CHECK_STR(got.err.message, "");
        CHECK_INT(got.n, cases[i].n);
        for (uint64_t f = 0; f < got.n; f++)
            CHECK_INT(time_of(&got, f), (int64_t)((double)f * 1e9 / cases[i].fps + 0.5));
        snprintf(filter, sizeof filter, "fps=%s,", cases[i].text);
        check_same(at("mpeg4.avi"), &got, "", filter);
        free_got(&got);
    }
}

TEST(turned_videos)
{
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    Got got;
    read_video(&got, at("turned.mp4"), 0, 0, PEN_NO_END);
    CHECK_STR(got.err.message, "");
    CHECK_INT(got.width, 50);
    CHECK_INT(got.height, 74);
    check_same(at("turned.mp4"), &got, "", "");
    free_got(&got);
}

TEST(variable_rates)
{
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    Got got;
    read_video(&got, at("variable.mp4"), 0, 0, PEN_NO_END);
    CHECK_STR(got.err.message, "");
    CHECK_INT(got.n, 20); /* frames 1 2 4 5 7 ... of thirtieths */
    for (uint64_t f = 0; f < got.n; f++) {
        int64_t tick = (int64_t)(f / 2 * 3 + f % 2);
        int64_t off = time_of(&got, f) - tick * 1000000000 / 30;
        CHECK(off > -200000 && off < 200000);
    }
    check_same(at("variable.mp4"), &got, "", "");
    free_got(&got);
    read_video(&got, at("uneven.mkv"), 0, 0, PEN_NO_END);
    CHECK_STR(got.err.message, "");
    CHECK_INT(got.n, 20);
    for (uint64_t f = 0; f < got.n; f++)
        CHECK_INT(time_of(&got, f), (int64_t)(f * f) * 3000000);
    check_same(at("uneven.mkv"), &got, "", "");
    free_got(&got);
    /* By their times, not by their number. */
    read_video(&got, at("variable.mp4"), 10, 0, PEN_NO_END);
    CHECK_INT(got.n, 10);
    check_same(at("variable.mp4"), &got, "", "fps=10,");
    free_got(&got);
}

TEST(frames_at_the_same_time)
{
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    Got got;
    shell(
        "cd '%s' && ffmpeg -y -loglevel error -f lavfi -i testsrc=size=74x50:rate=25:duration=0.4 "
        "-c:v mjpeg -pix_fmt yuvj420p one.mkv && ffmpeg -y -loglevel error -i one.mkv -c copy "
        "-bsf:v 'setts=ts=floor(TS/80)*80' pairs.mkv",
        help_root);
    read_video(&got, at("pairs.mkv"), 0, 0, PEN_NO_END);
    CHECK_STR(got.err.message, "");
    CHECK_INT(got.n, 10);
    for (uint64_t f = 0; f < got.n; f++)
        CHECK_INT(time_of(&got, f), (int64_t)(f / 2 * 80 + f % 2) * 1000000);
    check_same(at("one.mkv"), &got, "", "");
    free_got(&got);
}

/* What says that it is a video and is something else reads no other files. */
TEST(playlists_are_refused)
{
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    Got got;
    char text[9000];
    snprintf(text, sizeof text,
             "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n%s\n#EXT-X-ENDLIST\n", at("h264.mp4"));
    help_text("list.mp4", text);
    snprintf(text, sizeof text, "ffconcat version 1.0\nfile h264.mp4\n");
    help_text("concat.mp4", text);
    static const char *const names[] = {"list.mp4", "concat.mp4"};
    for (size_t i = 0; i < PEN_LEN(names); i++) {
        read_video(&got, at(names[i]), 0, 0, PEN_NO_END);
        CHECK_INT(got.r, PEN_E_DECODE);
        CHECK_INT(got.n, 0);
        free_got(&got);
    }
    help_text("sound.mp4", "");
    shell("ffmpeg -y -loglevel error -f lavfi -i sine=duration=0.2 '%s'", at("sound.mp4"));
    read_video(&got, at("sound.mp4"), 0, 0, PEN_NO_END);
    CHECK_INT(got.r, PEN_E_DECODE);
    free_got(&got);
}

/* A raw pack holds the pixels as they came; an encoded one is what our own encoder makes of them.
 */
TEST(packed_frames)
{
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    PenIngestResult result;
    PenPack *pack = NULL;
    Got got;
    PenBuf data = {0};
    shell("mkdir -p '%s' && cp '%s' '%s'", at("set/a"), at("h264.mp4"), at("set/a/1.mp4"));
    PenIngestSettings s = help_ingest("set", "raw.pen");
    s.mode = PEN_MODE_RAW;
    s.fps = 5;
    CHECK_GOES(pen_ingest_run(&s, &result, &err));
    CHECK_GOES(pen_pack_open(s.out, NULL, &pack, &err));
    read_video(&got, at("h264.mp4"), 5, 0, PEN_NO_END);
    help_read(pack, 0, 0, &data);
    CHECK_INT(data.bytes, got.pixels.bytes);
    CHECK_MEM(data.data, got.pixels.data, data.bytes);
    pen_pack_close(&pack);
    s = help_ingest("set", "encoded.pen");
    s.fps = 5;
    s.quality = 70;
    CHECK_GOES(pen_ingest_run(&s, &result, &err));
    CHECK_GOES(pen_pack_open(s.out, NULL, &pack, &err));
    help_read(pack, 0, 0, &data);
    size_t each = (size_t)74 * 50 * 3;
    const uint8_t *p = data.data;
    PenPrepareSettings prepare = {
        .mode = PEN_MODE_KEEP, .quality = 70, .index = 1, .limits = pen__limits_default};
    for (uint64_t f = 0; f < got.n; f++) {
        PenPixels pixels = {got.pixels.data + f * each, 74, 50, 3};
        PenPreparedImage frame = {0};
        PenImage image;
        CHECK_GOES(pen__prepare_pixels(&prepare, (const uint8_t *)"", 0, &pixels, &frame, &err));
        CHECK_GOES(pen_pack_image(pack, 0, 0, (uint32_t)f, &image, &err));
        CHECK_INT(image.timestamp_ns, (int64_t)f * 200000000);
        CHECK_INT(image.how, PEN_HOW_ENCODED);
        CHECK_INT(image.bytes, frame.image.bytes);
        CHECK_MEM(p, frame.image.data, image.bytes);
        p += image.bytes;
        pen__prepared_image_free(&frame);
    }
    pen_pack_close(&pack);
    free_got(&got);
    pen__buf_free(&data);
}

TEST(real_videos)
{
    char pattern[512];
    glob_t found;
    const char *dir = getenv("PENSTOCK_VIDEOS");
    snprintf(pattern, sizeof pattern, "%s/*", dir ? dir : TESTS_DIR "/../../shared/data/videos");
    if (!has_ffmpeg || glob(pattern, 0, NULL, &found) != 0) {
        SKIP("no videos here");
        return;
    }
    const char *all = getenv("PENSTOCK_FULL");
    for (size_t i = 0; i < found.gl_pathc && (all || i < 3); i++) {
        Got got;
        read_video(&got, found.gl_pathv[i], 2, 0, 3000000000);
        CHECK_STR(got.err.message, "");
        check_same(found.gl_pathv[i], &got, "-t 3", "fps=2,");
        free_got(&got);
        if (!all)
            continue;
        read_video(&got, found.gl_pathv[i], 0, 0, PEN_NO_END);
        CHECK_STR(got.err.message, "");
        check_same(found.gl_pathv[i], &got, "", "");
        printf("real_videos: %s: %d frames\n", found.gl_pathv[i], (int)got.n);
        free_got(&got);
    }
    globfree(&found);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    has_ffmpeg = run_shell("ffmpeg -version") == 0;
    if (has_ffmpeg)
        make_videos();
    RUN(whole_videos);
    RUN(formats_confined);
    RUN(parts_of_videos);
    RUN(other_rates);
    RUN(turned_videos);
    RUN(variable_rates);
    RUN(frames_at_the_same_time);
    RUN(playlists_are_refused);
    RUN(packed_frames);
    RUN(real_videos);
    help_end();
    return TEST_END();
}
