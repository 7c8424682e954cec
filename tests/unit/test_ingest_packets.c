/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of videos that ffmpeg writes, by codec, container, order of frames and edit list: the
 * frames that are shown are those that ffprobe decodes, at the same times, and the bytes of all
 * packets are those that ffmpeg copies. All cases run with PENSTOCK_FULL=1. */
#include <glob.h>

#include "ingest/video/packets_impl.h"
#include "ingest/video/picture.h"
#include "video_help.h"

static bool has_ffmpeg, all_cases;

#define SOURCE "-f lavfi -i testsrc2=size=64x48:rate=25:duration=1.6 "
#define SOUND "-f lavfi -i sine=duration=1.6 "
#define X264 "-pix_fmt yuv420p -c:v libx264 -preset ultrafast "
#define X265 "-pix_fmt yuv420p -c:v libx265 -preset ultrafast -x265-params log-level=none:"
#define VP8 "-pix_fmt yuv420p -c:v libvpx -deadline realtime -cpu-used 8 -b:v 200k -g 12 "
#define VP9 "-pix_fmt yuv420p -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -b:v 200k -g 12 "
#define AV1 "-pix_fmt yuv420p -c:v libaom-av1 -usage realtime -cpu-used 8 -g 12 -strict -2 "
#define UNEVEN "-vf settb=1/1000,setpts=3*N*N -vsync passthrough -enc_time_base 1/1000 "

typedef struct Case {
    const char *name, *encoder, *options; /* options of the output, or of a copy of `of` */
    const char *of, *before;              /* a case that is copied, and options of the input */
    uint8_t codec, container;
    bool is_slow; /* with PENSTOCK_FULL=1 only */
    bool is_cut;  /* ffmpeg does not copy all packets */
} Case;

