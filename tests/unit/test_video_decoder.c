/* SPDX-License-Identifier: Apache-2.0 */
/* src/video with a plug-in that does what a real one cannot be made to do. Real ones are in
 * tests/python/test_video_decode.py. */
#include "video/play.h"

#include "fault_sweep.h"
#include "test.h"

#include "base/error.h"
#include "base/sys.h"
#include "base/thread.h"

/* Returns `pictures` one after the other once it is drained. */
static struct {
    PenVideoPicture pictures[4];
    int n, at;
    int opened, flushed, closed;
    int fail; /* status of send and drain */
    bool is_drained;
} stub;

static int stub_open(const PenVideoDecoderConfig *config, PenVideoDecoder **ret, PenError *reterr)
{
    if (config->codec == PEN_VIDEO_VP8)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, "stub", "no VP8");
    stub.opened++;
    *ret = (PenVideoDecoder *)(void *)&stub;
    return PEN_OK;
}

static int stub_send(PenVideoDecoder *decoder, const PenCodedPacket *packet, PenError *reterr)
{
    (void)decoder, (void)packet;
    if (stub.fail)
        return pen__fail(reterr, PEN_E_DECODE, "stub", "bad packet");
    return PEN_OK;
}

static int stub_drain(PenVideoDecoder *decoder, PenError *reterr)
{
    (void)decoder;
    stub.is_drained = true;
    return stub.fail ? pen__fail(reterr, PEN_E_DECODE, "stub", "bad end") : PEN_OK;
}

static int stub_receive(PenVideoDecoder *decoder, const PenVideoPicture **ret, PenError *reterr)
{
    (void)decoder, (void)reterr;
    if (!stub.is_drained || stub.at == stub.n)
        return PEN_END;
    *ret = &stub.pictures[stub.at++];
    return PEN_OK;
}

static void stub_flush(PenVideoDecoder *decoder)
{
    (void)decoder;
    stub.flushed++;
    stub.is_drained = false;
}

static void stub_close(PenVideoDecoder *decoder)
{
    (void)decoder;
    stub.closed++;
}

static const PenVideoPlugin table = {
    .abi = PEN_VIDEO_ABI,
    .name = "stub",
    .open = stub_open,
    .send = stub_send,
    .drain = stub_drain,
    .receive = stub_receive,
    .flush = stub_flush,
    .close = stub_close,
};

static const PenVideoParams small = {
    .codec = PEN_VIDEO_H264, .width = 4, .height = 2, .extra = "abc", .extra_bytes = 3};

static PenVideoPicture picture_at(int64_t time)
{
    return (PenVideoPicture){.width = 4, .height = 2, .n_planes = 3, .depth = 8, .time = time};
}

static void reset(PenFrameDecoder *d)
{
    memset(&stub, 0, sizeof stub);
    *d = (PenFrameDecoder){.plugin = &table};
}

static int send_wanted(PenFrameDecoder *d, int64_t time, PenError *err)
{
    return pen__video_decoder_send(
        d, (PenCodedPacket){.flags = PEN_VIDEO_WANTED, .time = time, .data = "x", .bytes = 1}, err);
}

/* Decodes two packets of the times 0 and 1; what the last call returned, and how many pictures. */
static int decode_two(PenFrameDecoder *d, int *ret_pictures, PenError *err)
{
    const PenVideoPicture *p = NULL;
    *ret_pictures = 0;
    int r = pen__video_decoder_prepare(d, &small, err);
    for (int64_t time = 0; r == PEN_OK && time < 2; time++)
        r = send_wanted(d, time, err);
    if (r == PEN_OK)
        r = pen__video_decoder_drain(d, err);
    while (r == PEN_OK) {
        r = pen__video_decoder_receive(d, &p, err);
        *ret_pictures += r == PEN_OK;
    }
    return r;
}

