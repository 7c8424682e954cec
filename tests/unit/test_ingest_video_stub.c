/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in ffmpeg's place that hang, flood, crash, are killed, lie: each gives an error of the
 * right kind, in bounded time, and leaves no process behind. They are scripts, so they are run
 * unconfined; test_base_confine.c has the program that tries to get out. */
#include <signal.h>

#include "video_help.h"

#define SECOND UINT64_C(1000000000)

/* Time goes ten times as fast: limits are in whole seconds. */
static uint32_t seconds = 200;

static uint64_t fast_now(void)
{
    return pen__sys_real.now_ns() * 10;
}

/* The last one that was asked for, and whether it was to be confined. */
static PenSpawn last;
static char last_env[4096], last_inputs[4096];

static void join(char *ret, size_t cap, const char *const *list)
{
    size_t n = 0;
    ret[0] = 0;
    for (; list && *list && n < cap; list++)
        n += (size_t)snprintf(ret + n, cap - n, "%s|", *list);
}

static int spawn_free(const PenSpawn *what, PenSpawned *ret)
{
    PenSpawn free_one = *what;
    last = *what;
    join(last_env, sizeof last_env, what->env);
    join(last_inputs, sizeof last_inputs, what->confine ? what->confine->inputs : NULL);
    free_one.confine = NULL;
    return pen__sys_real.spawn(&free_one, ret);
}

static void read_stub(Got *got, const char *script)
{
    PenVideoSettings s = {.seconds = seconds};
    PenVideoPart part = {at("some.mp4"), 0, PEN_NO_END};
    stub("ffmpeg", script);
    *got = (Got){.n = 0};
    got->r = pen__video_read(&s, &part, keep_frame, got, &got->times, &got->err);
}

