/* SPDX-License-Identifier: Apache-2.0 */
/* Video tables against a plain implementation that goes through all packets for every question. */
#include <stdlib.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "test.h"
#include "video_table_help.h"

enum { CASES = TEST_SANITIZED ? 400 : 4000 };

/* ---- the plain implementation ---- */

typedef struct Plain {
    HelpVideo v;                  /* hidden and key as they are stored */
    uint32_t frame[HELP_PACKETS]; /* the packet of each frame */
    uint32_t n_frames;
} Plain;

/* Is it shown before a packet, or a place to start that precedes it? */
static bool blocks(const PenVideoPacket *before, const PenVideoPacket *key)
{
    return (!before->is_hidden || before->is_key) && before->time >= key->time;
}

static void make_plain(const HelpVideo *v, Plain *ret)
{
    ret->v = *v;
    ret->n_frames = 0;
    PenVideoPacket *p = ret->v.packets;
    for (uint32_t i = 0; i < v->n; i++)
        p[i].is_hidden |= p[i].time < p[0].time;
    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (blocks(&p[k], &p[i]))
                p[i].is_key = false;
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t rank = 0;
        if (p[i].is_hidden)
            continue;
        for (uint32_t k = 0; k < v->n; k++)
            rank += !p[k].is_hidden && p[k].time < p[i].time;
        ret->frame[rank] = i;
        ret->n_frames++;
    }
}

static uint32_t plain_key(const Plain *p, uint32_t frame)
{
    uint32_t key = 0;
    for (uint32_t i = 0; i < p->v.n; i++)
        if (p->v.packets[i].is_key && p->v.packets[i].time <= p->v.packets[p->frame[frame]].time)
            key = i;
    return key;
}

static int64_t plain_ns(const Plain *p, uint32_t frame)
{
    const PenVideoPacket *all = p->v.packets;
    unsigned __int128 ticks =
        (unsigned __int128)(all[p->frame[frame]].time - all[p->frame[0]].time);
    unsigned __int128 ns = ticks * p->v.stream.tick_num * 1000000000u;
    return (int64_t)((ns + p->v.stream.tick_den / 2) / p->v.stream.tick_den);
}

/* ---- comparing ---- */

static PenVideoNeeds needs;
static PenVideoTable table;
static PenBuf bytes;

static void open_table(const HelpVideo *v, uint32_t n_frames)
{
    const char *wrong =
        pen__video_table_read(&table, bytes.data, bytes.bytes, v->payload_bytes, n_frames);
    if (wrong)
        printf("%s\n", wrong);
    CHECK(!wrong);
}

/* False: there can be no table, since no frame is shown. */
static bool write_table(const HelpVideo *v, uint32_t *ret_frames, PenError *err)
{
    bytes.bytes = 0;
    return pen__video_table_write(&v->stream, v->packets, v->n, v->payload_bytes, &bytes,
                                  ret_frames, err) == PEN_OK;
}

static void check_packets(const Plain *p)
{
    PenVideoCursor c = pen__video_seek(&table, 0);
    uint64_t num = (uint64_t)table.stream.tick_num * p->v.stream.tick_den;
    uint64_t den = (uint64_t)table.stream.tick_den * p->v.stream.tick_num;
    CHECK_INT(table.n_packets, p->v.n);
    for (uint32_t i = 0; i < p->v.n; i++) {
        PenVideoPacket found, want = p->v.packets[i];
        CHECK(!pen__video_next(&c, &found));
        CHECK_INT(found.offset, want.offset);
        CHECK_INT(found.bytes, want.bytes);
        CHECK_INT(found.is_key, want.is_key);
        CHECK_INT(found.is_hidden, want.is_hidden);
        /* The same times, in other units. */
        want.time -= p->v.packets[p->frame[0]].time;
        CHECK((__int128)found.time * num == (__int128)want.time * den);
    }
    CHECK_INT(c.at, table.coded_bytes);
}

