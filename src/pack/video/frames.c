/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/video/frames.h"

#include <inttypes.h>

#include "base/attr.h"
#include "base/bytes.h"

#define WHERE "pack/video"

/* Ranges with no more than this between them are read together. */
enum { JOIN_BYTES = 64 << 10 };

static int no_memory(PenError *reterr)
{
    return pen__fail_memory(reterr, WHERE, "frames of a video");
}

/* ---- what is read ---- */

static PenVideoRange range_of(const PenVideoTable *t, const PenVideoNeed *need)
{
    uint64_t run = PEN_VIDEO_RUN_BYTES;
    uint64_t end = (need->offset + need->bytes + run - 1) / run * run;
    return (PenVideoRange){.from = need->offset / run * run, .end = PEN_MIN(end, t->payload_bytes)};
}

/* Packets usually lie in decode order, but need not. */
static bool joins(const PenVideoRange *a, const PenVideoRange *b)
{
    return b->from <= a->end + JOIN_BYTES && a->from <= b->end + JOIN_BYTES;
}

static int list_ranges(const PenVideoTable *t, PenFramePackets *f, PenError *reterr)
{
    f->ranges.bytes = 0;
    for (uint32_t i = 0; i < f->needs.n_needs; i++) {
        PenVideoRange next = range_of(t, &f->needs.needs[i]);
        PenVideoRange *last = NULL;
        if (f->ranges.bytes)
            last = (PenVideoRange *)(void *)(f->ranges.data + f->ranges.bytes) - 1;
        if (last && joins(last, &next)) {
            last->from = PEN_MIN(last->from, next.from);
            last->end = PEN_MAX(last->end, next.end);
        } else if (pen__buf_add(&f->ranges, &next, sizeof next) < 0) {
            return no_memory(reterr);
        }
    }
    return PEN_OK;
}

static int lay_out(PenFramePackets *f, PenError *reterr)
{
    PenVideoRange *ranges = (PenVideoRange *)(void *)f->ranges.data;
    f->data_bytes = 0;
    for (size_t i = 0; i < f->ranges.bytes / sizeof *ranges; i++) {
        ranges[i].at = (size_t)f->data_bytes;
        if (pen__add_over(f->data_bytes, ranges[i].end - ranges[i].from, &f->data_bytes) ||
            f->data_bytes > SIZE_MAX / 4)
            return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                             "frames of a video: expected at most %zu bytes, found more",
                             SIZE_MAX / 4);
    }
    return PEN_OK;
}

/* ---- what is decoded ---- */

/* The one that holds a need. */
static const PenVideoRange *find_range(const PenFramePackets *f, const PenVideoNeed *need)
{
    const PenVideoRange *r = (const PenVideoRange *)(const void *)f->ranges.data;
    while (r->from > need->offset || need->offset + need->bytes > r->end)
        r++;
    return r;
}

static int list_need(const PenVideoTable *t, PenFramePackets *f, uint32_t i, PenError *reterr)
{
    PenVideoWalk walk;
    PenVideoPacket packet;
    const PenVideoFrame *frame;
    const PenVideoRange *range = find_range(f, &f->needs.needs[i]);
    int64_t start = 0; /* time of the key packet */
    bool starts = true;
    int r = pen__video_walk(t, &f->needs, i, &walk, reterr);
    if (r < 0)
        return r;
    while ((r = pen__video_walk_next(&walk, &packet, &frame, reterr)) == 1) {
        if (starts)
            start = packet.time;
        PenPlayPacket p = {.at = range->at + (size_t)(packet.offset - range->from),
                           .bytes = packet.bytes,
                           .flags = (frame ? PEN_VIDEO_WANTED : 0u) |
                                    (packet.time < start ? PEN_VIDEO_LEADING : 0u),
                           .time = packet.time,
                           .starts = starts};
        starts = false;
        if (pen__buf_add(&f->packets, &p, sizeof p) < 0)
            return no_memory(reterr);
    }
    return r;
}