#define CHECK_STUB(script, expected, text)                                                         \
    do {                                                                                           \
        Got got;                                                                                   \
        read_stub(&got, script);                                                                   \
        CHECK_INT(got.r, expected);                                                                \
        CHECK_INT(got.err.status, expected);                                                       \
        if (!strstr(got.err.message, text))                                                        \
            test__fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", text, got.err.message);      \
        free_got(&got);                                                                            \
    } while (0)

/* Two frames of 2x1 pixels at 1/25 and 3/25 seconds. */
#define HEAD "echo '#software: x' >&3; echo '#tb 0: 1/25' >&3; echo '#dimensions 0: 2x1' >&3; "
#define FRAME1 "printf 'abcdef'; echo '0, 1, 1, 1, 6, 0x1' >&3; "
#define FRAME2 "printf 'ghijkl'; echo '0, 3, 3, 1, 6, 0x1' >&3; "

TEST(a_good_one)
{
    Got got;
    read_stub(&got, HEAD FRAME1 FRAME2);
    CHECK_STR(got.err.message, "");
    CHECK_INT(got.n, 2);
    CHECK_INT(got.width, 2);
    CHECK_MEM(got.pixels.data, "abcdefghijkl", 12);
    CHECK_INT(time_of(&got, 0), 0);
    CHECK_INT(time_of(&got, 1), 80000000);
    free_got(&got);
    /* Sizes that come late, pixels in pieces. */
    read_stub(&got, "printf abcdefgh; sleep 0.1; " HEAD
                    "printf ij; sleep 0.1; printf kl; echo '0, 1, 1, 1, 6, 0x1' >&3; "
                    "echo '0, 3, 3, 1, 6, 0x1' >&3");
    CHECK_INT(got.n, 2);
    CHECK_MEM(got.pixels.data, "abcdefghijkl", 12);
    free_got(&got);
}

/* Times that are missing, equal or go back get the next tick. */
TEST(odd_times)
{
    Got got;
    read_stub(&got, HEAD FRAME1 FRAME2 FRAME2
              "printf mnopqr; "
              "echo '0, 0, -9223372036854775808, 1, 6, 0x1' >&3; " FRAME1);
    CHECK_INT(got.r, PEN_OK);
    static const int64_t ticks[] = {0, 2, 3, 4, 5};
    for (uint64_t i = 0; i < 5; i++)
        CHECK_INT(time_of(&got, i), ticks[i] * 40000000);
    free_got(&got);
    read_stub(&got, "echo '#tb 0: 1/1' >&3; echo '#dimensions 0: 2x1' >&3; "
                    "printf 'abcdef'; echo '0, 0, 0, 1, 6, 0x1' >&3; "
                    "printf 'abcdef'; echo '0, 0, 4611686018427387903, 1, 6, 0x1' >&3; ");
    CHECK_INT(got.r, PEN_OK);
    CHECK(time_of(&got, 1) == INT64_MAX);
    free_got(&got);
}

TEST(an_older_program)
{
    Got got;
    read_stub(&got, "case \"$*\" in *fps_mode*) echo \"Unrecognized option 'fps_mode'.\" >&2; "
                    "exit 1;; esac; " HEAD FRAME1);
    CHECK_STR(got.err.message, "");
    CHECK_INT(got.n, 1);
    free_got(&got);
}

TEST(it_says_no)
{
    CHECK_STUB("echo first >&2; printf 'moov atom \\001 not found\\n\\n' >&2; exit 1", PEN_E_DECODE,
               "some.mp4: ffmpeg cannot read this video: moov atom ? "
               "not found");
    CHECK_STUB("exit 1", PEN_E_DECODE, "video: no output");
    CHECK_STUB(HEAD FRAME1 "exit 69", PEN_E_DECODE, "cannot read this video");
}

TEST(it_crashes_or_is_killed)
{
    CHECK_STUB("kill -SEGV $$", PEN_E_DECODE, "ffmpeg crashed on it (signal 11)");
    CHECK_STUB(HEAD FRAME1 "kill -ABRT $$", PEN_E_DECODE, "crashed on it (signal 6)");
    CHECK_STUB(HEAD FRAME1 "kill -KILL $$", PEN_E_IO, "was killed by another process (signal 9)");
    CHECK_STUB(HEAD FRAME1 "kill -TERM $$", PEN_E_IO, "was killed by another process (signal 15)");
    CHECK_STUB(HEAD FRAME1 "exit 255", PEN_E_IO, "ffmpeg was stopped by another process");
}

TEST(it_hangs)
{
    uint64_t start = pen__sys->now_ns();
    seconds = 2;
    CHECK_STUB("sleep 60", PEN_E_LIMIT, "expected ffmpeg to take at most 2 seconds, found more");
    CHECK_STUB(HEAD FRAME1 "sleep 60", PEN_E_LIMIT, "--video-seconds");
    CHECK_STUB("while :; do :; done", PEN_E_LIMIT, "at most 2 seconds");
    seconds = 200;
    CHECK(pen__sys->now_ns() - start < 100 * SECOND);
}

TEST(it_floods)
{
    CHECK_STUB("yes abcdefghijklmnopqrstuvwxyz", PEN_E_LIMIT, "found only pixels");
    CHECK_STUB("yes 'no list of frames' >&3", PEN_E_DECODE,
               "found something else: \"no list of frames\"");
    CHECK_STUB("yes abcdef | tr -d '\\n' >&3", PEN_E_DECODE, "a line that is too long");
    CHECK_STUB("yes '# abc' >&3", PEN_E_DECODE, "no end of headers");
    seconds = 2;
    CHECK_STUB(HEAD "yes >&2", PEN_E_LIMIT, "seconds"); /* error output is not kept */
    seconds = 200;
}

TEST(it_lies)
{
    CHECK_STUB("", PEN_E_DECODE, "expected frames, found none");
    CHECK_STUB(HEAD, PEN_E_DECODE, "expected frames, found none");
    CHECK_STUB(HEAD FRAME1 "printf 'abc'", PEN_E_DECODE, "found 1 of 1 and 3 bytes");
    CHECK_STUB(HEAD FRAME1 "printf 'abcdef'", PEN_E_DECODE, "found 2 of 1 and 0 bytes");
    CHECK_STUB(HEAD FRAME1 "echo '0, 1, 1, 1, 6, 0x1' >&3", PEN_E_DECODE, "found 1 of 2");
    CHECK_STUB(HEAD FRAME1 "printf '0, 1, 1, 1, 6, 0x1' >&3", PEN_E_DECODE, "found 1 of 1");
    CHECK_STUB(HEAD FRAME1 "echo '0, 1, 1, 1, 12, 0x1' >&3", PEN_E_UNSUPPORTED,
               "frames of one size (2x1), found another at frame 2");
    CHECK_STUB(HEAD "echo '#dimensions 0: 3x1' >&3", PEN_E_DECODE, "a second size");
    CHECK_STUB(HEAD "echo '#tb 0: 1/7' >&3", PEN_E_DECODE, "a second time base");
    CHECK_STUB("echo '#dimensions 0: 0x1' >&3", PEN_E_DECODE, "no size");
    CHECK_STUB("echo '#dimensions 0: 65536x1' >&3", PEN_E_LIMIT, "found 65536x1");
    CHECK_STUB("echo '#dimensions 0: 65535x65535' >&3", PEN_E_LIMIT, "pixels");
    CHECK_STUB("echo '#tb 0: 1/0' >&3", PEN_E_DECODE, "no time base");
    CHECK_STUB("echo '0, 1, 1, 1, 6, 0x1' >&3", PEN_E_DECODE, "something else");
}

TEST(the_command_keeps_to_files)
{
    PenVideoSettings s = {.seconds = 200, .fps = 12.5};
    PenVideoPart part = {"-a:b 'c.mp4", 1500000000, 4000000001};
    Got got = {.n = 0};
    stub("ffmpeg", "for a in \"$@\"; do printf '%s|' \"$a\"; done >&2; "
                   "env | sort | tr '\\n' '|' >&2; exit 1");
    setenv("FFREPORT", "file=/tmp/report", 1);
    PenError err = {0};
    CHECK_INT(pen__video_read(&s, &part, keep_frame, &got, &got.times, &err), PEN_E_DECODE);
    unsetenv("FFREPORT");
    /* The message has the first 200 bytes of it. */
    CHECK(strstr(err.message, "-nostdin|-hide_banner|-xerror|-loglevel|error|"));
    CHECK(strstr(err.message, "-protocol_whitelist|file,pipe|-format_whitelist|mov,"));
    CHECK(!strstr(PEN_VIDEO_FORMATS, "hls") && !strstr(PEN_VIDEO_FORMATS, "concat") &&
          !strstr(PEN_VIDEO_FORMATS, "image2") && !strstr(PEN_VIDEO_FORMATS, "dash"));
    free_got(&got);
    static const struct {
        const char *script, *text;
    } cases[] = {
        {"for a in \"$@\"; do case $p in -i|-ss|-t) printf '%s|' \"$a\" >&2;; esac; p=$a; done; "
         "exit 1",
         "1.500000000|2.500000001|file:-a:b 'c.mp4|"},
        {"for a in \"$@\"; do case $p in -vf|-enc_time_base) printf '%s|' \"$a\" >&2;; esac; p=$a; "
         "done; exit 1",
         "fps=fps=25/2,scale=flags=bicubic+accurate_rnd+full_chroma_int+bitexact,format=rgb24|2/"
         "25|"},
        {"env | grep -v '^PWD=\\|^_=\\|^SHLVL=\\|^OLDPWD=' | sort | tr '\\n' '|' >&2; exit 1",
         "video: AV_LOG_FORCE_NOCOLOR=1|LC_ALL=C|MALLOC_ARENA_MAX=2|"},
        {"test -t 0; readlink /proc/self/fd/0 >&2; exit 1", "video: /dev/null"},
    };
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        stub("ffmpeg", cases[i].script);
        CHECK_INT(pen__video_read(&s, &part, keep_frame, &got, &got.times, &err), PEN_E_DECODE);
        if (!strstr(err.message, cases[i].text))
            test__fail(__FILE__, __LINE__, "%s", err.message);
        free_got(&got);
    }
}