static void check_times(const Plain *p)
{
    PenError err = {0};
    int64_t all[HELP_PACKETS], one = 0;
    CHECK_INT(pen__video_all_ns(&table, &needs, all, &err), PEN_OK);
    for (uint32_t f = 0; f < p->n_frames; f++) {
        CHECK_INT(all[f], plain_ns(p, f));
        if (f % 5)
            continue;
        CHECK_INT(pen__video_frame_ns(&table, f, &needs, &one, &err), PEN_OK);
        CHECK_INT(one, all[f]);
    }
}

static void check_one_need(const Plain *p, uint32_t number, const uint8_t *is_needed,
                           const int *wanted, uint32_t *seen)
{
    const PenVideoNeed *need = &needs.needs[number];
    PenError err = {0};
    PenVideoWalk walk;
    uint64_t from = UINT64_MAX, end = 0;
    uint32_t i = need->first;
    CHECK(p->v.packets[i].is_key);
    CHECK(i == 0 || !is_needed[i - 1]);
    CHECK_INT(pen__video_walk(&table, &needs, number, &walk, &err), PEN_OK);
    for (;; i++) {
        PenVideoPacket found;
        const PenVideoFrame *frame = NULL;
        int r = pen__video_walk_next(&walk, &found, &frame, &err);
        if (r == 0)
            break;
        CHECK_INT(r, 1);
        CHECK(is_needed[i]);
        CHECK_INT(found.offset, p->v.packets[i].offset);
        CHECK_INT(found.is_key, p->v.packets[i].is_key);
        CHECK_INT(frame ? (int)frame->frame : -1, wanted[i]);
        if (frame)
            CHECK_INT(frame->time, found.time);
        *seen += frame != NULL;
        from = PEN_MIN(from, found.offset);
        end = PEN_MAX(end, found.offset + found.bytes);
    }
    CHECK_INT(i, need->end);
    CHECK(i == p->v.n || !is_needed[i]);
    CHECK_INT(need->offset, from);
    CHECK_INT(need->bytes, end - from);
}

static void check_need(const Plain *p, const uint32_t *frames, uint32_t n)
{
    PenError err = {0};
    uint8_t is_needed[HELP_PACKETS] = {0};
    int wanted[HELP_PACKETS];
    uint32_t n_wanted = 0, seen = 0, n_needed = 0, n_found = 0;
    memset(wanted, -1, sizeof wanted);
    for (uint32_t i = 0; i < n; i++) {
        n_wanted += wanted[p->frame[frames[i]]] < 0;
        wanted[p->frame[frames[i]]] = (int)frames[i];
        for (uint32_t k = plain_key(p, frames[i]); k <= p->frame[frames[i]]; k++)
            is_needed[k] = 1;
    }
    for (uint32_t i = 0; i < p->v.n; i++)
        n_needed += is_needed[i];
    CHECK_INT(pen__video_need(&table, frames, n, &needs, &err), PEN_OK);
    for (uint32_t i = 0; i < needs.n_needs; i++) {
        n_found += needs.needs[i].end - needs.needs[i].first;
        check_one_need(p, i, is_needed, wanted, &seen);
        CHECK_OK_SO_FAR();
    }
    CHECK_INT(n_found, n_needed);
    CHECK_INT(seen, n_wanted);
    CHECK_INT(needs.n_frames, n_wanted);
}

static int compare(const void *a, const void *b)
{
    return (int)(*(const uint32_t *)a) - (int)(*(const uint32_t *)b);
}

static void check_needs(const Plain *p, uint64_t *state)
{
    for (int i = 0; i < 6; i++) {
        uint32_t frames[20], n = (uint32_t)help_random(state, PEN_LEN(frames) + 1);
        uint32_t first = (uint32_t)help_random(state, p->n_frames);
        uint32_t step = (uint32_t)help_random(state, 4);
        for (uint32_t k = 0; k < n; k++)
            frames[k] = i % 2 ? (uint32_t)help_random(state, p->n_frames)
                              : PEN_MIN(first + k * step, p->n_frames - 1);
        qsort(frames, n, sizeof *frames, compare);
        check_need(p, frames, n);
        CHECK_OK_SO_FAR();
    }
}

