/* SPDX-License-Identifier: Apache-2.0 */
#include "video_table_help.h"

#include "base/attr.h"

uint64_t help_random(uint64_t *state, uint64_t n)
{
    uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    return n ? x % n : x;
}

/* When the frames are shown, in the order of their numbers. */
static void make_times(uint64_t *state, int64_t *times, uint32_t n)
{
    int64_t step = 1 + (int64_t)help_random(state, 2000);
    bool varies = help_random(state, 2);
    int64_t at = (int64_t)help_random(state, 100000) - 50000;
    for (uint32_t i = 0; i < n; i++) {
        times[i] = at;
        at += varies ? step * (1 + (int64_t)help_random(state, 5)) : step;
    }
}

static void add(HelpVideo *v, int64_t time, bool is_key)
{
    v->packets[v->n++] = (PenVideoPacket){.time = time, .is_key = is_key};
}

/* GOPs of an I-frame, then P-frames, each with the B-frames that are shown before it. In an open
 * GOP the I-frame has them too. */
static void make_order(uint64_t *state, HelpVideo *v, const int64_t *times, uint32_t n)
{
    uint32_t gop = 1 + (uint32_t)help_random(state, 70), b = (uint32_t)help_random(state, 5);
    bool is_open = help_random(state, 2);
    uint32_t in_gop = 0;
    for (uint32_t next = 0; next < n;) {
        bool is_key = in_gop == 0;
        uint32_t before = is_key && !is_open ? 0 : PEN_MIN(b, n - 1 - next);
        add(v, times[next + before], is_key);
        for (uint32_t i = 0; i < before; i++) /* the middle one is referred to by the others */
            add(v, times[next + (i * 2 + before / 2) % before], false);
        if (before && before % 2 == 0) /* then the numbers above repeat: in order */
            for (uint32_t i = 0; i < before; i++)
                v->packets[v->n - before + i].time = times[next + i];
        next += before + 1;
        in_gop = in_gop + before + 1 >= gop ? 0 : in_gop + before + 1;
    }
}

/* No order at all: packets change places, and any one may be a key packet. */
static void shuffle(uint64_t *state, HelpVideo *v)
{
    uint32_t reach = 1 + (uint32_t)help_random(state, 60);
    for (uint32_t i = 1; i < v->n; i++) {
        uint32_t other = i - (uint32_t)help_random(state, PEN_MIN(reach, i) + 1);
        PenVideoPacket p = v->packets[i];
        v->packets[i] = v->packets[other];
        v->packets[other] = p;
        v->packets[i].is_key = !help_random(state, 12);
    }
    v->packets[0].is_key = true;
}

static void hide(uint64_t *state, HelpVideo *v)
{
    uint32_t first = (uint32_t)help_random(state, v->n), last = (uint32_t)help_random(state, v->n);
    bool some = !help_random(state, 4);
    for (uint32_t i = 0; i < v->n; i++)
        v->packets[i].is_hidden = (i < first && first < v->n / 3) || (some && i % 7 == 3) ||
                                  (i > last && last > v->n / 2 && last < v->n - 2);
}

/* Sizes and places: side by side, with other streams between them, or in any order. */
static void place(uint64_t *state, HelpVideo *v)
{
    uint64_t at = help_random(state, 100);
    int how = (int)help_random(state, 3);
    for (uint32_t i = 0; i < v->n; i++) {
        PenVideoPacket *p = &v->packets[i];
        p->bytes = 1 + (uint32_t)help_random(state, help_random(state, 8) ? 100 : 5000);
        if (how && !help_random(state, 6))
            at += help_random(state, 3000);
        p->offset = at;
        if (how == 2 && i && !help_random(state, 10)) {
            p->offset = v->packets[i - 1].offset;
            v->packets[i - 1].offset += p->bytes;
        }
        at += p->bytes;
    }
    v->payload_bytes = at + help_random(state, 100);
}

void help_video(uint64_t *state, HelpVideo *v)
{
    static const uint8_t extra[] = {1, 100, 0, 31, 255, 225};
    int64_t times[HELP_PACKETS];
    uint32_t n = 1 + (uint32_t)help_random(state, help_random(state, 4) ? HELP_PACKETS : 8);
    v->stream = (PenVideoStream){.width = 1 + (uint32_t)help_random(state, 4000),
                                 .height = 1 + (uint32_t)help_random(state, 4000),
                                 .codec = (uint8_t)(1 + help_random(state, PEN_VIDEO_LAST_CODEC)),
                                 .container = (uint8_t)help_random(state, 5),
                                 .orientation = (uint8_t)(1 + help_random(state, 8)),
                                 .range = (uint8_t)help_random(state, 3),
                                 .matrix = (uint8_t)help_random(state, 10),
                                 .depth = (uint8_t)(8 + 2 * help_random(state, 3)),
                                 .tick_num = 1 + (uint32_t)help_random(state, 1001),
                                 .tick_den = 1 + (uint32_t)help_random(state, 90000),
                                 .extra = extra,
                                 .extra_bytes = (uint32_t)help_random(state, sizeof extra + 1)};
    v->n = 0;
    make_times(state, times, n);
    make_order(state, v, times, n);
    if (!help_random(state, 4))
        shuffle(state, v);
    hide(state, v);
    place(state, v);
}