/* Every one of them is confined, and gets nothing of our environment but what finds libraries. */
TEST(all_are_confined)
{
    Got got;
    PenVideoInfo info;
    PenError e = {0};
    PenVideoSettings s = {.seconds = 200};
    setenv("AWS_SECRET_ACCESS_KEY", "x", 1);
    setenv("LD_LIBRARY_PATH", "/nonexistent/a::/nonexistent/b;relative", 1);
    read_stub(&got, "exit 1");
    unsetenv("LD_LIBRARY_PATH");
    CHECK(last.confine);
    CHECK_STR(last_inputs, at("some.mp4|"));
    CHECK_STR(last_env, "LC_ALL=C|MALLOC_ARENA_MAX=2|AV_LOG_FORCE_NOCOLOR=1|"
                        "LD_LIBRARY_PATH=/nonexistent/a::/nonexistent/b;relative|");
    free_got(&got);
    stub("ffprobe", "exit 1");
    last = (PenSpawn){0};
    CHECK_INT(pen__video_probe(&s, "x.mp4", &info, &e), PEN_E_DECODE);
    CHECK(last.confine);
    CHECK_STR(last_inputs, "x.mp4|");
    CHECK_STR(last_env, "LC_ALL=C|MALLOC_ARENA_MAX=2|AV_LOG_FORCE_NOCOLOR=1|");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    last = (PenSpawn){0};
    stub("ffmpeg", "exit 0");
    stub("ffprobe", "exit 0");
    CHECK_INT(pen__video_check_programs(&s, &e), PEN_OK);
    CHECK(last.confine);
    CHECK_STR(last_inputs, "");
    CHECK_INT(last.memory_bytes, PEN_CONFINE_MEMORY);
}