static void check_video(uint64_t *state, uint32_t *n_made)
{
    static Plain p;
    PenError err = {0};
    HelpVideo v;
    uint32_t n_frames = 0;
    help_video(state, &v);
    make_plain(&v, &p);
    CHECK_INT(write_table(&v, &n_frames, &err), p.n_frames > 0);
    if (!p.n_frames)
        return;
    ++*n_made;
    CHECK_INT(n_frames, p.n_frames);
    open_table(&v, n_frames);
    CHECK_OK_SO_FAR();
    CHECK_INT(pen__video_table_check(&table, &err), PEN_OK);
    check_packets(&p);
    CHECK_OK_SO_FAR();
    check_times(&p);
    CHECK_OK_SO_FAR();
    check_needs(&p, state);
}

TEST(random_videos_equal_the_plain_implementation)
{
    uint64_t state = 1;
    uint32_t n_made = 0;
    for (uint64_t i = 0; i < CASES; i++) {
        check_video(&state, &n_made);
        if (test__now.state == TEST_FAILED)
            printf("    case %" PRIu64 "\n", i);
        CHECK_OK_SO_FAR();
    }
    CHECK(n_made > CASES / 2);
}

/* ---- one form only ---- */

/* A table that all checks accept is the one that a writer makes from its packets. */
static void check_one_form(uint64_t payload_bytes, uint32_t n_frames, uint32_t *n_accepted)
{
    PenError err = {0};
    PenVideoTable t;
    static PenVideoPacket packets[HELP_PACKETS];
    PenBuf again = {0};
    uint32_t n_again = 0;
    if (pen__video_table_read(&t, bytes.data, bytes.bytes, payload_bytes, n_frames))
        return;
    uint32_t frames[] = {0, n_frames / 2, n_frames - 1};
    pen__video_need(&t, frames, 3, &needs, &err); /* whatever it finds */
    if (pen__video_table_check(&t, &err) < 0)
        return;
    ++*n_accepted;
    CHECK_INT(pen__video_need(&t, frames, 3, &needs, &err), PEN_OK);
    PenVideoCursor c = pen__video_seek(&t, 0);
    CHECK(t.n_packets <= HELP_PACKETS);
    for (uint32_t i = 0; i < t.n_packets; i++)
        CHECK(!pen__video_next(&c, &packets[i]));
    CHECK_INT(pen__video_table_write(&t.stream, packets, t.n_packets, payload_bytes, &again,
                                     &n_again, &err),
              PEN_OK);
    CHECK_INT(n_again, n_frames);
    CHECK_INT(again.bytes, bytes.bytes);
    memcpy(again.data + 24, bytes.data + 24, 8); /* where the times begin is free */
    memcpy(again.data + PEN_VIDEO_HEADER_BYTES, t.sums, 4 * (size_t)t.n_runs);
    CHECK_MEM(again.data, bytes.data, bytes.bytes);
    pen__buf_free(&again);
}

static void damage(uint64_t *state)
{
    size_t at = help_random(state, bytes.bytes);
    uint64_t how = help_random(state, 4);
    if (how == 0)
        bytes.data[at] ^= (uint8_t)(1u << help_random(state, 8));
    else if (how == 1)
        bytes.data[at] = (uint8_t)(bytes.data[at] + help_random(state, 5) - 2);
    else if (how == 2)
        bytes.data[at] = (uint8_t)help_random(state, 256);
    else
        bytes.bytes -= help_random(state, 3) * !help_random(state, 3);
}

TEST(damaged_tables_are_refused_or_have_one_form)
{
    uint64_t state = 2;
    uint32_t n_accepted = 0;
    PenError err = {0};
    for (uint32_t i = 0; i < CASES * 4; i++) {
        static HelpVideo v;
        uint32_t n_frames = 0;
        help_video(&state, &v);
        if (!write_table(&v, &n_frames, &err))
            continue;
        damage(&state);
        check_one_form(v.payload_bytes, n_frames, &n_accepted);
        CHECK_OK_SO_FAR();
    }
    CHECK(n_accepted > CASES / 100);
}

