/* SPDX-License-Identifier: Apache-2.0 */
/* Video tables: parsing the header and the groups, and walking the packets. */
#include "pack/format/video_table.h"

#include "base/attr.h"
#include "base/bytes.h"

uint32_t pen__video_runs(uint64_t payload_bytes)
{
    return (uint32_t)(payload_bytes / PEN_VIDEO_RUN_BYTES +
                      (payload_bytes % PEN_VIDEO_RUN_BYTES != 0));
}

/* ---- header and groups ----------------------------------------------------------------------- */

PenVideoGroup pen__video_group(const PenVideoTable *t, uint32_t group)
{
    const uint8_t *g = t->groups + (size_t)group * PEN_VIDEO_GROUP_BYTES;
    return (PenVideoGroup){.packet = pen__load32(g),
                           .code = pen__load32(g + 4),
                           .offset = pen__load64(g + 8),
                           .time = (int64_t)pen__load64(g + 16),
                           .frames = pen__load32(g + 24)};
}

static PenVideoStream load_stream(const uint8_t *h)
{
    return (PenVideoStream){.codec = h[2],
                            .container = h[3],
                            .width = pen__load32(h + 4),
                            .height = pen__load32(h + 8),
                            .orientation = h[12],
                            .range = h[13],
                            .matrix = h[14],
                            .depth = h[15],
                            .tick_num = pen__load32(h + 16),
                            .tick_den = pen__load32(h + 20),
                            .extra_bytes = pen__load32(h + 44)};
}

/* The parts of a table lie one after another; what is left are the coded packets. */
static uint64_t fixed_bytes(const PenVideoTable *t)
{
    return PEN_VIDEO_HEADER_BYTES + 4 * (uint64_t)t->n_runs +
           (uint64_t)PEN_VIDEO_GROUP_BYTES * t->n_groups + t->stream.extra_bytes;
}

static PenVideoTable load_header(const uint8_t *data, uint64_t payload_bytes, uint32_t n_frames)
{
    return (PenVideoTable){.stream = load_stream(data),
                           .first_ns = (int64_t)pen__load64(data + 24),
                           .payload_bytes = payload_bytes,
                           .n_frames = n_frames,
                           .n_packets = pen__load32(data + 32),
                           .n_groups = pen__load32(data + 36),
                           .n_runs = pen__load32(data + 40)};
}

static void find_parts(PenVideoTable *t, const uint8_t *data, uint64_t bytes)
{
    t->sums = data + PEN_VIDEO_HEADER_BYTES;
    t->groups = t->sums + 4 * (size_t)t->n_runs;
    t->stream.extra = t->groups + (size_t)PEN_VIDEO_GROUP_BYTES * t->n_groups;
    t->coded = t->stream.extra + t->stream.extra_bytes;
    t->coded_bytes = (size_t)(bytes - fixed_bytes(t));
}

PenVideoTable pen__video_table_open(const uint8_t *data, uint64_t bytes, uint64_t payload_bytes,
                                    uint32_t n_frames)
{
    PenVideoTable t = load_header(data, payload_bytes, n_frames);
    find_parts(&t, data, bytes);
    return t;
}

static const char *check_stream(const PenVideoStream *s)
{
    if (s->codec < 1 || s->codec > PEN_VIDEO_LAST_CODEC || s->container > PEN_CONTAINER_LAST)
        return "unknown codec or container of a video";
    if (s->width < 1 || s->width > PEN_MAX_VIDEO_SIDE || s->height < 1 ||
        s->height > PEN_MAX_VIDEO_SIDE || s->orientation < 1 || s->orientation > 8)
        return "size or orientation of a video out of range";
    if (s->range > 2 || (s->depth != 8 && s->depth != 10 && s->depth != 12))
        return "color range or depth of a video out of range";
    if (!s->tick_num || !s->tick_den || pen__gcd(s->tick_num, s->tick_den) != 1)
        return "ticks of a video are not in lowest terms";
    return NULL;
}

static const char *check_counts(const PenVideoTable *t, uint64_t bytes)
{
    if (t->n_packets < 1 || t->n_packets > PEN_MAX_VIDEO_PACKETS || t->n_frames < 1 ||
        t->n_frames > t->n_packets)
        return "number of packets of a video out of range";
    if (t->n_groups < 1 || t->n_groups > (t->n_packets - 1) / PEN_VIDEO_GROUP_PACKETS + 1)
        return "number of groups does not match the packets of a video";
    if (t->n_runs != pen__video_runs(t->payload_bytes))
        return "number of checksums does not match the payload of a video";
    if (t->stream.extra_bytes > PEN_MAX_VIDEO_EXTRA || fixed_bytes(t) > bytes)
        return "video table too short";
    return NULL;
}

static bool is_time(int64_t time)
{
    return time >= -PEN_MAX_VIDEO_TICKS && time <= PEN_MAX_VIDEO_TICKS;
}

static const char *check_groups(const PenVideoTable *t)
{
    PenVideoGroup before = {0};
    for (uint32_t i = 0; i < t->n_groups; i++) {
        PenVideoGroup g = pen__video_group(t, i);
        if (pen__load32(t->groups + (size_t)i * PEN_VIDEO_GROUP_BYTES + 28))
            return "group of a video is not valid";
        if (i == 0 ? g.packet || g.code || g.frames || g.time > 0
                   : g.packet < before.packet + PEN_VIDEO_GROUP_PACKETS || g.code <= before.code ||
                         g.frames < before.frames || g.time <= before.time)
            return "group of a video does not follow the one before it";
        if (g.packet >= t->n_packets || g.code >= t->coded_bytes || g.frames > t->n_frames ||
            g.offset >= t->payload_bytes || !is_time(g.time))
            return "group of a video out of range";
        before = g;
    }
    return NULL;
}