static int say_no_seccomp(const PenSpawn *what, PenSpawned *ret)
{
    (void)what, (void)ret;
    return -ENOSYS;
}

/* Programs that cannot be confined, or cannot run so, are refused with a reason. */
TEST(programs_that_do_not_fit)
{
    PenVideoSettings s = {.seconds = 20};
    PenError e = {0};
    PenSys sys = pen__sys_real;
    const PenSys *before = pen__sys;
    stub("ffmpeg", "echo 'libx.so: cannot open shared object file' >&2; exit 127");
    CHECK_INT(pen__video_check_programs(&s, &e), PEN_E_NOT_FOUND);
    CHECK(strstr(e.message,
                 "ffmpeg: expected the version of the program, found "
                 "libx.so: cannot open shared object file; use a binary, not a script, with its "
                 "libraries in a system folder, in ../lib or in LD_LIBRARY_PATH"));
    pen__sys = &sys; /* confined, as it is for all users: a script starts no other program */
    stub("ffmpeg", "exec ffmpeg.bin");
    CHECK_INT(pen__video_check_programs(&s, &e), PEN_E_NOT_FOUND);
    CHECK(strstr(e.message, "script"));
    help_file("bin/ffmpeg", "not a program at all", 20);
    CHECK_INT(pen__video_check_programs(&s, &e), PEN_E_NOT_FOUND);
    CHECK(strstr(e.message, "bin/ffmpeg: cannot run it (Exec "
                            "format error)"));
    sys.spawn = say_no_seccomp;
    CHECK_INT(pen__video_check_programs(&s, &e), PEN_E_NOT_FOUND);
    CHECK(strstr(e.message, "bin/ffmpeg: videos are read only in a sandbox, and this kernel has no "
                            "seccomp filters"));
    pen__sys = before;
}

TEST(probing)
{
    PenVideoSettings s = {.seconds = 20};
    PenVideoInfo info;
    PenError e = {0};
    stub("ffprobe", "echo width=320; echo height=240; echo avg_frame_rate=30000/1001; "
                    "echo duration=8.375");
    CHECK_INT(pen__video_probe(&s, "x", &info, &e), PEN_OK);
    CHECK_INT(info.width, 320);
    CHECK(info.fps > 29.97 && info.fps < 29.971 && info.seconds == 8.375);
    stub("ffprobe", "echo width=320; echo height=240; echo avg_frame_rate=0/0; echo duration=N/A");
    CHECK_INT(pen__video_probe(&s, "x", &info, &e), PEN_OK);
    CHECK(info.fps == 0 && info.seconds == 0);
    stub("ffprobe", "echo duration=1");
    CHECK_INT(pen__video_probe(&s, "x", &info, &e), PEN_E_DECODE);
    CHECK(strstr(e.message, "x: expected a video, found no pictures"));
    stub("ffprobe", "echo bad >&2; exit 1");
    CHECK_INT(pen__video_probe(&s, "x", &info, &e), PEN_E_DECODE);
    stub("ffprobe", "yes");
    CHECK_INT(pen__video_probe(&s, "x", &info, &e), PEN_E_LIMIT);
    stub("ffprobe", "sleep 60");
    s.seconds = 2;
    CHECK_INT(pen__video_probe(&s, "x", &info, &e), PEN_E_LIMIT);
}

/* ---- whole runs ------------------------------------------------------------------------------ */

static PenIngestSettings ask_run(const char *out)
{
    help_text("set/a/1.mp4", "1");
    help_text("set/a/2.mp4", "22");
    help_text("set/b/3.mp4", "333");
    stub("ffprobe", "echo width=2; echo height=1; echo avg_frame_rate=25/1; echo duration=1");
    return help_ingest("set", out);
}

