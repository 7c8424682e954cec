/* SPDX-License-Identifier: Apache-2.0 */
/* Videos and parts of videos on their way into a block. The files are no real videos: their packets
 * are made here, and nothing decodes them. */
#include <stdlib.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/crc32c.h"
#include "ingest/prepare/prepared_video.h"
#include "load_help.h"
#include "video_table_help.h"

enum { CASES = TEST_SANITIZED ? 60 : 400, LARGE = 9 << 20 };

static uint8_t data[LARGE];
static const PenVideoSettings settings = {.seconds = 60};

static void write_file(uint64_t bytes)
{
    FILE *f = fopen(at("v.mp4"), "wb");
    CHECK(f);
    CHECK_INT(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

static PenVideoList list_of(HelpVideo *v)
{
    PenVideoList list = {
        .stream = v->stream, .packets = v->packets, .n = v->n, .file_bytes = v->payload_bytes};
    list.stream.container = PEN_CONTAINER_MP4;
    for (uint32_t i = 0; i < v->n; i++)
        list.n_shown += !v->packets[i].is_hidden;
    return list;
}

/* Frames of the entire video, by its own table. */
static bool open_table(const PenPreparedVideo *p, PenVideoTable *ret)
{
    PenError err = {0};
    return !pen__video_table_read(ret, p->table.data, p->table.bytes, p->video.bytes,
                                  p->video.n_frames) &&
           pen__video_table_check(ret, &err) == PEN_OK;
}

/* Where the bytes of a frame's packet are in the file. */
static void find_packet(const PenVideoTable *t, uint32_t frame, uint64_t shift, uint64_t ret[2])
{
    PenError err = {0};
    PenVideoNeeds needs = {0};
    PenVideoWalk walk;
    PenVideoPacket p;
    const PenVideoFrame *wanted;
    CHECK_INT(pen__video_need(t, &frame, 1, &needs, &err), PEN_OK);
    CHECK_INT(pen__video_walk(t, &needs, 0, &walk, &err), PEN_OK);
    while (pen__video_walk_next(&walk, &p, &wanted, &err) == 1)
        if (wanted) {
            ret[0] = p.offset + shift;
            ret[1] = p.bytes;
        }
    pen__video_needs_free(&needs);
}

static void check_part(HelpVideo *v, const PenVideoTable *all, PenVideoFrames frames)
{
    PenError err = {0};
    PenPreparedVideo p;
    PenVideoTable t;
    PenVideoNeeds needs = {0};
    PenVideoList list = list_of(v);
    CHECK_INT(pen__prepare_video(&settings, at("v.mp4"), &list, frames, &p, &err), PEN_OK);
    CHECK_INT(p.video.n_frames, PEN_MIN(frames.end, all->n_frames) - frames.first);
    CHECK(open_table(&p, &t));
    CHECK_INT(t.stream.container, PEN_CONTAINER_PART);
    CHECK_INT(p.video.source_bytes, v->payload_bytes);
    /* The payload is a range of the file: every frame's packet is where it was. */
    const uint8_t *found = memmem(data, v->payload_bytes, p.video.data, p.video.bytes);
    CHECK(found);
    uint64_t shift = (uint64_t)(found - data);
    int64_t start, first, here, there;
    CHECK_INT(pen__video_frame_ns(all, frames.first, &needs, &start, &err), PEN_OK);
    CHECK_INT(pen__video_frame_ns(&t, 0, &needs, &first, &err), PEN_OK);
    CHECK_INT(first, 0);
    for (uint32_t i = 0; i < p.video.n_frames; i += 3) {
        uint64_t in_part[2], in_file[2];
        find_packet(&t, i, shift, in_part);
        find_packet(all, frames.first + i, 0, in_file);
        CHECK_OK_SO_FAR();
        CHECK_INT(in_part[0], in_file[0]);
        CHECK_INT(in_part[1], in_file[1]);
        CHECK_INT(pen__video_frame_ns(&t, i, &needs, &here, &err), PEN_OK);
        CHECK_INT(pen__video_frame_ns(all, frames.first + i, &needs, &there, &err), PEN_OK);
        CHECK(llabs(there - start - here) <= 1); /* each is rounded */
    }
    pen__video_needs_free(&needs);
    pen__prepared_video_free(&p);
}

static void check_video(uint64_t *state)
{
    static HelpVideo v;
    PenError err = {0};
    PenPreparedVideo p;
    PenVideoTable all;
    help_video(state, &v);
    for (uint32_t i = 0; i < v.n; i++) /* what a listing of packets hides */
        v.packets[i].is_hidden |= v.packets[i].time < v.packets[0].time;
    PenVideoList list = list_of(&v);
    if (!list.n_shown)
        return;
    write_file(v.payload_bytes);
    CHECK_OK_SO_FAR();
    const PenVideoFrames every = {0, UINT32_MAX};
    CHECK_INT(pen__prepare_video(&settings, at("v.mp4"), &list, every, &p, &err), PEN_OK);
    CHECK(open_table(&p, &all));
    CHECK_INT(all.stream.container, PEN_CONTAINER_MP4);
    CHECK_INT(p.video.bytes, v.payload_bytes);
    CHECK_MEM(p.video.data, data, v.payload_bytes);
    for (int i = 0; i < 3 && all.n_frames > 1; i++) {
        PenVideoFrames frames = {(uint32_t)help_random(state, all.n_frames), 0};
        frames.end = frames.first + 1 + (uint32_t)help_random(state, all.n_frames - frames.first);
        if (frames.first == 0 && frames.end == all.n_frames)
            continue;
        check_part(&v, &all, frames);
        CHECK_OK_SO_FAR();
    }
    pen__prepared_video_free(&p);
}

TEST(parts_have_the_packets_of_their_frames)
{
    uint64_t state = 9;
    for (int i = 0; i < CASES; i++) {
        check_video(&state);
        CHECK_OK_SO_FAR();
    }
}

/* A key packet every 10 packets, each of 100 bytes; the file is larger than what stays in memory.
 */
static void make_large(HelpVideo *v)
{
    *v = (HelpVideo){.n = 100, .payload_bytes = LARGE};
    v->stream = (PenVideoStream){.width = 8,
                                 .height = 8,
                                 .codec = PEN_VIDEO_VP9,
                                 .orientation = 1,
                                 .depth = 8,
                                 .tick_num = 1,
                                 .tick_den = 30};
    for (uint32_t i = 0; i < v->n; i++)
        v->packets[i] =
            (PenVideoPacket){.offset = 90000 * i, .bytes = 100, .time = i, .is_key = i % 10 == 0};
}

TEST(large_files_are_read_when_they_are_written)
{
    static HelpVideo v;
    PenError err = {0};
    PenPreparedVideo p;
    make_large(&v);
    write_file(LARGE);
    CHECK_OK_SO_FAR();
    PenVideoList list = list_of(&v);
    CHECK_INT(
        pen__prepare_video(&settings, at("v.mp4"), &list, (PenVideoFrames){25, 100}, &p, &err),
        PEN_OK);
    CHECK_INT(p.video.n_frames, 75);
    CHECK(!p.video.data && p.video.source);
    CHECK_INT(p.video.source_offset, 20 * 90000);
    CHECK_INT(p.video.bytes, 79 * 90000 + 100);
    CHECK_INT(p.crcs.bytes, 4 * pen__video_runs(p.video.bytes));
    for (uint32_t i = 0; i < pen__video_runs(p.video.bytes); i++) {
        uint64_t from = (uint64_t)i * 65536;
        uint32_t crc = pen__crc32c(0, data + p.video.source_offset + from,
                                   (size_t)PEN_MIN(p.video.bytes - from, UINT64_C(65536)));
        CHECK_MEM(p.crcs.data + 4 * (size_t)i, &crc, 4);
    }
    pen__prepared_video_free(&p);
}

TEST(errors)
{
    static HelpVideo v;
    PenError err = {0};
    PenPreparedVideo p;
    make_large(&v);
    write_file(LARGE);
    CHECK_OK_SO_FAR();
    PenVideoList list = list_of(&v);
    const PenVideoFrames every = {0, UINT32_MAX};
    CHECK_INT(
        pen__prepare_video(&settings, at("v.mp4"), &list, (PenVideoFrames){100, 101}, &p, &err),
        PEN_E_NOT_FOUND);
    CHECK(strstr(err.message, "which has 100"));
    CHECK_INT(pen__prepare_video(&settings, at("v.mp4"), &list, (PenVideoFrames){5, 5}, &p, &err),
              PEN_E_NOT_FOUND);
    CHECK_INT(pen__prepare_video(&settings, at("none.mp4"), &list, every, &p, &err),
              PEN_E_NOT_FOUND);
    const atomic_bool cancel = true;
    const PenVideoSettings cancelled = {.seconds = 60, .cancel = &cancel};
    CHECK_INT(pen__prepare_video(&cancelled, at("v.mp4"), &list, every, &p, &err), PEN_E_CANCELLED);
    CHECK_INT(truncate(at("v.mp4"), LARGE - 1), 0);
    CHECK_INT(pen__prepare_video(&settings, at("v.mp4"), &list, every, &p, &err), PEN_E_CHANGED);
    v.packets[3].time = 4;
    CHECK_INT(pen__prepare_video(&settings, at("v.mp4"), &list, every, &p, &err), PEN_E_DECODE);
}

int main(int argc, char **argv)
{
    uint64_t state = 8;
    TEST_START(argc, argv);
    help_begin();
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)help_random(&state, 256);
    RUN(parts_have_the_packets_of_their_frames);
    RUN(large_files_are_read_when_they_are_written);
    RUN(errors);
    help_end();
    return TEST_END();
}