static const Case cases[] = {
    {.name = "b.mp4",
     .encoder = "libx264",
     .options = SOUND X264 "-bf 2 -g 12 -c:a aac",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4},
    {.name = "b.mkv", .of = "b.mp4", .codec = PEN_VIDEO_H264, .container = PEN_CONTAINER_MATROSKA},
    {.name = "b.mov",
     .of = "b.mp4",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MOV,
     .is_slow = true},
    {.name = "fast.mp4",
     .of = "b.mp4",
     .options = "-movflags faststart",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "fragments.mp4",
     .of = "b.mp4",
     .options = "-movflags frag_keyframe+empty_moov",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "dash.mp4",
     .of = "b.mp4",
     .options = "-movflags frag_keyframe+default_base_moof+delay_moov -frag_duration 300000",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "edit.mp4",
     .of = "b.mp4",
     .before = "-ss 0.3",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4,
     .is_cut = true},
    {.name = "noedit.mp4",
     .of = "open.mp4",
     .before = "-ss 0.6",
     .options = "-use_editlist 0",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4,
     .is_cut = true},
    {.name = "open.mp4",
     .encoder = "libx264",
     .options = X264 "-x264-params open-gop=1:keyint=10:bframes=3:b-adapt=0",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4},
    {.name = "open_cut.mp4",
     .of = "open.mp4",
     .before = "-ss 0.6",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true,
     .is_cut = true},
    {.name = "open_cut.mkv",
     .of = "open.mp4",
     .before = "-ss 0.6",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MATROSKA,
     .is_cut = true},
    {.name = "late.mkv", /* starts with packets that cannot be decoded */
     .of = "b.mp4",
     .options = "-an -ss 0.2 -copyinkf",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MATROSKA,
     .is_cut = true,
     .is_slow = true},
    {.name = "uneven.mkv",
     .encoder = "libx264",
     .options = X264 "-bf 2 " UNEVEN,
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MATROSKA,
     .is_slow = true},
    {.name = "uneven.mp4",
     .of = "uneven.mkv",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "refresh.mp4",
     .encoder = "libx264",
     .options = X264 "-x264-params intra-refresh=1:keyint=10:bframes=0",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "interlaced.mp4",
     .encoder = "libx264",
     .options = X264 "-flags +ildct+ilme -g 12",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "slices.mp4",
     .encoder = "libx264",
     .options = X264 "-slices 3 -g 12",
     .codec = PEN_VIDEO_H264,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "hevc.mp4",
     .encoder = "libx265",
     .options = X265 "keyint=10:open-gop=1:bframes=3:b-adapt=0 -tag:v hvc1",
     .codec = PEN_VIDEO_HEVC,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "hevc_cut.mkv",
     .of = "hevc.mp4",
     .before = "-ss 0.6",
     .codec = PEN_VIDEO_HEVC,
     .container = PEN_CONTAINER_MATROSKA,
     .is_cut = true},
    {.name = "hevc_cut.mp4",
     .of = "hevc.mp4",
     .before = "-ss 0.6",
     .codec = PEN_VIDEO_HEVC,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true,
     .is_cut = true},
    {.name = "hevc_closed.mkv",
     .encoder = "libx265",
     .options = X265 "keyint=10:open-gop=0",
     .codec = PEN_VIDEO_HEVC,
     .container = PEN_CONTAINER_MATROSKA,
     .is_slow = true},
    {.name = "vp8.webm",
     .encoder = "libvpx",
     .options = VP8,
     .codec = PEN_VIDEO_VP8,
     .container = PEN_CONTAINER_WEBM,
     .is_slow = true},
    {.name = "vp9.webm",
     .encoder = "libvpx-vp9",
     .options = VP9,
     .codec = PEN_VIDEO_VP9,
     .container = PEN_CONTAINER_WEBM},
    {.name = "vp9.mp4",
     .of = "vp9.webm",
     .codec = PEN_VIDEO_VP9,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "vp9_alt.webm",
     .encoder = "libvpx-vp9",
     .options = "-pix_fmt yuv420p -c:v libvpx-vp9 -auto-alt-ref 1 -lag-in-frames 16 -b:v 100k",
     .codec = PEN_VIDEO_VP9,
     .container = PEN_CONTAINER_WEBM,
     .is_slow = true},
    {.name = "av1.mkv",
     .encoder = "libaom-av1",
     .options = AV1,
     .codec = PEN_VIDEO_AV1,
     .container = PEN_CONTAINER_MATROSKA},
    {.name = "av1.mp4",
     .of = "av1.mkv",
     .codec = PEN_VIDEO_AV1,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "av1_alt.mp4",
     .encoder = "libaom-av1",
     .options = "-pix_fmt yuv420p -c:v libaom-av1 -cpu-used 8 -lag-in-frames 16 -strict -2",
     .codec = PEN_VIDEO_AV1,
     .container = PEN_CONTAINER_MP4,
     .is_slow = true},
    {.name = "mpeg4.mp4",
     .encoder = "mpeg4",
     .options = "-pix_fmt yuv420p -c:v mpeg4 -bf 2 -g 12",
     .codec = PEN_VIDEO_MPEG4,
     .container = PEN_CONTAINER_MP4},
    {.name = "mpeg4.mkv",
     .of = "mpeg4.mp4",
     .codec = PEN_VIDEO_MPEG4,
     .container = PEN_CONTAINER_MATROSKA,
     .is_slow = true},
    {.name = "xvid.mov",
     .encoder = "libxvid",
     .options = "-pix_fmt yuv420p -c:v libxvid -g 12",
     .codec = PEN_VIDEO_MPEG4,
     .container = PEN_CONTAINER_MOV,
     .is_slow = true},
    {.name = "mjpeg.mov",
     .encoder = "mjpeg",
     .options = "-pix_fmt yuvj444p -c:v mjpeg -qmin 1 -q:v 1",
     .codec = PEN_VIDEO_MJPEG,
     .container = PEN_CONTAINER_MOV},
    {.name = "mjpeg.mkv",
     .of = "mjpeg.mov",
     .codec = PEN_VIDEO_MJPEG,
     .container = PEN_CONTAINER_MATROSKA,
     .is_slow = true},
};

static const Case *find_case(const char *name)
{
    size_t i = 0;
    while (strcmp(cases[i].name, name) != 0)
        i++;
    return &cases[i];
}

/* False: it cannot be made here. */
static bool make(const Case *c)
{
    if (access(at(c->name), F_OK) == 0)
        return true;
    if (c->of) {
        if (!make(find_case(c->of)))
            return false;
        shell("ffmpeg -y -loglevel error %s -i '%s' -c copy %s '%s'", c->before ? c->before : "",
              at(c->of), c->options ? c->options : "", at(c->name));
        return true;
    }
    if (!can_encode(c->encoder))
        return false;
    shell("ffmpeg -y -loglevel error " SOURCE "%s '%s'", c->options, at(c->name));
    return true;
}