/* ---- what has no table ---- */

static void expect_refusal(HelpVideo *v, int status, const char *says)
{
    PenError err = {0};
    uint32_t n_frames = 0;
    CHECK(!write_table(v, &n_frames, &err));
    CHECK_INT(err.status, status);
    CHECK(strstr(err.message, says));
    CHECK_INT(bytes.bytes, 0);
}

static HelpVideo small_video(void)
{
    HelpVideo v = {.stream = {.width = 64,
                              .height = 48,
                              .codec = PEN_VIDEO_H264,
                              .container = PEN_CONTAINER_MP4,
                              .orientation = 6,
                              .depth = 8,
                              .tick_num = 1,
                              .tick_den = 12800},
                   .n = 3,
                   .payload_bytes = 1000};
    for (uint32_t i = 0; i < v.n; i++)
        v.packets[i] = (PenVideoPacket){
            .offset = 100 * i, .bytes = 100, .time = 512 * i + 7, .is_key = i == 0};
    return v;
}

TEST(videos_that_have_no_table)
{
    static HelpVideo v;
#define REFUSE(change, status, says)                                                               \
    do {                                                                                           \
        v = small_video();                                                                         \
        change;                                                                                    \
        expect_refusal(&v, status, says);                                                          \
        CHECK_OK_SO_FAR();                                                                         \
    } while (0)
    REFUSE(v.n = 0, PEN_E_LIMIT, "0 packets");
    REFUSE(v.payload_bytes = PEN_MAX_VIDEO_BYTES + 1, PEN_E_LIMIT, "2^40");
    REFUSE(v.packets[0].is_key = false, PEN_E_DECODE, "key packet");
    REFUSE(v.packets[1].bytes = 0, PEN_E_DECODE, "packet 1");
    REFUSE(v.packets[2].offset = 901, PEN_E_DECODE, "packet 2");
    REFUSE(v.packets[2].time = 7, PEN_E_DECODE, "same time");
    REFUSE(v.packets[2].time = INT64_MAX, PEN_E_LIMIT, "too far");
    REFUSE(v.n = 1; v.packets[0].is_hidden = true, PEN_E_DECODE, "without frames");
    REFUSE(v.n = 2; v.stream.tick_den = 1;
           v.packets[1].time += INT64_C(1) << 40, PEN_E_LIMIT, "cannot be stored");
    REFUSE(v.stream.codec = 8, PEN_E_INVALID, "codec 8");
    REFUSE(v.stream.depth = 9, PEN_E_DECODE, "9 bits");
    REFUSE(v.stream.width = 16385, PEN_E_LIMIT, "16385 x 48");
    REFUSE(v.stream.extra_bytes = PEN_MAX_VIDEO_EXTRA + 1, PEN_E_LIMIT, "configuration");
#undef REFUSE
}

TEST(header_of_a_small_video)
{
    static HelpVideo v;
    PenError err = {0};
    uint32_t n_frames = 0, size[2];
    v = small_video();
    CHECK(write_table(&v, &n_frames, &err));
    open_table(&v, 3);
    CHECK_OK_SO_FAR();
    CHECK_INT(table.stream.tick_num, 1);
    CHECK_INT(table.stream.tick_den, 25);
    CHECK_INT(table.first_ns, 546875); /* 7 / 12,800 s */
    CHECK_INT(table.n_groups, 1);
    pen__video_shown_size(&table, size);
    CHECK_INT(size[0], 48);
    CHECK_INT(size[1], 64);
    /* Header, one checksum, one group, and 2 + 3 + 3 bytes of packets. */
    CHECK_INT(bytes.bytes, 48 + 4 + 32 + 8);
}