TEST(pictures_come_once)
{
    PenFrameDecoder d;
    PenError err;
    int n = 0;
    reset(&d);
    stub.pictures[0] = picture_at(7); /* not wanted */
    stub.pictures[1] = picture_at(0);
    stub.pictures[2] = picture_at(0); /* again */
    stub.pictures[3] = picture_at(1);
    stub.n = 4;
    CHECK_INT(decode_two(&d, &n, &err), PEN_END);
    CHECK_INT(n, 2);
    pen__video_decoder_free(&d);
    CHECK_INT(stub.closed, 1);
}

/* What the container states counts where the picture states nothing; a decoder stays open if only
 * that differs. */
TEST(colors_of_the_container)
{
    const PenVideoPicture *p = NULL;
    PenFrameDecoder d;
    PenError err;
    reset(&d);
    stub.pictures[0] = picture_at(0);
    stub.pictures[0].matrix = 2;
    stub.pictures[1] = picture_at(1);
    stub.pictures[1].matrix = 1;
    stub.pictures[1].range = PEN_VIDEO_RANGE_LIMITED;
    stub.pictures[2] = stub.pictures[0];
    stub.n = 3;
    PenVideoParams params = small;
    const uint32_t expected[3][2] = {
        {PEN_VIDEO_RANGE_FULL, 9}, {PEN_VIDEO_RANGE_LIMITED, 1}, {PEN_VIDEO_RANGE_UNKNOWN, 2}};
    for (int i = 0; i < 3; i++) {
        params.range = i < 2 ? PEN_VIDEO_RANGE_FULL : PEN_VIDEO_RANGE_UNKNOWN;
        params.matrix = i < 2 ? 9 : 0;
        CHECK_INT(pen__video_decoder_prepare(&d, &params, &err), PEN_OK);
        CHECK_INT(send_wanted(&d, i == 1, &err), PEN_OK);
        CHECK_INT(pen__video_decoder_drain(&d, &err), PEN_OK);
        CHECK_INT(pen__video_decoder_receive(&d, &p, &err), PEN_OK);
        CHECK_INT(p->range, expected[i][0]);
        CHECK_INT(p->matrix, expected[i][1]);
    }
    CHECK_INT(stub.closed, 0);
    pen__video_decoder_free(&d);
}

TEST(pictures_are_checked)
{
    PenVideoPicture wrong[] = {picture_at(0), picture_at(0), picture_at(0),
                               picture_at(0), picture_at(0), picture_at(0)};
    wrong[0].n_planes = 2;
    wrong[1].depth = 7;
    wrong[2].depth = 17;
    wrong[3].shift_x = 3;
    wrong[4].shift_y = 3;
    wrong[5].height = 3;
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        PenFrameDecoder d;
        PenError err;
        int n = 0;
        reset(&d);
        stub.pictures[0] = wrong[i];
        stub.n = 1;
        CHECK_INT(decode_two(&d, &n, &err), i == 5 ? PEN_E_DECODE : PEN_E_UNSUPPORTED);
        const PenVideoPicture *p = NULL;
        CHECK_INT(pen__video_decoder_receive(&d, &p, &err), PEN_E_INVALID);
        pen__video_decoder_free(&d);
    }
}

TEST(opened_again_only_when_needed)
{
    PenFrameDecoder d;
    PenError err;
    PenVideoParams other = small;
    reset(&d);
    CHECK_INT(pen__video_decoder_prepare(&d, &small, &err), PEN_OK);
    CHECK_INT(pen__video_decoder_prepare(&d, &small, &err), PEN_OK);
    CHECK_INT(stub.opened, 1);
    CHECK_INT(stub.flushed, 0); /* nothing to flush */
    CHECK_INT(send_wanted(&d, 0, &err), PEN_OK);
    CHECK_INT(pen__video_decoder_prepare(&d, &small, &err), PEN_OK);
    CHECK_INT(stub.flushed, 1);
    other.extra = "abd";
    CHECK_INT(pen__video_decoder_prepare(&d, &other, &err), PEN_OK);
    CHECK_INT(stub.opened, 2);
    CHECK_INT(stub.closed, 1);
    stub.fail = 1; /* after a failure it is not used again */
    CHECK_INT(send_wanted(&d, 0, &err), PEN_E_DECODE);
    CHECK_INT(send_wanted(&d, 0, &err), PEN_E_INVALID);
    CHECK_INT(pen__video_decoder_drain(&d, &err), PEN_E_INVALID);
    CHECK_INT(pen__video_decoder_prepare(&d, &other, &err), PEN_OK);
    CHECK_INT(stub.opened, 3);
    CHECK_INT(pen__video_decoder_drain(&d, &err), PEN_E_DECODE);
    other.codec = PEN_VIDEO_VP8;
    CHECK_INT(pen__video_decoder_prepare(&d, &other, &err), PEN_E_UNSUPPORTED);
    CHECK_INT(send_wanted(&d, 0, &err), PEN_E_INVALID);
    CHECK_INT(pen__video_decoder_prepare(&d, &small, &err), PEN_OK);
    pen__video_decoder_free(&d);
    CHECK_INT(stub.opened, stub.closed);
}