/* ---- what is expected ------------------------------------------------------------------------ */

/* Times of all frames that ffprobe decodes; -1: there is a line without one. */
static int64_t *read_times(const char *path, uint32_t *ret_n)
{
    PenBuf text = {0};
    shell("ffprobe -loglevel fatal -select_streams V:0 -show_entries frame=best_effort_timestamp "
          "-of csv=p=0 '%s' | grep . >'%s'",
          path, at("times"));
    if (!read_whole_file(at("times"), &text) || pen__buf_add(&text, "", 1) < 0)
        return NULL;
    int64_t *ret = malloc(text.bytes * sizeof *ret);
    *ret_n = 0;
    for (const char *line = (const char *)text.data; *line;) {
        char *end = NULL;
        int64_t v = strtoll(line, &end, 10);
        ret[(*ret_n)++] = end == line ? -1 : v;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    pen__buf_free(&text);
    return ret;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void check_times(const char *path, const PenVideoList *list)
{
    uint32_t n = 0, shown = 0;
    int64_t *expected = read_times(path, &n), *found = malloc((list->n + 1) * sizeof *found);
    for (uint32_t i = 0; i < list->n; i++)
        if (!list->packets[i].is_hidden)
            found[shown++] = list->packets[i].time;
    qsort(found, shown, sizeof *found, by_time);
    if (!expected || shown != n || memcmp(found, expected, n * sizeof *found) != 0)
        test__fail(__FILE__, __LINE__, "%s: %u frames of %u packets, expected %u", path, shown,
                   list->n, n);
    free(expected);
    free(found);
}

static void check_bytes(const char *path, const PenVideoList *list)
{
    PenBuf file = {0}, copy = {0}, found = {0};
    shell("ffmpeg -y -loglevel error -i '%s' -map 0:V:0 -c copy -f data '%s'", path, at("copy"));
    CHECK(read_whole_file(path, &file) && read_whole_file(at("copy"), &copy));
    CHECK_INT(list->file_bytes, file.bytes);
    for (uint32_t i = 0; i < list->n; i++)
        CHECK_INT(pen__buf_add(&found, file.data + list->packets[i].offset, list->packets[i].bytes),
                  PEN_OK);
    if (found.bytes != copy.bytes || memcmp(found.data, copy.data, copy.bytes) != 0)
        test__fail(__FILE__, __LINE__, "%s: packets have other bytes", path);
    pen__buf_free(&file);
    pen__buf_free(&copy);
    pen__buf_free(&found);
}

static int list_file(const char *path, PenVideoList *list, PenError *err)
{
    PenVideoSettings s = {.seconds = 20};
    *err = (PenError){0};
    return pen__video_list(&s, path, list, err);
}

/* A pack takes it, with the same frames. */
static void check_table(const PenVideoList *list)
{
    PenBuf table = {0};
    PenError err = {0};
    uint32_t frames = 0;
    pen__video_table_write(&list->stream, list->packets, list->n, list->file_bytes, &table, &frames,
                           &err);
    CHECK_STR(err.message, "");
    CHECK_INT(frames, list->n_shown);
    pen__buf_free(&table);
}

/* Headers have the size of the pictures; H.264 rounds up to 16 rows, of each field if there are. */
static void check_sizes(const Case *c, const char *path, const PenVideoList *list)
{
    PenPictureParser p;
    PenPicture picture;
    PenBuf file = {0};
    CHECK(read_whole_file(path, &file));
    CHECK(
        !pen__picture_start(&p, list->stream.codec, list->stream.extra, list->stream.extra_bytes));
    for (uint32_t i = 0; i < list->n; i++)
        CHECK(!pen__picture_parse(&p, file.data + list->packets[i].offset, list->packets[i].bytes,
                                  &picture));
    CHECK_INT(p.width, 64);
    CHECK_INT(p.height, strcmp(c->name, "interlaced.mp4") == 0 ? 64 : 48);
    pen__buf_free(&file);
}

static void check_case(const Case *c)
{
    PenVideoList list;
    PenError err;
    char path[512];
    snprintf(path, sizeof path, "%s", at(c->name));
    list_file(path, &list, &err);
    CHECK_STR(err.message, "");
    CHECK_INT(list.stream.codec, c->codec);
    CHECK_INT(list.stream.container, c->container);
    CHECK_INT(list.stream.width, 64);
    CHECK_INT(list.stream.height, 48);
    CHECK_INT(list.stream.orientation, 1);
    CHECK_INT(list.stream.depth, 8);
    CHECK(c->codec != PEN_VIDEO_MJPEG || list.file_bytes > 128 << 10); /* which takes two runs */
    check_times(path, &list);
    check_table(&list);
    check_sizes(c, path, &list);
    if (!c->is_cut && (all_cases || c->of))
        check_bytes(path, &list);
    pen__video_list_free(&list);
}

TEST(frames_and_bytes)
{
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        if ((cases[i].is_slow && !all_cases) || !make(&cases[i]))
            continue;
        check_case(&cases[i]);
        CHECK_OK_SO_FAR();
    }
}

/* A name is not taken for an option, an address, a pattern or text with escapes. */
TEST(names)
{
    static const char name[] = "-i a:b,'c' %d*$(x)\\n\n\"=1.mp4";
    PenVideoList list;
    PenError err;
    PenBuf file = {0};
    if (!has_ffmpeg || !make(find_case("b.mp4"))) {
        SKIP("no ffmpeg with libx264 here");
        return;
    }
    CHECK(read_whole_file(at("b.mp4"), &file));
    help_file(name, file.data, file.bytes);
    list_file(at(name), &list, &err);
    CHECK_STR(err.message, "");
    CHECK_INT(list.n_shown, 40);
    pen__video_list_free(&list);
    CHECK_INT(chdir(help_root), 0);
    list_file(name, &list, &err); /* begins with a dash */
    CHECK_STR(err.message, "");
    CHECK_INT(list.n_shown, 40);
    pen__video_list_free(&list);
    pen__buf_free(&file);
}

TEST(real_videos)
{
    char pattern[512];
    glob_t found;
    const char *dir = getenv("PENSTOCK_VIDEOS");
    snprintf(pattern, sizeof pattern, "%s/*.mp4",
             dir ? dir : TESTS_DIR "/../../shared/data/videos");
    if (!has_ffmpeg || !all_cases || glob(pattern, 0, NULL, &found) != 0) {
        SKIP("no videos here, or not PENSTOCK_FULL=1");
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        PenVideoList list;
        PenError err;
        list_file(found.gl_pathv[i], &list, &err);
        CHECK_STR(err.message, "");
        check_times(found.gl_pathv[i], &list);
        check_bytes(found.gl_pathv[i], &list);
        check_table(&list);
        pen__video_list_free(&list);
    }
    globfree(&found);
}

static uint32_t count_keys(const PenVideoList *list)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n; i++)
        n += list->packets[i].is_key;
    return n;
}