TEST(only_groups_of_the_frames_are_parsed)
{
    static HelpVideo v;
    PenError err = {0};
    uint32_t n_frames = 0;
    v = small_video();
    v.n = HELP_PACKETS;
    v.payload_bytes = 100 * HELP_PACKETS;
    for (uint32_t i = 0; i < v.n; i++)
        v.packets[i] = (PenVideoPacket){
            .offset = 100 * i, .bytes = 100, .time = 512 * i, .is_key = i % 10 == 0};
    CHECK(write_table(&v, &n_frames, &err));
    open_table(&v, n_frames);
    CHECK_OK_SO_FAR();
    CHECK_INT(table.n_groups, 8); /* each of 40 packets but the last one */
    size_t third = pen__video_group(&table, 3).code;
    for (size_t i = 0; i < table.coded_bytes; i++)
        if (i < third || i >= pen__video_group(&table, 5).code)
            ((uint8_t *)table.coded)[i] = 0xFF;
    const uint32_t frames[] = {125, 127, 138};
    CHECK_INT(pen__video_need(&table, frames, 3, &needs, &err), PEN_OK);
    CHECK_INT(needs.n_needs, 2);
    CHECK_INT(needs.needs[0].first, 120);
    CHECK_INT(needs.needs[0].end, 128);
    CHECK_INT(needs.needs[0].offset, 12000);
    CHECK_INT(needs.needs[0].bytes, 800);
    CHECK_INT(needs.needs[1].first, 130);
    CHECK_INT(needs.needs[1].end, 139);
    CHECK_INT(needs.needs[1].n_frames, 1);
    const uint32_t other[] = {0};
    CHECK_INT(pen__video_need(&table, other, 1, &needs, &err), PEN_E_CORRUPT);
    CHECK(strstr(err.message, "video table: "));
    int64_t ns;
    CHECK_INT(pen__video_frame_ns(&table, 299, &needs, &ns, &err), PEN_E_CORRUPT);
    CHECK_INT(pen__video_table_check(&table, &err), PEN_E_CORRUPT);
}

TEST(sums_of_runs)
{
    static uint8_t data[2 * PEN_VIDEO_RUN_BYTES + 5];
    static const uint8_t id[16] = "0123456789abcde";
    static HelpVideo v;
    PenError err = {0};
    PenPlace place = {.id = id, .block = 3, .sample = 5, .field = 1};
    PenBuf crcs = {0};
    uint32_t n_frames = 0;
    uint64_t state = 3;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)help_random(&state, 256);
    v = small_video();
    v.payload_bytes = sizeof data;
    CHECK(write_table(&v, &n_frames, &err));
    CHECK_INT(pen__video_run_crcs(data, sizeof data, &crcs), PEN_OK);
    CHECK_INT(crcs.bytes, 12);
    for (int i = 0; i < 2; i++) { /* from the bytes, and from their CRCs */
        memset(bytes.data + PEN_VIDEO_HEADER_BYTES, 0, 12);
        pen__video_table_seal(bytes.data, i ? crcs.data : NULL, i ? NULL : data, sizeof data,
                              place);
        open_table(&v, n_frames);
        CHECK_OK_SO_FAR();
        CHECK_INT(table.n_runs, 3);
        for (uint32_t k = 0; k < 3; k++) {
            PenVideoRun run = pen__video_table_run(&table, k);
            place.run = k + 1;
            CHECK_INT(run.offset, k * 65536);
            CHECK_INT(run.bytes, k < 2 ? 65536 : 5);
            CHECK_INT(run.sum, pen__place_sum(&place, data + run.offset, run.bytes));
        }
        place.run = 0;
    }
    pen__buf_free(&crcs);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(random_videos_equal_the_plain_implementation);
    RUN(damaged_tables_are_refused_or_have_one_form);
    RUN(videos_that_have_no_table);
    RUN(header_of_a_small_video);
    RUN(only_groups_of_the_frames_are_parsed);
    RUN(sums_of_runs);
    pen__video_needs_free(&needs);
    pen__buf_free(&bytes);
    return TEST_END();
}
