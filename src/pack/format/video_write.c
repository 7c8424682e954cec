/* SPDX-License-Identifier: Apache-2.0 */
/* Making the table of a video from its packets. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "pack/format/video_table.h"

#define WHERE "pack/video"

/* A video whose table is being made. */
typedef struct Making {
    const PenVideoPacket *given;
    uint32_t n;
    PenVideoPacket *packets; /* their flags as they are stored, and times from the first frame */
    int64_t *shown;          /* times of the frames, in order */
    uint32_t n_shown;
    int64_t *least_after; /* of each packet: the least time of frames from it on */
    uint64_t tick;        /* what all times are a multiple of */
    int64_t first;        /* time of the first frame */
    PenVideoStream stream;
} Making;

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* ---- what the packets are -------------------------------------------------------------------- */

static int check_packets(const Making *m, uint64_t payload_bytes, PenError *reterr)
{
    if (m->n < 1 || m->n > PEN_MAX_VIDEO_PACKETS)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "a video of %u packets: expected 1 to %u packets", m->n,
                         PEN_MAX_VIDEO_PACKETS);
    if (payload_bytes > PEN_MAX_VIDEO_BYTES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "a video of %" PRIu64 " bytes: expected at most 2^40", payload_bytes);
    if (!m->given[0].is_key)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         "the first packet of a video is not a key packet");
    for (uint32_t i = 0; i < m->n; i++) {
        const PenVideoPacket *p = &m->given[i];
        if (!p->bytes || p->bytes > PEN_MAX_PACKET_BYTES ||
            !pen__range_ok(p->offset, p->bytes, payload_bytes))
            return pen__fail(reterr, PEN_E_DECODE, WHERE,
                             "packet %u of a video: %u bytes at %" PRIu64
                             ": expected 1 or more bytes of its file of %" PRIu64 " bytes",
                             i, p->bytes, p->offset, payload_bytes);
    }
    return PEN_OK;
}

static int check_stream(const PenVideoStream *s, PenError *reterr)
{
    if (s->codec < 1 || s->codec > PEN_VIDEO_LAST_CODEC || s->container > PEN_CONTAINER_LAST ||
        s->orientation < 1 || s->orientation > 8 || s->range > 2 || !s->tick_num || !s->tick_den)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "codec %u, container %u, orientation %u, range %u, time base %u/%u of a "
                         "video: out of range",
                         s->codec, s->container, s->orientation, s->range, s->tick_num,
                         s->tick_den);
    if (s->depth != 8 && s->depth != 10 && s->depth != 12)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         "a video of %u bits per component: expected 8, 10 or 12", s->depth);
    if (s->width < 1 || s->height < 1 || s->width > PEN_MAX_VIDEO_SIDE ||
        s->height > PEN_MAX_VIDEO_SIDE)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "a video of %u x %u pixels: expected 1 to %u on each side", s->width,
                         s->height, PEN_MAX_VIDEO_SIDE);
    if (s->extra_bytes > PEN_MAX_VIDEO_EXTRA)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "a video with %u bytes of codec configuration: expected at most %u",
                         s->extra_bytes, PEN_MAX_VIDEO_EXTRA);
    return PEN_OK;
}

/* What is shown before the first key packet cannot be decoded. */
static int find_frames(Making *m, PenError *reterr)
{
    for (uint32_t i = 0; i < m->n; i++) {
        m->packets[i] = m->given[i];
        m->packets[i].is_hidden |= m->given[i].time < m->given[0].time;
        if (!m->packets[i].is_hidden)
            m->shown[m->n_shown++] = m->packets[i].time;
    }
    if (!m->n_shown)
        return pen__fail(reterr, PEN_E_DECODE, WHERE, "a video without frames");
    qsort(m->shown, m->n_shown, sizeof *m->shown, compare_times);
    m->first = m->shown[0];
    for (uint32_t i = 1; i < m->n_shown; i++)
        if (m->shown[i] == m->shown[i - 1])
            return pen__fail(reterr, PEN_E_DECODE, WHERE,
                             "two frames of a video have the same time, %" PRId64, m->shown[i]);
    return PEN_OK;
}