/* What the container calls a key packet is none when it refers to others. */
TEST(key_packets)
{
    if (!has_ffmpeg || !can_encode("libx264")) {
        SKIP("no ffmpeg with libx264 here");
        return;
    }
    static const struct {
        const char *name;
        uint32_t keys;
        bool is_slow;
    } expected[] = {{"b.mp4", 4, false}, {"open.mp4", 4, false}, {"refresh.mp4", 1, true}};
    for (size_t i = 0; i < PEN_LEN(expected); i++) {
        PenVideoList list;
        PenError err;
        if (expected[i].is_slow && !all_cases)
            continue;
        CHECK(make(find_case(expected[i].name)));
        CHECK_INT(list_file(at(expected[i].name), &list, &err), PEN_OK);
        CHECK_INT(count_keys(&list), expected[i].keys);
        pen__video_list_free(&list);
    }
}

/* A VP8 encoder with two passes writes packets that are not shown. */
TEST(hidden_packets)
{
    if (!has_ffmpeg || !can_encode("libvpx")) {
        SKIP("no ffmpeg with libvpx here");
        return;
    }
    PenVideoList list;
    PenError err;
    for (int pass = 1; pass <= 2; pass++)
        shell("cd '%s' && ffmpeg -y -loglevel error -f lavfi -i mandelbrot=size=64x48:rate=25 -t 2 "
              "-pix_fmt yuv420p -c:v libvpx -auto-alt-ref 1 -lag-in-frames 25 -arnr-maxframes 7 "
              "-cpu-used 4 -b:v 100k -pass %d -passlogfile log hidden.webm",
              help_root, pass);
    CHECK_INT(list_file(at("hidden.webm"), &list, &err), PEN_OK);
    CHECK_INT(list.n_shown, 50);
    CHECK(list.n > 50);
    check_times(at("hidden.webm"), &list);
    check_bytes(at("hidden.webm"), &list);
    pen__video_list_free(&list);
}

