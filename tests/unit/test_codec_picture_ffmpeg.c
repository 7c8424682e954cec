/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as RGB beside what the ffmpeg program makes of them: how far each is from the other, and
 * both from the real formula. ffmpeg's default converter rounds every term down; with accurate_rnd,
 * full_chroma_int and chroma that is repeated (neighbor) it computes the same as we do. */
#include <glob.h>
#include <math.h>
#include <stdlib.h>

#include "base/process.h"
#include "ingest_help.h"
#include "picture_help.h"
#include "region_checks.h"

#define ACCURATE "neighbor+accurate_rnd+full_chroma_int"
#define SMOOTH "bicubic+accurate_rnd+full_chroma_int"

enum { WIDTH = 322, HEIGHT = 98 };

typedef struct Case {
    const char *format, *flags;
    PenVideoPicture like;
    int samples;
    int32_t most; /* of the difference between ffmpeg and us */
    double mean;
} Case;

#define FORMAT(bits, x, y, h273, wide)                                                             \
    {                                                                                              \
        .width = WIDTH, .height = HEIGHT, .n_planes = 3, .depth = bits, .shift_x = x,              \
        .shift_y = y, .range = wide, .matrix = h273                                                \
    }
#define LIMITED PEN_VIDEO_RANGE_LIMITED
#define FULL PEN_VIDEO_RANGE_FULL

/* Where sums leave 16 bits, ffmpeg's converters with ACCURATE wrap around: these get samples whose
 * colours lie between 0 and 255. Samples of full range and more than 8 bits ffmpeg takes for parts
 * of 2^d, H.273 for parts of 2^d - 1. */
static const Case cases[] = {
    {"yuv420p", "bicubic", FORMAT(8, 1, 1, 5, LIMITED), TEST_SAMPLES_ANY, 3, 0.8},
    {"yuv420p", "bicubic", FORMAT(8, 1, 1, 5, LIMITED), TEST_SAMPLES_TAME, 3, 1.4},
    {"yuv420p", "bicubic", FORMAT(8, 1, 1, 2, LIMITED), TEST_SAMPLES_ANY, 3, 0.8},
    {"yuv420p", "bicubic", FORMAT(8, 1, 1, 6, FULL), TEST_SAMPLES_ANY, 2, 0.6},
    {"yuv420p", "bicubic", FORMAT(8, 1, 1, 1, LIMITED), TEST_SAMPLES_ANY, 3, 0.8},
    {"yuv420p", "bicubic", FORMAT(8, 1, 1, 1, FULL), TEST_SAMPLES_ANY, 2, 0.6},
    {"yuv420p", "bicubic", FORMAT(8, 1, 1, 4, LIMITED), TEST_SAMPLES_ANY, 3, 0.8},
    {"yuv420p", "bicubic", FORMAT(8, 1, 1, 7, LIMITED), TEST_SAMPLES_ANY, 3, 0.8},
    {"yuv420p", "bicubic", FORMAT(8, 1, 1, 9, LIMITED), TEST_SAMPLES_ANY, 3, 0.8},
    {"yuv422p", "bicubic", FORMAT(8, 1, 0, 1, LIMITED), TEST_SAMPLES_ANY, 3, 0.8},
    {"yuv444p", "bicubic", FORMAT(8, 0, 0, 1, LIMITED), TEST_SAMPLES_TAME, 1, 0.01},
    {"yuv420p", ACCURATE, FORMAT(8, 1, 1, 5, LIMITED), TEST_SAMPLES_TAME, 1, 0.01},
    {"yuv420p", ACCURATE, FORMAT(8, 1, 1, 1, FULL), TEST_SAMPLES_TAME, 1, 0.01},
    {"yuv422p", ACCURATE, FORMAT(8, 1, 0, 1, LIMITED), TEST_SAMPLES_TAME, 1, 0.01},
    {"yuv444p", ACCURATE, FORMAT(8, 0, 0, 9, LIMITED), TEST_SAMPLES_TAME, 1, 0.01},
    {"yuv420p10le", ACCURATE, FORMAT(10, 1, 1, 1, LIMITED), TEST_SAMPLES_TAME, 1, 0.01},
    {"yuv420p10le", ACCURATE, FORMAT(10, 1, 1, 9, FULL), TEST_SAMPLES_TAME, 1, 0.5},
    {"yuv422p10le", ACCURATE, FORMAT(10, 1, 0, 9, LIMITED), TEST_SAMPLES_TAME, 1, 0.01},
    {"yuv444p10le", ACCURATE, FORMAT(10, 0, 0, 7, LIMITED), TEST_SAMPLES_TAME, 1, 0.01},
    {"yuv420p12le", ACCURATE, FORMAT(12, 1, 1, 9, LIMITED), TEST_SAMPLES_TAME, 1, 0.01},
    {"yuv444p12le", ACCURATE, FORMAT(12, 0, 0, 4, FULL), TEST_SAMPLES_TAME, 1, 0.5},
};

