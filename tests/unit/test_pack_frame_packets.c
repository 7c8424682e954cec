/* SPDX-License-Identifier: Apache-2.0 */
/* The packets and ranges of some frames of random videos, compared with the list of packets. */
#include <stdlib.h>

#include "pack/video/frames.h"
#include "test.h"
#include "video_table_help.h"

enum { VIDEOS = 200, MANY = PEN_MAX_PLAY_PACKETS + 100 };

typedef struct Listed {
    PenBuf table;
    PenVideoTable t;
    PenFramePackets f;
} Listed;

static int list(const PenVideoStream *stream, const PenVideoPacket *packets, uint32_t n,
                uint64_t bytes, Listed *ret, PenError *err)
{
    uint32_t n_frames;
    ret->table.bytes = 0;
    int r = pen__video_table_write(stream, packets, n, bytes, &ret->table, &n_frames, err);
    if (r == PEN_OK)
        ret->t = pen__video_table_open(ret->table.data, ret->table.bytes, bytes, n_frames);
    return r;
}

static void release(Listed *l)
{
    pen__frame_packets_trim(&l->f, 0);
    pen__buf_free(&l->table);
}

/* Where in the payload a packet of the list is. */
static uint64_t offset_of(const PenFramePackets *f, const PenPlayPacket *p)
{
    const PenVideoRange *r = (const PenVideoRange *)(const void *)f->ranges.data;
    for (size_t i = 0; i < f->ranges.bytes / sizeof *r; i++)
        if (p->at >= r[i].at && p->at + p->bytes <= r[i].at + (r[i].end - r[i].from))
            return r[i].from + (p->at - r[i].at);
    return UINT64_MAX;
}

/* Packets may overlap. */
static bool has_packet(const HelpVideo *v, const PenPlayPacket *p, uint64_t offset)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->packets[i].offset == offset && v->packets[i].bytes == p->bytes &&
            (v->packets[i].is_key || !p->starts))
            return true;
    return false;
}

static void check_packets(const HelpVideo *v, const Listed *l)
{
    PenPlayList play = pen__frame_packets_play(&l->f);
    int64_t start = 0;
    uint32_t wanted = 0, starts = 0;
    CHECK_INT(play.params.extra_bytes, v->stream.extra_bytes);
    for (size_t i = 0; i < play.n; i++) {
        const PenPlayPacket *p = &play.packets[i];
        CHECK(has_packet(v, p, offset_of(&l->f, p)));
        CHECK(i || p->starts);
        if (p->starts) {
            start = p->time;
            starts++;
        }
        wanted += p->flags & PEN_VIDEO_WANTED;
        CHECK_INT(p->flags & PEN_VIDEO_LEADING, p->time < start ? PEN_VIDEO_LEADING : 0);
        CHECK(!(p->flags & PEN_VIDEO_WANTED) || !(p->flags & PEN_VIDEO_LEADING));
        CHECK_OK_SO_FAR();
    }
    CHECK_INT(wanted, l->f.needs.n_frames);
    CHECK_INT(starts, l->f.needs.n_needs);
}

/* Complete runs, which do not overlap more than those of needs that go back. */
static void check_ranges(const HelpVideo *v, const Listed *l)
{
    const PenVideoRange *r = (const PenVideoRange *)(const void *)l->f.ranges.data;
    uint64_t at = 0;
    for (size_t i = 0; i < l->f.ranges.bytes / sizeof *r; i++) {
        CHECK_INT(r[i].from % PEN_VIDEO_RUN_BYTES, 0);
        CHECK(r[i].end % PEN_VIDEO_RUN_BYTES == 0 || r[i].end == v->payload_bytes);
        CHECK(r[i].from < r[i].end && r[i].end <= v->payload_bytes);
        CHECK_INT(r[i].at, at);
        at += r[i].end - r[i].from;
    }
    CHECK_INT(l->f.data_bytes, at);
    CHECK(pen__frame_packets_memory(&l->f) >= at + PEN_SLACK);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

TEST(packets_of_random_videos)
{
    static HelpVideo v;
    Listed l = {0};
    uint64_t state = 5;
    PenError err = {0};
    for (int i = 0; i < VIDEOS; i++) {
        uint32_t numbers[8], n = 1 + (uint32_t)help_random(&state, 8);
        help_video(&state, &v);
        if (list(&v.stream, v.packets, v.n, v.payload_bytes, &l, &err) < 0 || !l.t.n_frames)
            continue;
        for (uint32_t k = 0; k < n; k++)
            numbers[k] = (uint32_t)help_random(&state, l.t.n_frames);
        qsort(numbers, n, sizeof *numbers, by_number);
        CHECK_INT(pen__frame_packets_list(&l.t, numbers, n, &l.f, &err), PEN_OK);
        check_packets(&v, &l);
        check_ranges(&v, &l);
        CHECK_OK_SO_FAR();
        if (i % 10 == 0)
            pen__frame_packets_trim(&l.f, 64);
    }
    release(&l);
}

/* One key packet, and then frames of `bytes` each. */
static PenVideoPacket *make_many(uint32_t bytes, uint32_t key_every)
{
    PenVideoPacket *p = calloc(MANY, sizeof *p);
    for (uint32_t i = 0; p && i < MANY; i++)
        p[i] = (PenVideoPacket){
            .offset = (uint64_t)i * bytes, .bytes = bytes, .time = i, .is_key = i % key_every == 0};
    return p;
}

static const PenVideoStream stream = {.width = 64,
                                      .height = 48,
                                      .codec = PEN_VIDEO_H264,
                                      .container = PEN_CONTAINER_MP4,
                                      .orientation = 1,
                                      .matrix = 2,
                                      .depth = 8,
                                      .tick_num = 1,
                                      .tick_den = 25};

TEST(too_many_packets_are_refused)
{
    Listed l = {0};
    PenError err = {0};
    uint32_t last = PEN_MAX_PLAY_PACKETS, most = PEN_MAX_PLAY_PACKETS - 1;
    PenVideoPacket *p = make_many(2, MANY);
    CHECK(p);
    CHECK_INT(list(&stream, p, MANY, 2 * MANY, &l, &err), PEN_OK);
    CHECK_INT(pen__frame_packets_list(&l.t, &most, 1, &l.f, &err), PEN_OK);
    CHECK_INT(l.f.packets.bytes / sizeof(PenPlayPacket), PEN_MAX_PLAY_PACKETS);
    CHECK_INT(pen__frame_packets_list(&l.t, &last, 1, &l.f, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "at most 100000 packets to decode, found 100001"));
    free(p);
    release(&l);
}

TEST(frames_far_apart_are_several_reads)
{
    Listed l = {0};
    PenError err = {0};
    uint32_t numbers[] = {500, 600, 50000, 50001, 90000};
    PenVideoPacket *p = make_many(1000, 100);
    CHECK(p);
    CHECK_INT(list(&stream, p, MANY, UINT64_C(1000) * MANY, &l, &err), PEN_OK);
    CHECK_INT(pen__frame_packets_list(&l.t, numbers, 5, &l.f, &err), PEN_OK);
    CHECK_INT(l.f.needs.n_needs, 4);
    CHECK_INT(l.f.ranges.bytes / sizeof(PenVideoRange), 3); /* the first two are close */
    CHECK_INT(l.f.packets.bytes / sizeof(PenPlayPacket), 5);
    free(p);
    release(&l);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(packets_of_random_videos);
    RUN(too_many_packets_are_refused);
    RUN(frames_far_apart_are_several_reads);
    return TEST_END();
}
