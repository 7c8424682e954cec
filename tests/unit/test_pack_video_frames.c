/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of the packets that are decoded for one sample. Other tests of pack/video are in
 * test_pack_video.c. */
#include "pack/video/frames.h"

#include <stdlib.h>

#include "test.h"

enum { PACKETS = PEN_MAX_PLAY_PACKETS + 1 };

/* One key packet, and packets of one byte after it. */
static void make_table(PenBuf *out, PenVideoTable *ret)
{
    PenVideoPacket *packets = calloc(PACKETS, sizeof *packets);
    PenVideoStream stream = {.width = 16,
                             .height = 16,
                             .codec = PEN_VIDEO_H264,
                             .container = PEN_CONTAINER_MP4,
                             .orientation = 1,
                             .depth = 8,
                             .tick_num = 1,
                             .tick_den = 25};
    uint32_t n_frames = 0;
    PenError err;
    CHECK(packets);
    for (uint32_t i = 0; i < PACKETS; i++)
        packets[i] = (PenVideoPacket){.offset = i, .time = i, .bytes = 1, .is_key = i == 0};
    int r = pen__video_table_write(&stream, packets, PACKETS, PACKETS, out, &n_frames, &err);
    free(packets);
    CHECK_INT(r, PEN_OK);
    CHECK_STR(pen__video_table_read(ret, out->data, out->bytes, PACKETS, n_frames) ? "wrong" : "",
              "");
}

TEST(packets_to_decode_are_limited)
{
    PenBuf out = {0};
    PenVideoTable table;
    PenFramePackets frames = {.data_bytes = 0};
    PenError err;
    uint32_t number = PACKETS - 2;
    make_table(&out, &table);
    CHECK_OK_SO_FAR();
    CHECK_INT(pen__frame_packets_list(&table, &number, 1, &frames, &err), PEN_OK);
    CHECK_INT(pen__frame_packets_play(&frames).n, PEN_MAX_PLAY_PACKETS);
    number++;
    CHECK_INT(pen__frame_packets_list(&table, &number, 1, &frames, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "expected at most 100000 packets to decode, found 100001"));
    pen__frame_packets_trim(&frames, 0);
    pen__buf_free(&out);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(packets_to_decode_are_limited);
    return TEST_END();
}