/* A kill is made good by another try: the pack is the same. */
TEST(killed_programs_are_run_again)
{
    PenIngestResult result;
    PenPack *pack = NULL;
    PenIngestSettings s = ask_run("once.pen");
    stub("ffmpeg",
         "case \"$*\" in *version*) exit 0;; *2.mp4*) mkdir \"${0%/*}/../once\" 2>/dev/null && "
         "{ " HEAD FRAME1 "kill -KILL $$; };; esac; " HEAD FRAME1 FRAME2);
    CHECK_GOES(pen_ingest_run(&s, &result, &err));
    CHECK_INT(result.n_samples, 3);
    CHECK_INT(access(at("once"), F_OK), 0);
    CHECK_GOES(pen_pack_open(s.out, NULL, &pack, &err));
    for (uint64_t i = 0; i < 3; i++) {
        uint32_t n = 0;
        CHECK_GOES(pen_pack_frame_count(pack, i, 0, &n, &err));
        CHECK_INT(n, 2);
    }
    pen_pack_close(&pack);
    s = ask_run("always.pen");
    stub("ffmpeg",
         "case \"$*\" in *version*) exit 0;; *2.mp4*) kill -KILL $$;; esac; " HEAD FRAME1);
    s.skip_bad = 1; /* not the video's fault */
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_IO, "2.mp4: ffmpeg was killed");
    stub("ffmpeg", "case \"$*\" in *version*) exit 0;; esac; " HEAD FRAME1 FRAME2);
    CHECK_GOES(pen_ingest_run(&s, &result, &err));
    CHECK_INT(result.n_samples, 3);
    CHECK_INT(result.n_bad, 0);
}

TEST(broken_videos_are_left_out)
{
    PenIngestResult result;
    PenIngestSettings s = ask_run("bad.pen");
    stub("ffmpeg",
         "case \"$*\" in *version*) exit 0;; *1.mp4*) exit 1;; *2.mp4*) sleep 60;; esac; " HEAD
             FRAME1);
    s.video_seconds = 5;
    PenError e = {0};
    CHECK(pen__status_is_bad_input(pen_ingest_run(&s, &result, &e)));
    CHECK(strstr(e.message, ".mp4: "));
    s.skip_bad = 1;
    CHECK_GOES(pen_ingest_run(&s, &result, &err));
    CHECK_INT(result.n_samples, 1);
    CHECK_INT(result.n_bad, 2);
}

TEST(without_the_programs)
{
    PenIngestResult result;
    PenIngestSettings s = ask_run("none.pen");
    char *path = strdup(getenv("PATH"));
    setenv("PATH", at("nowhere"), 1);
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_NOT_FOUND,
                "ffmpeg: no such program; install the package ffmpeg");
    setenv("PATH", path, 1);
    free(path);
    s.no_index = 1;
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_UNSUPPORTED, "leave --no-index out");
}

typedef struct Stop {
    uint64_t since;
} Stop;

static int stop_soon(void *ctx, const PenIngestProgress *p)
{
    Stop *stop = ctx;
    if (strcmp(p->stage, "pack") != 0)
        return 0;
    if (!stop->since)
        stop->since = pen__sys->now_ns();
    return pen__sys->now_ns() - stop->since > 2 * SECOND;
}

TEST(stopping_does_not_wait_for_a_video)
{
    PenIngestResult result;
    Stop stop = {0};
    PenIngestSettings s = ask_run("stopped.pen");
    stub("ffmpeg", "case \"$*\" in *version*) exit 0;; esac; " HEAD FRAME1 "sleep 60");
    s.progress = stop_soon;
    s.ctx = &stop;
    uint64_t start = pen__sys->now_ns();
    CHECK_FAILS(pen_ingest_run(&s, &result, &err), PEN_E_CANCELLED, "stopped");
    CHECK(pen__sys->now_ns() - start < 50 * SECOND);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    static PenSys sys;
    sys = pen__sys_real;
    sys.now_ns = fast_now;
    sys.spawn = spawn_free;
    pen__sys = &sys;
    help_begin();
    RUN(a_good_one);
    RUN(odd_times);
    RUN(an_older_program);
    RUN(it_says_no);
    RUN(it_crashes_or_is_killed);
    RUN(it_hangs);
    RUN(it_floods);
    RUN(it_lies);
    RUN(the_command_keeps_to_files);
    RUN(all_are_confined);
    RUN(programs_that_do_not_fit);
    RUN(probing);
    RUN(killed_programs_are_run_again);
    RUN(broken_videos_are_left_out);
    RUN(without_the_programs);
    RUN(stopping_does_not_wait_for_a_video);
    help_end();
    return TEST_END();
}