static uint64_t late_ns;

static uint64_t late_clock(void)
{
    return late_ns += UINT64_C(250) * 1000000000;
}

/* Every look at the clock takes 250 s, and the limit is 600 s. */
TEST(decoding_has_a_time_limit)
{
    PenFrameDecoder d;
    PenError err = {0};
    PenSys sys = pen__sys_real;
    PenPlayPacket packets[3] = {{.bytes = 1, .starts = true}, {.bytes = 1}, {.bytes = 1}};
    PenPlayList list = {.params = small, .data = (const uint8_t *)"x", .packets = packets, .n = 2};
    reset(&d);
    sys.now_ns = late_clock;
    pen__sys = &sys;
    int two = pen__video_play(&d, &list, NULL, NULL, &err);
    list.n = 3;
    int three = pen__video_play(&d, &list, NULL, NULL, &err);
    pen__sys = &pen__sys_real;
    pen__video_decoder_free(&d);
    CHECK_INT(two, PEN_OK);
    CHECK_INT(three, PEN_E_DECODE_TIMEOUT);
    CHECK(strstr(err.message, "expected the frames of a sample to be decoded within 600 s"));
}

static int sweep_body(PenError *err)
{
    PenFrameDecoder d;
    int n = 0;
    reset(&d);
    stub.pictures[0] = picture_at(0);
    stub.pictures[1] = picture_at(1);
    stub.n = 2;
    int r = decode_two(&d, &n, err);
    pen__video_decoder_free(&d);
    return r;
}

TEST(no_memory)
{
    int points = 0;
    fault_sweep(sweep_body, &points);
    CHECK(points > 1);
}

static void *ask(void *arg)
{
    const char **name = arg;
    PenError err;
    if (pen_video_available(name, &err) < 0)
        *name = NULL;
    return NULL;
}

/* All threads find the same plug-in, or none. */
static void ask_with_threads(bool expected)
{
    pthread_t threads[8];
    const char *names[8];
    for (int i = 0; i < 8; i++)
        CHECK_INT(pen__thread_start(&threads[i], ask, &names[i], NULL), PEN_OK);
    for (int i = 0; i < 8; i++) {
        pen__thread_join(threads[i]);
        CHECK_INT(names[i] != NULL, expected);
        CHECK(names[i] == names[0]);
    }
}

TEST(opened_by_many_threads)
{
    PenError err;
    CHECK_INT(pen_video_use("/no/such/library.so", &err), PEN_OK);
    ask_with_threads(false);
    CHECK_OK_SO_FAR();
#ifdef VIDEO_PLUGIN
    CHECK_INT(pen_video_use(VIDEO_PLUGIN, &err), PEN_OK);
    ask_with_threads(true);
    CHECK_OK_SO_FAR();
    CHECK_INT(pen_video_available(NULL, &err), PEN_OK);
    CHECK_INT(pen_video_use(NULL, &err), PEN_E_INVALID);
#else
    CHECK_INT(pen_video_use(NULL, &err), PEN_OK);
#endif
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(pictures_come_once);
    RUN(colors_of_the_container);
    RUN(pictures_are_checked);
    RUN(opened_again_only_when_needed);
    RUN(decoding_has_a_time_limit);
    RUN(no_memory);
    RUN(opened_by_many_threads);
    return TEST_END();
}