/* ---- orientation ----------------------------------------------------------------------------- */

/* Puts a matrix into the first track header of an MP4. */
static void set_matrix(PenBuf *file, const int matrix[4])
{
    uint8_t *head = memmem(file->data, file->bytes, "tkhd", 4);
    CHECK(head);
    for (int i = 0; i < 4; i++) {
        uint32_t v = (uint32_t)matrix[i] << 16;
        uint8_t *at = head + 44 + (i / 2 * 3 + i % 2) * 4;
        for (int j = 0; j < 4; j++)
            at[j] = (uint8_t)(v >> (24 - 8 * j));
    }
}

static void read_first(const char *options, const char *path, PenBuf *ret)
{
    shell("ffmpeg -y -loglevel error %s -i '%s' -frames:v 1 -pix_fmt gray -f rawvideo '%s'",
          options, path, at("first"));
    CHECK(read_whole_file(at("first"), ret));
}

/* Where ffmpeg shows a pixel of the coded picture, by EXIF. */
static size_t shown_at(unsigned orientation, size_t x, size_t y, size_t w, size_t h)
{
    static const bool mirrors[9][2] = {{0, 0}, {0, 0}, {1, 0}, {1, 1}, {0, 1},
                                       {0, 0}, {0, 1}, {1, 1}, {1, 0}};
    size_t a = mirrors[orientation][0] ? w - 1 - x : x;
    size_t b = mirrors[orientation][1] ? h - 1 - y : y;
    return orientation < 5 ? b * w + a : a * h + b;
}

TEST(orientations)
{
    static const int matrices[9][4] = {{0, 0, 0, 0},   {1, 0, 0, 1},   {-1, 0, 0, 1},
                                       {-1, 0, 0, -1}, {1, 0, 0, -1},  {0, 1, 1, 0},
                                       {0, 1, -1, 0},  {0, -1, -1, 0}, {0, -1, 1, 0}};
    static const bool is_mirrored[9] = {[2] = true, [4] = true, [5] = true, [7] = true};
    if (!has_ffmpeg || !make(find_case("b.mp4"))) {
        SKIP("no ffmpeg with libx264 here");
        return;
    }
    /* Before version 5 ffmpeg does not mirror. */
    bool mirrors = run_shell("ffmpeg -version | grep -q 'version n\\?[5-9]\\.'") == 0;
    PenBuf file = {0}, coded = {0}, shown = {0};
    CHECK(read_whole_file(at("b.mp4"), &file));
    read_first("-noautorotate", at("b.mp4"), &coded);
    for (unsigned o = 0; o <= 8; o++) {
        PenVideoList list;
        PenError err;
        if (!all_cases && o != 0 && o != 6 && o != 7)
            continue;
        set_matrix(&file, matrices[o]);
        help_file("turned.mp4", file.data, file.bytes);
        list_file(at("turned.mp4"), &list, &err);
        CHECK_STR(err.message, "");
        CHECK_INT(list.stream.orientation, o ? o : 1);
        CHECK_INT(list.stream.width, 64);
        pen__video_list_free(&list);
        if (!o || (is_mirrored[o] && !mirrors))
            continue;
        read_first("", at("turned.mp4"), &shown);
        CHECK_INT(shown.bytes, coded.bytes);
        for (size_t y = 0; y < 48; y++)
            for (size_t x = 0; x < 64; x++)
                CHECK_INT(shown.data[shown_at(o, x, y, 64, 48)], coded.data[y * 64 + x]);
        pen__buf_free(&shown);
    }
    pen__buf_free(&file);
    pen__buf_free(&coded);
}

/* ---- edit lists ------------------------------------------------------------------------------ */

static uint32_t load_be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Replaces the edit list of the first track of an MP4, whose index is behind its data: durations in
 * milliseconds, and times in ticks of the track. */
