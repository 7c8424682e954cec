/* SPDX-License-Identifier: Apache-2.0 */
/* Videos that are encoded again, with programs in ffmpeg's place: what it is asked, what is made of
 * its errors, and that no file stays behind. test_pack_videos_gop.py has the real one. */
#include "ingest/prepare/prepared_video.h"
#include "ingest/video/encode.h"
#include "video_help.h"

static int spawn_free(const PenSpawn *what, PenSpawned *ret) /* scripts cannot be confined */
{
    PenSpawn free_one = *what;
    free_one.confine = NULL;
    return pen__sys_real.spawn(&free_one, ret);
}

static int keep_bytes(void *ctx, const void *data, size_t bytes, PenError *reterr)
{
    (void)reterr;
    return pen__buf_add(ctx, data, bytes);
}

static const PenVideoSettings settings = {.seconds = 20, .gop = 12};

static int encode_stub(const char *script, PenBuf *out, PenError *e)
{
    PenVideoPart part = {at("some.mp4"), 1500000000, 4000000001};
    stub("ffmpeg", script);
    out->bytes = 0;
    return pen__video_encode(&settings, &part, keep_bytes, out, e);
}

#define CHECK_FAILS_SO(script, expected, text)                                                     \
    do {                                                                                           \
        PenBuf out = {0};                                                                          \
        PenError e = {0};                                                                          \
        CHECK_INT(encode_stub(script, &out, &e), expected);                                        \
        if (!strstr(e.message, text))                                                              \
            test__fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", text, e.message);            \
        pen__buf_free(&out);                                                                       \
    } while (0)

/* The values of options, in this order. */
#define SHOW(names)                                                                                \
    "p=; for a in \"$@\"; do case $p in " names ") printf '%s|' \"$a\";; esac; p=$a; done"

#define CHECK_SAYS(script, text)                                                                   \
    do {                                                                                           \
        PenBuf out = {0};                                                                          \
        PenError e = {0};                                                                          \
        CHECK_INT(encode_stub(script, &out, &e), PEN_OK);                                          \
        CHECK_STR(e.message, "");                                                                  \
        CHECK_INT(pen__buf_add(&out, "", 1), PEN_OK);                                              \
        CHECK_STR((const char *)out.data, text);                                                   \
        pen__buf_free(&out);                                                                       \
    } while (0)

TEST(what_is_asked)
{
    CHECK_SAYS(SHOW("-g|-c:v|-c:a|-fps_mode|-vsync"), "copy|12|passthrough|libx264|");
    CHECK_SAYS(SHOW("-ss|-t|-movie_timescale"), "1.500000000|2.500000001|360000|");
    CHECK_SAYS(SHOW("-copyts|-protocol_whitelist|-map"), "file,pipe|-noautorotate|0:V:0|0:a?|");
}

TEST(other_attempts)
{
    /* An older program, and one that has no place for the sound; both at once. */
    CHECK_SAYS("case \"$*\" in *fps_mode*) echo \"Unrecognized option 'fps_mode'.\" >&2; exit 1;; "
               "esac; " SHOW("-vsync|-fps_mode|-movie_timescale|-c:a"),
               "copy|passthrough|");
    CHECK_SAYS("case \"$*\" in *fps_mode*) echo \"Unrecognized option 'fps_mode'.\" >&2; exit 1;; "
               "*c:a*) echo 'Could not find tag for codec pcm_s16le in stream #1, codec not "
               "currently supported in container' >&2; exit 1;; esac; " SHOW("-vsync|-c:a|-map"),
               "0:V:0|passthrough|");
    CHECK_SAYS("case \"$*\" in *c:a*) echo 'truehd in MP4 support is experimental' >&2; exit 1;; "
               "esac; " SHOW("-fps_mode|-c:a"),
               "passthrough|");
    /* Not after the first bytes, and not for ever. */
    CHECK_FAILS_SO("printf x; echo 'codec not currently supported in container' >&2; exit 1",
                   PEN_E_DECODE, "not currently supported");
    CHECK_FAILS_SO("echo 'fps_mode, codec not currently supported in container' >&2; exit 1",
                   PEN_E_DECODE, "some.mp4: ffmpeg cannot read this video: fps_mode");
}

TEST(its_errors)
{
    CHECK_FAILS_SO("echo \"Unknown encoder 'libx264'\" >&2; exit 1", PEN_E_IO,
                   "ffmpeg: expected the encoder libx264, which --gop needs, found none");
    CHECK_FAILS_SO("echo '[libx264 @ 0x1] width not divisible by 2 (65x48)' >&2; exit 1",
                   PEN_E_UNSUPPORTED, "some.mp4: expected an even width and height");
    CHECK_FAILS_SO("echo 'moov atom not found' >&2; exit 1", PEN_E_DECODE, "moov atom not found");
    CHECK_FAILS_SO("exit 0", PEN_E_DECODE, "some.mp4: expected frames, found none");
    CHECK_FAILS_SO("printf x; kill -KILL $$", PEN_E_IO, "was killed by another process");
    CHECK_FAILS_SO("printf x; kill -SEGV $$", PEN_E_DECODE, "crashed");
}

TEST(the_encoder_is_looked_for)
{
    PenError e = {0};
    stub("ffmpeg", "echo ' V....D libx264              libx264 H.264 (codec h264)'");
    CHECK_INT(pen__video_check_encoder(&settings, &e), PEN_OK);
    stub("ffmpeg", "echo ' V....D libx264rgb           libx264 RGB (codec h264)'");
    CHECK_INT(pen__video_check_encoder(&settings, &e), PEN_E_NOT_FOUND);
    CHECK(strstr(e.message, "ffmpeg: expected the encoder libx264"));
    stub("ffmpeg", "yes");
    CHECK_INT(pen__video_check_encoder(&settings, &e), PEN_E_LIMIT);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int prepare(const char *temporary, PenError *e)
{
    PenVideoPart part = {at("some.mp4"), 0, PEN_NO_END};
    PenPreparedVideo video;
    return pen__prepare_encoded_video(&settings, &part, strdup(at(temporary)), &video, e);
}

TEST(no_file_stays)
{
    PenError e = {0};
    help_text("work/other", "x");
    stub("ffmpeg", "printf x; exit 1");
    CHECK_INT(prepare("work/video", &e), PEN_E_DECODE);
    CHECK(access(at("work/video"), F_OK) != 0);
    stub("ffmpeg", "printf video");
    stub("ffprobe", "echo damaged >&2; exit 1");
    CHECK_INT(prepare("work/video", &e), PEN_E_DECODE);
    CHECK(strstr(e.message, "some.mp4: encoded: "));
    CHECK(strstr(e.message, "damaged"));
    CHECK(access(at("work/video"), F_OK) != 0);
}

/* What was ended from outside is done again, from its beginning. */
TEST(another_try)
{
    PenError e = {0};
    stub("ffmpeg", "printf video; mkdir \"${0%/*}/../once\" 2>/dev/null && kill -KILL $$; exit 0");
    stub("ffprobe", "wc -c <\"${0%/*}/../work/video\" >&2; exit 1");
    CHECK_INT(prepare("work/video", &e), PEN_E_DECODE);
    CHECK(strstr(e.message, "this video: 5"));
    stub("ffmpeg", "echo x >>\"${0%/*}/../tries\"; kill -KILL $$");
    CHECK_INT(prepare("work/video", &e), PEN_E_IO);
    CHECK_INT(run_shell("exit $(wc -l <\"${PATH%%/bin:*}/tries\")"), 3);
    /* A place where no file can be written is no fault of the video. */
    stub("ffmpeg", "printf video");
    CHECK_INT(prepare("none/video", &e), PEN_E_IO);
    CHECK_INT(e.status, PEN_E_IO);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    static PenSys sys;
    sys = pen__sys_real;
    sys.spawn = spawn_free;
    pen__sys = &sys;
    help_begin();
    RUN(what_is_asked);
    RUN(other_attempts);
    RUN(its_errors);
    RUN(the_encoder_is_looked_for);
    RUN(no_file_stays);
    RUN(another_try);
    help_end();
    return TEST_END();
}