/* Times count from the first frame from here on, in units that all of them are multiples of. */
static int find_tick(Making *m, PenError *reterr)
{
    for (uint32_t i = 0; i < m->n; i++) {
        int64_t *time = &m->packets[i].time;
        if (__builtin_sub_overflow(*time, m->first, time) || *time < -PEN_MAX_VIDEO_TICKS ||
            *time > PEN_MAX_VIDEO_TICKS)
            return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                             "packet %u of a video: its time is too far from that of the first "
                             "frame",
                             i);
        m->tick = pen__gcd((uint64_t)(*time < 0 ? -*time : *time), m->tick);
    }
    m->tick = m->tick ? m->tick : 1;
    uint64_t den = m->stream.tick_den, num;
    uint64_t common = pen__gcd(m->tick, den);
    den /= common;
    uint64_t rest = pen__gcd(m->stream.tick_num, den);
    den /= rest;
    if (pen__mul_over(m->tick / common, m->stream.tick_num / rest, &num) || num > UINT32_MAX)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "the frames of a video are %" PRIu64 " times %u/%u seconds apart: the "
                         "time cannot be stored",
                         m->tick, m->stream.tick_num, m->stream.tick_den);
    m->stream.tick_num = (uint32_t)num;
    m->stream.tick_den = (uint32_t)den;
    for (uint32_t i = 0; i < m->n; i++)
        m->packets[i].time /= (int64_t)m->tick;
    for (uint32_t i = 0; i < m->n_shown; i++)
        m->shown[i] = (m->shown[i] - m->first) / (int64_t)m->tick;
    return PEN_OK;
}

