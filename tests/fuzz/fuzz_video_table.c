/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of videos. An input is the size of the payload, u32, the number of frames, u32, and a
 * table; or, if the size is 0, packets for the writer. What a reader accepts stays in the payload,
 * and what passes the full check is the table that a writer makes from its packets. */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "help.h"
#include "pack/format/video_table.h"

enum { ARGUMENTS = 8, PACKET = 12, WANTED = 5 };

static PenVideoPacket *read_packets(const PenVideoTable *t)
{
    PenVideoPacket *packets = malloc(t->n_packets * sizeof *packets);
    PenVideoCursor c = pen__video_seek(t, 0);
    REQUIRE(packets);
    for (uint32_t i = 0; i < t->n_packets; i++) {
        REQUIRE(!pen__video_next(&c, &packets[i]));
        REQUIRE(pen__range_ok(packets[i].offset, packets[i].bytes, t->payload_bytes));
    }
    return packets;
}

static void require_one_form(const PenVideoTable *t, const uint8_t *table, size_t bytes)
{
    PenError err;
    PenBuf again = {0};
    uint32_t n_frames = 0;
    PenVideoPacket *packets = read_packets(t);
    MUST(pen__video_table_write(&t->stream, packets, t->n_packets, t->payload_bytes, &again,
                                &n_frames, &err));
    REQUIRE(n_frames == t->n_frames && again.bytes == bytes);
    memcpy(again.data + 24, table + 24, 8); /* first_time, and the checksums */
    memcpy(again.data + PEN_VIDEO_HEADER_BYTES, t->sums, 4 * (size_t)t->n_runs);
    REQUIRE(memcmp(again.data, table, bytes) == 0);
    pen__buf_free(&again);
    free(packets);
}

static void require_needs(const PenVideoTable *t, const PenVideoNeeds *needs)
{
    PenError err;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < needs->n_needs; i++) {
        const PenVideoNeed *need = &needs->needs[i];
        PenVideoWalk walk;
        PenVideoPacket p;
        const PenVideoFrame *frame;
        bool is_first = true;
        REQUIRE(pen__range_ok(need->offset, need->bytes, t->payload_bytes));
        MUST(pen__video_walk(t, needs, i, &walk, &err));
        while (CALL(pen__video_walk_next(&walk, &p, &frame, &err)) == 1) {
            REQUIRE(p.is_key || !is_first);
            REQUIRE(p.offset >= need->offset && p.offset + p.bytes <= need->offset + need->bytes);
            REQUIRE(!frame || (frame->time == p.time && !p.is_hidden));
            seen += frame != NULL;
            is_first = false;
        }
        REQUIRE(walk.cursor.packet == need->end);
    }
    REQUIRE(seen == needs->n_frames);
}

static void try_frames(const PenVideoTable *t, bool is_right)
{
    PenError err;
    PenVideoNeeds needs = {0};
    uint32_t frames[WANTED];
    int64_t *times = malloc(t->n_frames * sizeof *times);
    REQUIRE(times);
    for (uint32_t i = 0; i < WANTED; i++)
        frames[i] = (uint32_t)((uint64_t)(t->n_frames - 1) * i / (WANTED - 1));
    bool found = GOES(pen__video_need(t, frames, WANTED, &needs, &err));
    REQUIRE(found || !is_right);
    if (found)
        require_needs(t, &needs);
    found = GOES(pen__video_all_ns(t, &needs, times, &err));
    REQUIRE(found || !is_right);
    for (uint32_t i = 1; i < t->n_frames && found; i++)
        REQUIRE(times[i] >= times[i - 1]);
    pen__video_needs_free(&needs);
    free(times);
}

static void try_table(const uint8_t *data, size_t bytes, uint64_t payload_bytes, uint32_t n_frames)
{
    PenError err;
    PenVideoTable t;
    uint8_t *table = copy_of(data, bytes);
    if (!pen__video_table_read(&t, table, bytes, payload_bytes, n_frames)) {
        bool is_right = GOES(pen__video_table_check(&t, &err));
        try_frames(&t, is_right);
        if (is_right)
            require_one_form(&t, table, bytes);
    }
    free(table);
}

/* Whatever the packets are, the table of them can be read. */
static void try_packets(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenBuf table = {0};
    PenVideoStream stream = {.width = 1,
                             .height = 1,
                             .codec = 1,
                             .orientation = 1,
                             .depth = 8,
                             .tick_num = 1,
                             .tick_den = 25};
    uint32_t n = (uint32_t)PEN_MIN(bytes / PACKET, 2000u), n_frames = 0;
    uint64_t payload = 1 << 20;
    PenVideoPacket *packets = malloc((n + 1) * sizeof *packets);
    REQUIRE(packets);
    for (uint32_t i = 0; i < n; i++, data += PACKET)
        packets[i] = (PenVideoPacket){.offset = pen__load32(data) & 0xFFFFF,
                                      .bytes = pen__load16(data + 4),
                                      .time = (int32_t)pen__load32(data + 6),
                                      .is_key = data[10] & 1,
                                      .is_hidden = data[10] & 2};
    if (GOES(pen__video_table_write(&stream, packets, n, payload, &table, &n_frames, &err))) {
        PenVideoTable t;
        REQUIRE(!pen__video_table_read(&t, table.data, table.bytes, payload, n_frames));
        MUST(pen__video_table_check(&t, &err));
        try_frames(&t, true);
    }
    pen__buf_free(&table);
    free(packets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < ARGUMENTS)
        return 0;
    uint32_t payload_bytes = pen__load32(data), n_frames = pen__load32(data + 4);
    if (payload_bytes)
        try_table(data + ARGUMENTS, bytes - ARGUMENTS, payload_bytes, n_frames);
    else
        try_packets(data + ARGUMENTS, bytes - ARGUMENTS);
    return 0;
}