const char *pen__video_table_read(PenVideoTable *ret, const uint8_t *data, uint64_t bytes,
                                  uint64_t payload_bytes, uint32_t n_frames)
{
    if (bytes < PEN_VIDEO_HEADER_BYTES)
        return "video table too short";
    if (pen__load16(data) != PEN_VIDEO_TABLE_VERSION)
        return "unknown version of a video table";
    if (bytes > PEN_MAX_VIDEO_TABLE || payload_bytes < 1 || payload_bytes > PEN_MAX_VIDEO_BYTES)
        return "video or its table is too large";
    PenVideoTable t = load_header(data, payload_bytes, n_frames);
    const char *wrong = check_stream(&t.stream);
    if (!wrong)
        wrong = check_counts(&t, bytes);
    if (wrong)
        return wrong;
    find_parts(&t, data, bytes);
    wrong = check_groups(&t);
    if (!wrong)
        *ret = t;
    return wrong;
}

PenVideoRun pen__video_table_run(const PenVideoTable *t, uint32_t run)
{
    uint64_t offset = (uint64_t)run * PEN_VIDEO_RUN_BYTES, left = t->payload_bytes - offset;
    return (PenVideoRun){offset, (uint32_t)PEN_MIN(left, (uint64_t)PEN_VIDEO_RUN_BYTES),
                         pen__load32(t->sums + 4 * (size_t)run)};
}

uint64_t pen__video_source(const PenVideoTable *t, uint64_t source_bytes)
{
    return t->stream.container == PEN_CONTAINER_PART ? t->payload_bytes : source_bytes;
}

void pen__video_shown_size(const PenVideoTable *t, uint32_t ret[2])
{
    bool is_turned = t->stream.orientation >= 5;
    ret[0] = is_turned ? t->stream.height : t->stream.width;
    ret[1] = is_turned ? t->stream.width : t->stream.height;
}

/* ---- packets --------------------------------------------------------------------------------- */

/* The shortest form only; false: it is another one, or goes over the end. */
static bool take_number(PenVideoCursor *c, uint64_t *ret)
{
    const PenVideoTable *t = c->table;
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && c->at < t->coded_bytes; shift += 7) {
        uint8_t byte = t->coded[c->at++];
        number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte & 0x80)
            continue;
        *ret = number;
        return (byte || !shift) && (shift < 63 || byte == 1);
    }
    return false;
}

static bool take_signed(PenVideoCursor *c, int64_t *ret)
{
    uint64_t number;
    if (!take_number(c, &number))
        return false;
    *ret = (int64_t)(number >> 1 ^ (0 - (number & 1)));
    return true;
}

PenVideoCursor pen__video_seek(const PenVideoTable *t, uint32_t group)
{
    PenVideoGroup g = pen__video_group(t, group);
    return (PenVideoCursor){
        .table = t, .packet = g.packet, .next_group = group, .group_end = g.packet, .at = g.code};
}

static const char *enter_group(PenVideoCursor *c)
{
    const PenVideoTable *t = c->table;
    if (c->next_group >= t->n_groups)
        return "packet of a video out of range";
    PenVideoGroup g = pen__video_group(t, c->next_group++);
    if (g.code != c->at)
        return "packets of a group do not end where the next ones begin";
    c->group_end =
        c->next_group < t->n_groups ? pen__video_group(t, c->next_group).packet : t->n_packets;
    c->offset = g.offset;
    c->time = g.time;
    return NULL;
}

static const char *take_offset(PenVideoCursor *c, bool has_gap, uint64_t *ret)
{
    int64_t gap = 0;
    if (has_gap && (!take_signed(c, &gap) || !gap))
        return "gap before a packet of a video is not valid";
    if (gap < 0 ? c->offset < 0 - (uint64_t)gap
                : (uint64_t)gap > c->table->payload_bytes - c->offset)
        return "packet of a video outside of its payload";
    *ret = c->offset + (uint64_t)gap;
    return NULL;
}

const char *pen__video_next(PenVideoCursor *c, PenVideoPacket *ret)
{
    const PenVideoTable *t = c->table;
    bool is_first = c->packet == c->group_end;
    const char *wrong = is_first ? enter_group(c) : NULL;
    uint64_t head, offset = c->offset;
    int64_t later = 0;
    if (wrong)
        return wrong;
    if (!take_number(c, &head) || head >> 3 < 1 || head >> 3 > PEN_MAX_PACKET_BYTES)
        return "size of a packet of a video is not valid";
    PenVideoPacket p = {.bytes = (uint32_t)(head >> 3),
                        .is_key = head & PEN_PACKET_KEY,
                        .is_hidden = head & PEN_PACKET_HIDDEN};
    bool has_gap = head & PEN_PACKET_GAP;
    if (is_first && (has_gap || !p.is_key))
        return "group of a video does not start with a key packet";
    wrong = is_first ? NULL : take_offset(c, has_gap, &offset);
    if (wrong)
        return wrong;
    if (!pen__range_ok(offset, p.bytes, t->payload_bytes))
        return "packet of a video outside of its payload";
    if (!is_first && (!take_signed(c, &later) || __builtin_add_overflow(c->time, later, &c->time) ||
                      !is_time(c->time)))
        return "time of a packet of a video is not valid";
    p.offset = offset;
    p.time = c->time;
    c->offset = offset + p.bytes;
    c->packet++;
    *ret = p;
    return NULL;
}
