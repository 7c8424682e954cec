/* SPDX-License-Identifier: Apache-2.0 */
/* src/video with a process that does what it should not (tests/video/hostile_decoder.c): each is an
 * error, and no process and no descriptor is left. The real one is in
 * tests/python/test_video_process.py. */
#include "video/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fault_sweep.h"
#include "test.h"

#include "base/sys.h"
#include "base/thread.h"
#include "video/decoder.h"

#define SECOND UINT64_C(1000000000)

enum { MOST_FILES = 64 };

static const PenVideoDecoderConfig small = {.codec = PEN_VIDEO_H264,
                                            .width = 34,
                                            .height = 6,
                                            .max_pixels = 1 << 20,
                                            .extra = "abc",
                                            .extra_bytes = 3};

static int open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < MOST_FILES; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int open_mode(const char *mode, uint64_t reply_ns, const PenVideoDecoderConfig *config,
                     PenVideoDecoder **ret, PenError *err)
{
    char library[64];
    snprintf(library, sizeof library, "/nowhere/%s", mode);
    PenChildSettings s = {.program = HOSTILE, .library = library, .reply_ns = reply_ns};
    *ret = NULL;
    return pen__child_open(&s, config, ret, err);
}

static int send_wanted(PenVideoDecoder *d, int64_t time, PenError *err)
{
    PenCodedPacket p = {.flags = PEN_VIDEO_WANTED, .time = time, .data = "x", .bytes = 1};
    return pen__child_plugin.send(d, &p, err);
}

/* Opens, sends a packet, and receives until there is an end or an error. */
static int play(PenVideoDecoder *d, PenError *err)
{
    const PenVideoPicture *p = NULL;
    int r = send_wanted(d, 3, err);
    for (int i = 0; r == PEN_OK && i < 1000; i++)
        r = pen__child_plugin.receive(d, &p, err);
    return r;
}

static int play_mode(const char *mode, uint64_t reply_ns, PenError *err)
{
    PenVideoDecoder *d = NULL;
    int r = open_mode(mode, reply_ns, &small, &d, err);
    if (r == PEN_OK)
        r = play(d, err);
    if (d)
        pen__child_plugin.close(d);
    return r;
}

/* ---- a process that does what it should ------------------------------------------------------ */

static void check_planes(const PenVideoPicture *p, uint8_t value)
{
    for (uint32_t i = 0; i < p->n_planes; i++)
        for (uint32_t y = 0; y < (i ? 3u : 6u); y++)
            for (uint32_t x = 0; x < (i ? 17u : 34u); x++)
                CHECK_INT(((const uint8_t *)p->planes[i])[(int64_t)y * p->strides[i] + x], value);
}