static void write_edits(const char *name, const PenBuf *file, const uint32_t (*edits)[2],
                        uint32_t n)
{
    static const char *const boxes[] = {"moov", "trak", "edts", "elst"};
    uint8_t list[256] = {0};
    uint32_t bytes = 16 + 12 * n, old = 0;
    PenBuf out = {0};
    CHECK_INT(pen__buf_add(&out, file->data, file->bytes), 0);
    size_t at = 0, end = file->bytes;
    for (size_t i = 0; i < PEN_LEN(boxes); i++) {
        while (at < end && memcmp(out.data + at + 4, boxes[i], 4) != 0)
            at += load_be(out.data + at);
        CHECK(at < end);
        old = load_be(out.data + at);
        end = at + old;
        at += 8;
    }
    at -= 8;
    const uint8_t *box = out.data;
    for (size_t i = 0; i + 1 < PEN_LEN(boxes); i++) { /* all of them come before the list */
        uint8_t *tag = memmem(box, (size_t)(out.data + out.bytes - box), boxes[i], 4);
        store_be(tag - 4, load_be(tag - 4) + bytes - old);
        box = tag + 4;
    }
    store_be(list, bytes);
    memcpy(list + 4, "elst", 4);
    store_be(list + 12, n);
    for (uint32_t i = 0; i < n; i++) {
        store_be(list + 16 + 12 * i, edits[i][0]);
        store_be(list + 20 + 12 * i, edits[i][1]);
        store_be(list + 24 + 12 * i, 0x10000);
    }
    PenBuf ret = {0};
    CHECK_INT(pen__buf_add(&ret, out.data, at), 0);
    CHECK_INT(pen__buf_add(&ret, list, bytes), 0);
    CHECK_INT(pen__buf_add(&ret, out.data + at + old, out.bytes - at - old), 0);
    help_file(name, ret.data, ret.bytes);
    pen__buf_free(&out);
    pen__buf_free(&ret);
}

TEST(edit_lists)
{
    static const struct {
        uint32_t edits[2][2], n;
        const char *found; /* NULL: it is right */
    } lists[] = {{{{500, 5000}}, 1, NULL},
                 {{{1600, 1024}, {1600, 1024}}, 2, NULL},     /* twice the same */
                 {{{300, UINT32_MAX}, {800, 1024}}, 2, NULL}, /* a delay */
                 {{{400, 1024}, {400, 9000}}, 2, "expected an edit list of one part"},
                 {{{400, 9000}, {400, 1024}}, 2, "expected an edit list of one part"}};
    if (!has_ffmpeg || !make(find_case("b.mp4"))) {
        SKIP("no ffmpeg with libx264 here");
        return;
    }
    PenBuf file = {0};
    CHECK(read_whole_file(at("b.mp4"), &file));
    for (size_t i = 0; i < PEN_LEN(lists); i++) {
        PenVideoList list;
        PenError err;
        write_edits("edited.mp4", &file, lists[i].edits, lists[i].n);
        CHECK_OK_SO_FAR();
        int r = list_file(at("edited.mp4"), &list, &err);
        CHECK_INT(r, lists[i].found ? PEN_E_UNSUPPORTED : PEN_OK);
        CHECK(strstr(err.message, lists[i].found ? lists[i].found : ""));
        if (r == PEN_OK) {
            check_times(at("edited.mp4"), &list);
            check_table(&list);
        }
        pen__video_list_free(&list);
    }
    pen__buf_free(&file);
}

/* ---- what is refused ------------------------------------------------------------------------- */

#define CHECK_REFUSED(name, status, text)                                                          \
    do {                                                                                           \
        PenVideoList test__list;                                                                   \
        PenError test__err;                                                                        \
        CHECK_INT(list_file(at(name), &test__list, &test__err), status);                           \
        if (!strstr(test__err.message, text))                                                      \
            test__fail(__FILE__, __LINE__, "%s: %s", name, test__err.message);                     \
        CHECK_INT(test__list.n, 0);                                                                \
        CHECK(!test__list.memory.data && !test__list.extra.data);                                  \
    } while (0)