static bool has_ffmpeg;

/* ---- ffmpeg --------------------------------------------------------------------------------- */

static char command[32768];

static int run_shell(const char *text)
{
    const char *argv[] = {"/bin/sh", "-c", text, NULL};
    PenProcessSettings s = {.argv = argv, .deadline_ns = pen__sys->now_ns() + 60000000000};
    PenProcessResult result;
    return pen__process_run(&s, &result, NULL) < 0 ? -1 : result.exit.code;
}

static const char *matrix_name(uint32_t matrix)
{
    static const char *const names[] = {
        [1] = "bt709",     [2] = "unknown",   [4] = "fcc",     [5] = "bt470bg",
        [6] = "smpte170m", [7] = "smpte240m", [9] = "bt2020nc"};
    return names[matrix];
}

/* The planes without what is between their rows. */
static void write_planes(const char *name, const PenVideoPicture *p)
{
    PenBuf b = {0};
    for (uint32_t i = 0; i < p->n_planes; i++)
        for (uint32_t y = 0; y < plane_height(p, i); y++)
            CHECK_INT(pen__buf_add(&b, plane_row(p, i, y), plane_row_bytes(p, i)), PEN_OK);
    help_file(name, b.data, b.bytes);
    pen__buf_free(&b);
}

static const char *numbered(const char *name, size_t i)
{
    static char text[8][32];
    static size_t next;
    snprintf(text[next % 8], sizeof text[0], "%s%zu", name, i);
    return text[next++ % 8];
}

/* All pictures in one process: "in<i>" to "out<i>". */
static void run_ffmpeg(const Case *c, const PenVideoPicture *p, size_t n)
{
    command[0] = 0;
    help_add(command, sizeof command, "ffmpeg -y -nostdin -loglevel error");
    for (size_t i = 0; i < n; i++)
        help_add(command, sizeof command, " -f rawvideo -pix_fmt %s -s %ux%u -i '%s'", c[i].format,
                 p[i].width, p[i].height, at(numbered("in", i)));
    help_add(command, sizeof command, " -filter_complex '");
    for (size_t i = 0; i < n; i++)
        help_add(command, sizeof command,
                 "[%zu:v]setparams=colorspace=%s:range=%s,scale=flags=%s,format=rgb24[o%zu];", i,
                 matrix_name(p[i].matrix), p[i].range == FULL ? "pc" : "tv", c[i].flags, i);
    command[strlen(command) - 1] = '\'';
    for (size_t i = 0; i < n; i++)
        help_add(command, sizeof command, " -map '[o%zu]' -f rawvideo '%s'", i,
                 at(numbered("out", i)));
    if (run_shell(command) != 0)
        test__fail(__FILE__, __LINE__, "%s", command);
}

/* ---- differences ---------------------------------------------------------------------------- */

typedef struct Difference {
    int32_t most;
    double mean, bias;
} Difference;

static Difference compare(const uint8_t *a, const uint8_t *b, size_t n)
{
    Difference d = {0};
    for (size_t i = 0; i < n; i++) {
        int32_t v = a[i] - b[i];
        d.most = PEN_MAX(d.most, abs(v));
        d.mean += abs(v) / (double)n;
        d.bias += v / (double)n;
    }
    return d;
}

static void check_case(const Case *c, const PenVideoPicture *p, size_t i)
{
    PenBuf theirs = {0};
    PenPixels ours;
    convert_picture(p, &ours);
    CHECK(read_whole_file(at(numbered("out", i)), &theirs));
    CHECK_INT(theirs.bytes, (size_t)p->width * p->height * 3);
    Difference d = compare(theirs.data, ours.data, theirs.bytes);
    printf("%-12s %-9s %-4s %-37s ffmpeg - ours: at most %3d, mean %.4f, bias %+.4f\n", c->format,
           matrix_name(p->matrix), p->range == FULL ? "full" : "", c->flags, d.most, d.mean,
           d.bias);
    CHECK(d.most <= c->most);
    CHECK(d.mean <= c->mean);
    pen__buf_free(&theirs);
    free(ours.data);
}