static int list_packets(const PenVideoTable *t, PenFramePackets *f, PenError *reterr)
{
    uint64_t n = 0;
    int r = PEN_OK;
    for (uint32_t i = 0; i < f->needs.n_needs; i++)
        n += f->needs.needs[i].end - f->needs.needs[i].first;
    if (n > PEN_MAX_PLAY_PACKETS)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "frames of a video: expected at most %d packets to decode, found %" PRIu64
                         "; choose frames that are closer together, or encode it with more key "
                         "frames",
                         PEN_MAX_PLAY_PACKETS, n);
    f->packets.bytes = 0;
    for (uint32_t i = 0; i < f->needs.n_needs && r == PEN_OK; i++)
        r = list_need(t, f, i, reterr);
    return r;
}

static int copy_stream(const PenVideoTable *t, PenFramePackets *f, PenError *reterr)
{
    f->extra.bytes = 0;
    f->stream = t->stream;
    if (pen__buf_add(&f->extra, t->stream.extra, t->stream.extra_bytes) < 0)
        return no_memory(reterr);
    f->stream.extra = f->extra.data;
    return PEN_OK;
}

int pen__frame_packets_list(const PenVideoTable *t, const uint32_t *numbers, uint32_t n,
                            PenFramePackets *ret, PenError *reterr)
{
    int r = copy_stream(t, ret, reterr);
    if (r == PEN_OK)
        r = pen__video_need(t, numbers, n, &ret->needs, reterr);
    if (r == PEN_OK)
        r = list_ranges(t, ret, reterr);
    if (r == PEN_OK)
        r = lay_out(ret, reterr);
    return r == PEN_OK ? list_packets(t, ret, reterr) : r;
}

/* ---- bytes ---- */

uint64_t pen__frame_packets_memory(const PenFramePackets *f)
{
    const PenVideoNeeds *n = &f->needs;
    return f->data_bytes + PEN_SLACK + f->extra.bytes + f->ranges.bytes + f->packets.bytes +
           n->need_memory.bytes + n->frame_memory.bytes + n->shown.bytes + n->keys.bytes;
}

int pen__frame_packets_read(const PenSpot *at, PenFramePackets *f, PenError *reterr)
{
    const PenVideoRange *ranges = (const PenVideoRange *)(const void *)f->ranges.data;
    uint64_t from;
    int r = PEN_OK;
    f->data.bytes = 0;
    if (pen__buf_reserve(&f->data, (size_t)f->data_bytes + PEN_SLACK) < 0)
        return no_memory(reterr);
    for (size_t i = 0; i < f->ranges.bytes / sizeof *ranges && r == PEN_OK; i++)
        r = pen__pack_read_video(at, ranges[i].from, ranges[i].end, &f->data, &from, reterr);
    return r;
}

PenPlayList pen__frame_packets_play(const PenFramePackets *f)
{
    return (PenPlayList){.params = {.codec = f->stream.codec,
                                    .width = f->stream.width,
                                    .height = f->stream.height,
                                    .range = f->stream.range,
                                    .matrix = f->stream.matrix,
                                    .extra = f->stream.extra,
                                    .extra_bytes = f->stream.extra_bytes},
                         .data = f->data.data,
                         .packets = (const PenPlayPacket *)(const void *)f->packets.data,
                         .n = f->packets.bytes / sizeof(PenPlayPacket)};
}

void pen__frame_packets_trim(PenFramePackets *f, size_t bytes)
{
    PenVideoNeeds *n = &f->needs;
    PenBuf *all[] = {&f->extra, &f->ranges, &f->packets, &f->data};
    for (size_t i = 0; i < PEN_LEN(all); i++)
        pen__buf_trim(all[i], bytes);
    if (n->need_memory.cap > bytes || n->frame_memory.cap > bytes || n->shown.cap > bytes ||
        n->keys.cap > bytes || !bytes)
        pen__video_needs_free(n);
}