TEST(pictures_come_through_shared_memory)
{
    PenVideoDecoder *d = NULL;
    const PenVideoPicture *p = NULL;
    PenError err;
    int before = open_files();
    CHECK_INT(open_mode("good", 60 * SECOND, &small, &d, &err), PEN_OK);
    for (int64_t time = 1; time < 200; time++) {
        CHECK_INT(send_wanted(d, time, &err), PEN_OK);
        CHECK_INT(pen__child_plugin.receive(d, &p, &err), PEN_OK);
        CHECK_INT(p->time, time);
        CHECK(p->width == 34 && p->height == 6 && p->n_planes == 3 && p->depth == 8);
        check_planes(p, (uint8_t)time);
        CHECK_OK_SO_FAR();
        CHECK_INT(pen__child_plugin.receive(d, &p, &err), PEN_END);
        if (time % 50 == 0)
            pen__child_plugin.flush(d);
    }
    CHECK_INT(pen__child_plugin.drain(d, &err), PEN_OK);
    CHECK_INT(pen__child_plugin.receive(d, &p, &err), PEN_END);
    pen__child_plugin.close(d);
    CHECK_INT(open_files(), before);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

TEST(large_packets)
{
    enum { BYTES = 40 << 20 };
    PenVideoDecoder *d = NULL;
    PenError err;
    uint8_t *data = calloc(1, BYTES);
    CHECK(data);
    CHECK_INT(open_mode("good", 60 * SECOND, &small, &d, &err), PEN_OK);
    PenCodedPacket p = {.data = data, .bytes = BYTES};
    CHECK_INT(pen__child_plugin.send(d, &p, &err), PEN_OK);
    pen__child_plugin.close(d);
    free(data);
}

/* ---- and others ------------------------------------------------------------------------------ */

static const struct {
    const char *mode, *message;
    double seconds; /* of its deadline; 0: it is not reached */
} wrong[] = {
    {"silent", "expected a reply within 0.3 s, found none; stopped", 0.3},
    {"die", "ended with code 9", 0},
    {"old", "version: expected 1, found 0", 0},
    {"end", "status: expected 0, found 1", 0},
    {"hang", "expected a reply within 1 s, found none; stopped", 1},
    {"deaf", "expected a reply within 1 s, found none; stopped", 1},
    {"trickle", "expected a reply within 1 s, found none; stopped", 1},
    {"noise", "expected a reply within 1 s, found none; stopped", 1},
    {"close", "found that it closed its socket", 0},
    {"crash", "found that it crashed (signal 6)", 0},
    {"kill", "found that it was killed (signal 9)", 0},
    {"exit", "found that it ended with code 7: no ? reply", 0},
    {"half", "found that it ended with code 0", 0},
    {"version", "version: expected 1, found 7", 0},
    {"status", "expected a status, found -77", 0},
    {"outcome", "status: expected 1, found 5", 0},
    {"planes", "expected a picture of 1 or 3 planes of 8 to 16 bits, found 2 of 8", 0},
    {"many", "found 4000000000 of 8", 0},
    {"depth", "found 3 of 64", 0},
    {"shift", "found 3 of 8", 0},
    {"more", "expected a picture for each packet that is wanted, found more", 0},
    {"memory", "expected it to take at most 768 MiB, found that it needs more", 0},
    {"text", "lines????", 0},
};

TEST(whatever_it_does_is_an_error)
{
    int before = open_files();
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double seconds = wrong[i].seconds;
        PenError err = {0};
        int r = play_mode(wrong[i].mode, (uint64_t)((seconds > 0 ? seconds : 60) * 1e9), &err);
        int expected = seconds > 0 ? PEN_E_DECODE_TIMEOUT : PEN_E_DECODE;
        if (r != expected || err.status != r || !strstr(err.message, wrong[i].message))
            test__fail(__FILE__, __LINE__, "%s: status %d, %s", wrong[i].mode, r, err.message);
        CHECK_OK_SO_FAR();
    }
    CHECK_INT(open_files(), before);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* A packet that the socket does not hold: the process does not read it. */
TEST(a_process_that_does_not_read)
{
    enum { BYTES = 8 << 20 };
    PenVideoDecoder *d = NULL;
    PenError err;
    uint8_t *data = calloc(1, BYTES);
    CHECK(data);
    CHECK_INT(open_mode("deaf", SECOND, &small, &d, &err), PEN_OK);
    PenCodedPacket p = {.data = data, .bytes = BYTES};
    CHECK_INT(pen__child_plugin.send(d, &p, &err), PEN_E_DECODE_TIMEOUT);
    CHECK(strstr(err.message, "within 1 s"));
    pen__child_plugin.close(d);
    free(data);
}

/* All bytes of a reply are at random: it is refused, or a picture whose planes can be read. */
TEST(random_replies)
{
    for (int i = 0; i < 20; i++) {
        PenError err = {0};
        CHECK(play_mode("random", 60 * SECOND, &err) < 0);
    }
}

TEST(reports_of_the_decoder_are_kept)
{
    PenError err = {0};
    CHECK_INT(play_mode("refuse", 60 * SECOND, &err), PEN_E_UNSUPPORTED);
    CHECK_STR(err.message, "no such codec");
}

/* ---- with the decoder of a thread ------------------------------------------------------------ */

static const PenVideoParams params = {
    .codec = PEN_VIDEO_H264, .width = 34, .height = 6, .extra = "abc", .extra_bytes = 3};

static void start(PenFrameDecoder *f, const char *mode)
{
    PenError err;
    *f = (PenFrameDecoder){.plugin = &pen__child_plugin};
    CHECK_INT(open_mode(mode, 60 * SECOND, &small, &f->decoder, &err), PEN_OK);
    CHECK_INT(pen__video_decoder_prepare(f, &params, &err), PEN_OK);
}

/* The prepared decoder decodes a wanted packet of time 3. */
static int decode(PenFrameDecoder *f, PenError *err)
{
    const PenVideoPicture *p = NULL;
    PenCodedPacket packet = {.flags = PEN_VIDEO_WANTED, .time = 3, .data = "x", .bytes = 1};
    int r = pen__video_decoder_send(f, packet, err);
    return r == PEN_OK ? pen__video_decoder_receive(f, &p, err) : r;
}

TEST(one_process_for_several_videos)
{
    PenFrameDecoder f;
    PenVideoParams other = params;
    PenError err;
    start(&f, "good");
    CHECK_OK_SO_FAR();
    PenVideoDecoder *first = f.decoder;
    CHECK_INT(decode(&f, &err), PEN_OK);
    other.extra = "abd";
    CHECK_INT(pen__video_decoder_prepare(&f, &other, &err), PEN_OK);
    CHECK_INT(decode(&f, &err), PEN_OK);
    other.width = 1000;
    other.height = 1000;
    CHECK_INT(pen__video_decoder_prepare(&f, &other, &err), PEN_OK);
    CHECK_INT(decode(&f, &err), PEN_OK);
    CHECK(f.decoder == first);
    PenVideoDecoderConfig large = small;
    large.width = large.height = 1025;
    CHECK(!pen__child_has_room(first, &large));
    pen__video_decoder_free(&f);
}

TEST(pictures_of_another_size_or_time)
{
    static const char *const modes[] = {"size", "time"};
    static const char *const messages[] = {"expected frames of 34x6, found 16384x6",
                                           "expected a picture for each packet"};
    for (int i = 0; i < 2; i++) {
        PenFrameDecoder f;
        PenError err = {0};
        start(&f, modes[i]);
        CHECK_OK_SO_FAR();
        CHECK_INT(decode(&f, &err), PEN_E_DECODE);
        CHECK(strstr(err.message, messages[i]));
        pen__video_decoder_free(&f);
    }
}

static void *ask_alive(void *arg)
{
    bool *alive = ((void **)arg)[1];
    *alive = pen__child_is_alive(((void **)arg)[0]);
    return NULL;
}

/* It dies with the thread that started it, so another one does not use it. */
TEST(used_by_one_thread)
{
    PenVideoDecoder *d = NULL;
    PenError err;
    bool alive = true;
    pthread_t thread;
    CHECK_INT(open_mode("good", 60 * SECOND, &small, &d, &err), PEN_OK);
    CHECK(pen__child_is_alive(d));
    void *arg[] = {d, &alive};
    CHECK_INT(pen__thread_start(&thread, ask_alive, arg, &err), PEN_OK);
    pen__thread_join(thread);
    CHECK(!alive);
    pen__child_plugin.close(d);
}

TEST(a_process_that_ended_is_noticed)
{
    PenVideoDecoder *d = NULL;
    PenError err;
    CHECK_INT(open_mode("leave", 60 * SECOND, &small, &d, &err), PEN_OK);
    for (int i = 0; i < 6000 && pen__child_is_alive(d); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    CHECK(!pen__child_is_alive(d));
    CHECK_INT(play(d, &err), PEN_E_DECODE);
    pen__child_plugin.close(d);
}

/* ---- starting -------------------------------------------------------------------------------- */

TEST(programs_that_cannot_run)
{
    PenChildSettings s = {.program = "/nowhere/decoder", .library = "x", .reply_ns = SECOND};
    PenVideoDecoder *d = NULL;
    PenError err;
    int before = open_files();
    CHECK_INT(pen__child_open(&s, &small, &d, &err), PEN_E_UNSUPPORTED);
    CHECK(strstr(err.message, "/nowhere/decoder: cannot run the video decoder (No such file"));
    s.program = "/";
    CHECK_INT(pen__child_open(&s, &small, &d, &err), PEN_E_UNSUPPORTED);
    CHECK(strstr(err.message, "(Permission denied). Make it executable, on a file system without"));
    CHECK_INT(open_files(), before);
}

static int no_filters(const PenSpawn *what, PenSpawned *ret)
{
    (void)what, (void)ret;
    return -ENOSYS;
}

TEST(kernels_without_filters)
{
    PenError err;
    PenSys sys = pen__sys_real;
    sys.spawn = no_filters;
    pen__sys = &sys;
    int r = play_mode("good", SECOND, &err);
    pen__sys = &pen__sys_real;
    CHECK_INT(r, PEN_E_UNSUPPORTED);
    CHECK(strstr(err.message, "expected a kernel with seccomp filters, found none"));
}

static int sweep_body(PenError *err)
{
    PenFrameDecoder f = {.plugin = &pen__child_plugin};
    int r = open_mode("good", 60 * SECOND, &small, &f.decoder, err);
    if (r == PEN_OK)
        r = pen__video_decoder_prepare(&f, &params, err);
    if (r == PEN_OK)
        r = decode(&f, err);
    pen__video_decoder_free(&f);
    return r;
}

TEST(calls_that_fail)
{
    int points = 0;
    fault_sweep(sweep_body, &points);
    CHECK(points > 10);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(pictures_come_through_shared_memory);
    RUN(large_packets);
    RUN(whatever_it_does_is_an_error);
    RUN(a_process_that_does_not_read);
    RUN(random_replies);
    RUN(reports_of_the_decoder_are_kept);
    RUN(one_process_for_several_videos);
    RUN(pictures_of_another_size_or_time);
    RUN(used_by_one_thread);
    RUN(a_process_that_ended_is_noticed);
    RUN(programs_that_cannot_run);
    RUN(kernels_without_filters);
    RUN(calls_that_fail);
    return TEST_END();
}