TEST(random_samples)
{
    PenVideoPicture pictures[PEN_LEN(cases)];
    if (!has_ffmpeg)
        SKIP("no ffmpeg here");
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        pictures[i] = make_picture(cases[i].like, cases[i].samples);
        write_planes(numbered("in", i), &pictures[i]);
    }
    run_ffmpeg(cases, pictures, PEN_LEN(cases));
    for (size_t i = 0; i < PEN_LEN(cases) && test__now.state == TEST_PASSED; i++)
        check_case(&cases[i], &pictures[i], i);
    for (size_t i = 0; i < PEN_LEN(cases); i++)
        free_picture(&pictures[i]);
}

/* ---- a photograph --------------------------------------------------------------------------- */

/* One of the photographs of test_codec_photos.c when they are there, or a test card of ffmpeg. */
static void find_photo(char *ret, size_t cap)
{
    glob_t photos = {0};
    char pattern[4096];
    const char *dir = getenv("PENSTOCK_PHOTOS"), *end = strstr(__FILE__, "tests/unit/");
    if (dir)
        snprintf(pattern, sizeof pattern, "%s/*/*.[Jj][Pp]*[Gg]", dir);
    else
        snprintf(pattern, sizeof pattern, "%.*s../shared/data/photos/*/*.[Jj][Pp]*[Gg]",
                 (int)(end ? end - __FILE__ : 0), __FILE__);
    if (glob(pattern, 0, NULL, &photos) == 0)
        snprintf(ret, cap, "-i '%s'", photos.gl_pathv[0]);
    else
        snprintf(ret, cap, "-f lavfi -i testsrc2=size=640x480:duration=1");
    globfree(&photos);
}

static PenVideoPicture read_photo(const Case *c)
{
    char input[4096];
    PenBuf b = {0};
    PenVideoPicture p = make_picture(c->like, TEST_SAMPLES_ANY);
    find_photo(input, sizeof input);
    command[0] = 0;
    help_add(command, sizeof command,
             "ffmpeg -y -nostdin -loglevel error %s -frames:v 1 -vf scale=%u:%u:out_range=tv "
             "-pix_fmt %s -f rawvideo '%s'",
             input, p.width, p.height, c->format, at("photo"));
    if (run_shell(command) != 0 || !read_whole_file(at("photo"), &b))
        abort();
    const uint8_t *from = b.data;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t y = 0; y < plane_height(&p, i); y++, from += plane_row_bytes(&p, i))
            memcpy(plane_row(&p, i, y), from, plane_row_bytes(&p, i));
    pen__buf_free(&b);
    return p;
}

/* SMOOTH makes chroma of full size by a filter, where we repeat it: the difference at edges is that
 * of two ways to see the same picture. */
TEST(photograph)
{
    static const Case photos[] = {
        {"yuv420p", "bicubic", FORMAT(8, 1, 1, 5, LIMITED), 0, 3, 1.5},
        {"yuv420p", ACCURATE, FORMAT(8, 1, 1, 5, LIMITED), 0, 1, 0.01},
        {"yuv420p", SMOOTH, FORMAT(8, 1, 1, 5, LIMITED), 0, 128, 4},
        {"yuv420p10le", "bicubic", FORMAT(10, 1, 1, 5, LIMITED), 0, 128, 4},
        {"yuv420p10le", ACCURATE, FORMAT(10, 1, 1, 5, LIMITED), 0, 1, 0.01},
    };
    PenVideoPicture pictures[PEN_LEN(photos)];
    if (!has_ffmpeg)
        SKIP("no ffmpeg here");
    for (size_t i = 0; i < PEN_LEN(photos); i++) {
        pictures[i] = read_photo(&photos[i]);
        write_planes(numbered("in", i), &pictures[i]);
    }
    run_ffmpeg(photos, pictures, PEN_LEN(photos));
    for (size_t i = 0; i < PEN_LEN(photos) && test__now.state == TEST_PASSED; i++)
        check_case(&photos[i], &pictures[i], i);
    for (size_t i = 0; i < PEN_LEN(photos); i++)
        free_picture(&pictures[i]);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    has_ffmpeg = run_shell("ffmpeg -version") == 0;
    RUN(random_samples);
    RUN(photograph);
    help_end();
    return TEST_END();
}