/* Decoding starts at key packets after which nothing is shown that was decoded before them. */
static void find_keys(Making *m)
{
    int64_t latest = m->packets[0].time;
    for (uint32_t i = 0; i < m->n; i++) {
        PenVideoPacket *p = &m->packets[i];
        p->is_key = !i || (p->is_key && p->time > latest);
        if (p->is_key || !p->is_hidden)
            latest = PEN_MAX(latest, p->time);
    }
    int64_t least = INT64_MAX;
    for (uint32_t i = m->n; i-- > 0;) {
        if (!m->packets[i].is_hidden)
            least = PEN_MIN(least, m->packets[i].time);
        m->least_after[i] = least;
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

static uint8_t *put_number(uint8_t *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

static uint8_t *put_signed(uint8_t *at, int64_t number)
{
    return put_number(at, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}

static int put_packet(const PenVideoPacket *p, const PenVideoPacket *before, PenBuf *out)
{
    uint8_t code[32], *at = code;
    int64_t gap = before ? (int64_t)p->offset - (int64_t)(before->offset + before->bytes) : 0;
    uint64_t flags = (p->is_key ? PEN_PACKET_KEY : 0u) | (p->is_hidden ? PEN_PACKET_HIDDEN : 0u) |
                     (gap ? PEN_PACKET_GAP : 0u);
    at = put_number(at, (uint64_t)p->bytes << 3 | flags);
    if (gap)
        at = put_signed(at, gap);
    if (before)
        at = put_signed(at, p->time - before->time);
    return pen__buf_add(out, code, (size_t)(at - code));
}

static uint32_t frames_before(const Making *m, int64_t time)
{
    uint32_t low = 0, high = m->n_shown;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->shown[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int put_group(const Making *m, uint32_t packet, size_t code, PenBuf *groups)
{
    uint8_t g[PEN_VIDEO_GROUP_BYTES] = {0};
    const PenVideoPacket *p = &m->packets[packet];
    pen__store32(g, packet);
    pen__store32(g + 4, (uint32_t)code);
    pen__store64(g + 8, p->offset);
    pen__store64(g + 16, (uint64_t)p->time);
    pen__store32(g + 24, frames_before(m, p->time));
    return pen__buf_add(groups, g, sizeof g);
}

/* A frame lies in the group before whose end it is shown, or in the one after that. */
static bool starts_group(const Making *m, uint32_t packet, uint32_t group)
{
    return !packet || (m->packets[packet].is_key && packet - group >= PEN_VIDEO_GROUP_PACKETS &&
                       m->least_after[packet] >= m->packets[group].time);
}

static int code_packets(const Making *m, PenBuf *groups, PenBuf *coded)
{
    uint32_t group = 0;
    int r = PEN_OK;
    for (uint32_t i = 0; i < m->n && r == PEN_OK && coded->bytes < PEN_MAX_VIDEO_TABLE; i++) {
        bool is_first = starts_group(m, i, group);
        if (is_first) {
            group = i;
            r = put_group(m, i, coded->bytes, groups);
        }
        if (r == PEN_OK)
            r = put_packet(&m->packets[i], is_first ? NULL : &m->packets[i - 1], coded);
    }
    return r;
}

/* Rounded to the nearest nanosecond. */
static int64_t first_ns(const Making *m, const PenVideoStream *given)
{
    uint64_t ticks = m->first < 0 ? 0 - (uint64_t)m->first : (uint64_t)m->first;
    unsigned __int128 ns = (unsigned __int128)ticks * given->tick_num * 1000000000u;
    ns = (ns + given->tick_den / 2) / given->tick_den;
    int64_t least = ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
    return m->first < 0 ? -least : least;
}

static void put_header(const Making *m, int64_t first, uint32_t n_groups, uint32_t n_runs,
                       uint8_t *h)
{
    const PenVideoStream *s = &m->stream;
    pen__store16(h, PEN_VIDEO_TABLE_VERSION);
    h[2] = s->codec;
    h[3] = s->container;
    pen__store32(h + 4, s->width);
    pen__store32(h + 8, s->height);
    h[12] = s->orientation;
    h[13] = s->range;
    h[14] = s->matrix;
    h[15] = s->depth;
    pen__store32(h + 16, s->tick_num);
    pen__store32(h + 20, s->tick_den);
    pen__store64(h + 24, (uint64_t)first);
    pen__store32(h + 32, m->n);
    pen__store32(h + 36, n_groups);
    pen__store32(h + 40, n_runs);
    pen__store32(h + 44, s->extra_bytes);
}

static int put_table(const Making *m, int64_t first, uint32_t n_runs, PenBuf *out, PenError *reterr)
{
    PenBuf groups = {0}, coded = {0};
    uint8_t h[PEN_VIDEO_HEADER_BYTES];
    int r = code_packets(m, &groups, &coded);
    uint64_t sums = 4 * (uint64_t)n_runs;
    uint64_t bytes = sizeof h + sums + groups.bytes + m->stream.extra_bytes + coded.bytes;
    bool fits = bytes <= PEN_MAX_VIDEO_TABLE;
    if (r == PEN_OK && fits)
        r = pen__buf_reserve(out, (size_t)bytes);
    if (r == PEN_OK && fits) {
        put_header(m, first, (uint32_t)(groups.bytes / PEN_VIDEO_GROUP_BYTES), n_runs, h);
        pen__buf_add(out, h, sizeof h);
        memset(out->data + out->bytes, 0, (size_t)sums);
        out->bytes += (size_t)sums;
        pen__buf_add(out, groups.data, groups.bytes);
        pen__buf_add(out, m->stream.extra, m->stream.extra_bytes);
        pen__buf_add(out, coded.data, coded.bytes);
    }
    pen__buf_free(&groups);
    pen__buf_free(&coded);
    if (r < 0)
        return pen__fail_memory(reterr, WHERE, "table of a video");
    return fits ? PEN_OK
                : pen__fail(reterr, PEN_E_LIMIT, WHERE,
                            "a video whose table has more than 2^27 bytes: cut it in a list with "
                            "start and end");
}

int pen__video_table_write(const PenVideoStream *stream, const PenVideoPacket *packets, uint32_t n,
                           uint64_t payload_bytes, PenBuf *out, uint32_t *ret_frames,
                           PenError *reterr)
{
    Making m = {.given = packets, .n = n, .stream = *stream};
    int r = check_stream(stream, reterr);
    if (r == PEN_OK)
        r = check_packets(&m, payload_bytes, reterr);
    if (r < 0)
        return r;
    m.packets = pen__alloc_array(n, sizeof *m.packets);
    m.shown = pen__alloc_array(n, sizeof *m.shown);
    m.least_after = pen__alloc_array(n, sizeof *m.least_after);
    if (!m.packets || !m.shown || !m.least_after)
        r = pen__fail_memory(reterr, WHERE, "table of a video");
    if (r == PEN_OK)
        r = find_frames(&m, reterr);
    if (r == PEN_OK)
        r = find_tick(&m, reterr);
    if (r == PEN_OK) {
        find_keys(&m);
        r = put_table(&m, first_ns(&m, stream), pen__video_runs(payload_bytes), out, reterr);
    }
    if (r == PEN_OK)
        *ret_frames = m.n_shown;
    pen__free(m.packets);
    pen__free(m.shown);
    pen__free(m.least_after);
    return r;
}

/* ---- checksums ------------------------------------------------------------------------------- */

int pen__video_run_crcs(const uint8_t *data, uint64_t bytes, PenBuf *out)
{
    uint32_t n = pen__video_runs(bytes);
    int r = pen__buf_reserve(out, 4 * (size_t)n);
    for (uint32_t i = 0; i < n && r == PEN_OK; i++) {
        uint64_t at = (uint64_t)i * PEN_VIDEO_RUN_BYTES;
        size_t run = (size_t)PEN_MIN(bytes - at, (uint64_t)PEN_VIDEO_RUN_BYTES);
        pen__store32(out->data + out->bytes, pen__crc32c(0, data + at, run));
        out->bytes += 4;
    }
    return r;
}

void pen__video_table_seal(uint8_t *table, const uint8_t *crcs, const uint8_t *data, uint64_t bytes,
                           PenPlace place)
{
    uint32_t n = pen__video_runs(bytes);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = (uint64_t)i * PEN_VIDEO_RUN_BYTES;
        size_t run = (size_t)PEN_MIN(bytes - at, (uint64_t)PEN_VIDEO_RUN_BYTES);
        place.run = i + 1;
        pen__store32(table + PEN_VIDEO_HEADER_BYTES + 4 * (size_t)i,
                     crcs ? pen__place_sum_of(&place, pen__load32(crcs + 4 * (size_t)i), run)
                          : pen__place_sum(&place, data + at, run));
    }
}