TEST(refused_videos)
{
    if (!has_ffmpeg || !make(find_case("b.mp4")) || !make(find_case("b.mkv"))) {
        SKIP("no ffmpeg with libx264 here");
        return;
    }
    PenBuf file = {0};
    CHECK(read_whole_file(at("b.mp4"), &file));
    static const int slanted[] = {1, 1, -1, 1};
    set_matrix(&file, slanted);
    help_file("slanted.mp4", file.data, file.bytes);
    CHECK_REFUSED("slanted.mp4", PEN_E_UNSUPPORTED, "rotation by 0, 90, 180 or 270 degrees");
    pen__buf_free(&file);
    CHECK(read_whole_file(at("b.mkv"), &file));
    help_file("short.mkv", file.data, file.bytes * 2 / 3);
    CHECK_REFUSED("short.mkv", PEN_E_DECODE, "found its end missing");
    pen__buf_free(&file);
    shell("cd '%s' && ffmpeg -y -loglevel error -i b.mp4 -c copy -movflags faststart whole.mp4 && "
          "head -c 9000 whole.mp4 >short.mp4",
          help_root);
    CHECK_REFUSED("short.mp4", PEN_E_DECODE, "short.mp4: expected ");
    shell("cd '%s' && ffmpeg -y -loglevel error -i b.mp4 -c copy -encryption_scheme cenc-aes-ctr "
          "-encryption_key 76a6c65c5ea762046bd749a2e632ccbb "
          "-encryption_kid a7e61c373e219033c21091fa607bf3b8 secret.mp4",
          help_root);
    CHECK_REFUSED("secret.mp4", PEN_E_UNSUPPORTED, "found encryption in packet 0; pack it with");
    shell("cd '%s' && ffmpeg -y -loglevel error -i b.mp4 -an -c copy b.ts; ffmpeg -y -loglevel "
          "error " SOURCE "-c:v ffv1 -frames:v 3 ffv1.mkv; ffmpeg -y -loglevel error " SOURCE
          "-c:v libx264rgb -frames:v 3 rgb.mkv; ffmpeg -y -loglevel error " SOUND "sound.mp4",
          help_root);
    CHECK_REFUSED("b.ts", PEN_E_UNSUPPORTED,
                  "expected an MP4, MOV, Matroska or WebM file, found mpegts; pack it with");
    CHECK_REFUSED("ffv1.mkv", PEN_E_UNSUPPORTED, "found ffv1; pack it without --video keep");
    CHECK_REFUSED("rgb.mkv", PEN_E_UNSUPPORTED, "found gbrp; pack it without --video keep");
    CHECK_REFUSED("sound.mp4", PEN_E_DECODE, "expected a video, found no pictures");
    help_text("text.mp4", "no video");
    CHECK_REFUSED("text.mp4", PEN_E_DECODE, "ffprobe cannot read this video");
    CHECK_REFUSED("none.mp4", PEN_E_NOT_FOUND, "none.mp4");
}

/* Two videos after each other, with the headers of each. */
TEST(several_sizes)
{
    static const struct {
        const char *encoder, *options, *name;
    } codecs[] = {{"libx264", X264 "-x264-params repeat-headers=1", "mkv"},
                  {"libvpx", VP8, "webm"},
                  {"libvpx-vp9", VP9, "webm"},
                  {"libx265", X265 "repeat-headers=1", "mkv"},
                  {"libaom-av1", AV1, "mkv"},
                  {"mjpeg", "-pix_fmt yuvj422p -c:v mjpeg", "mkv"}};
    if (!has_ffmpeg) {
        SKIP("no ffmpeg here");
        return;
    }
    for (size_t i = 0; i < (all_cases ? PEN_LEN(codecs) : 1); i++) {
        const char *end = codecs[i].name;
        if (!can_encode(codecs[i].encoder))
            continue;
        shell("cd '%s' && for s in 64x48 96x64; do ffmpeg -y -loglevel error -f lavfi -i "
              "testsrc2=size=$s:rate=25:duration=0.4 %s $s.%s; echo file $s.%s; done >two.txt && "
              "ffmpeg -y -loglevel error -f concat -i two.txt -c copy two.%s && mv two.%s two",
              help_root, codecs[i].options, end, end, end, end);
        CHECK_REFUSED("two", PEN_E_UNSUPPORTED, "found pictures of several sizes in packet 10");
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    has_ffmpeg = run_shell("ffmpeg -version") == 0;
    all_cases = getenv("PENSTOCK_FULL") != NULL;
    RUN(frames_and_bytes);
    RUN(key_packets);
    RUN(names);
    RUN(real_videos);
    RUN(hidden_packets);
    RUN(orientations);
    RUN(edit_lists);
    RUN(refused_videos);
    RUN(several_sizes);
    help_end();
    return TEST_END();
}
